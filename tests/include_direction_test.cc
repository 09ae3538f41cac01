// SPDX-License-Identifier: Apache-2.0
//
// The folders include each other only as the table in docs/internals.md allows, only std
// types stand in public headers, and every source says its licence.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

std::vector<std::string> LinesOf(const fs::path& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Names in backquotes.
std::vector<std::string> Quoted(const std::string& text) {
  static const std::regex quoted("`([^`]+)`");
  std::vector<std::string> names;
  for (std::sregex_iterator it(text.begin(), text.end(), quoted), end; it != end; ++it)
    names.push_back((*it)[1].str());
  return names;
}

/// The table of the layout in docs/internals.md: what each room may include beside itself. A source
/// belongs to the room with the longest name that its path begins with.
std::map<std::string, std::set<std::string>> ReadTable() {
  std::map<std::string, std::set<std::string>> rooms;
  bool is_table = false;
  for (const std::string& line : LinesOf(fs::path(PREPOST_SOURCE_DIR) / "docs/internals.md")) {
    if (line == "| room | may include |") is_table = true;
    if (line.empty()) is_table = false;
    const size_t middle = line.find(" | ");
    if (!is_table || middle == std::string::npos || line.ends_with("| everything |")) continue;
    const std::vector<std::string> others = Quoted(line.substr(middle));
    for (const std::string& room : Quoted(line.substr(0, middle)))
      rooms[room].insert(others.begin(), others.end());
  }
  return rooms;
}

const std::map<std::string, std::set<std::string>>& MayInclude() {
  static const std::map<std::string, std::set<std::string>> rooms = ReadTable();
  return rooms;
}

/// The room of a path relative to the root, "" if it is in none.
std::string RoomOf(const std::string& path) {
  std::string found;
  for (const auto& [room, others] : MayInclude()) {
    if (path.starts_with(room + "/") && room.size() > found.size()) found = room;
  }
  return found;
}

std::vector<fs::path> SourcesIn(const std::string& folder) {
  std::vector<fs::path> sources;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(PREPOST_SOURCE_DIR) / folder)) {
    if (entry.path().extension() == ".h" || entry.path().extension() == ".cc")
      sources.push_back(entry.path());
  }
  return sources;
}

TEST(IncludeDirectionTest, RoomsIncludeOnlyWhatTheyMay) {
  const std::regex quoted(R"re(^\s*#\s*include "([^"]*)")re");
  const fs::path root(PREPOST_SOURCE_DIR);
  for (const char* room : {"ir", "compiler", "runtime", "backends", "library", "planning", "python",
                           "sim", "viz", "tools"})
    EXPECT_TRUE(MayInclude().contains(room)) << "docs/internals.md: no row for " << room;
  for (const auto& [folder, allowed] : MayInclude()) {
    const std::vector<fs::path> sources = SourcesIn(folder);
    EXPECT_FALSE(sources.empty()) << folder;
    for (const fs::path& source : sources) {
      if (RoomOf(fs::relative(source, root).string()) != folder) continue;
      for (const std::string& line : LinesOf(source)) {
        std::smatch match;
        if (!std::regex_search(line, match, quoted)) continue;
        const std::string name = match[1].str();
        if (name.starts_with("prepost/")) {  // the public API, which every room may use
          EXPECT_TRUE(fs::exists(root / "include" / name)) << source << ": " << line;
          continue;
        }
        const std::string room = RoomOf(name);
        EXPECT_TRUE(room == folder || allowed.contains(room)) << source << ": " << line;
        EXPECT_TRUE(fs::exists(root / name)) << source << ": " << line;
      }
    }
  }
}

/// The picture of the layout in docs/internals.md: for each room at its left edge, the lines about
/// it.
std::map<std::string, std::string> ReadLayout() {
  std::map<std::string, std::string> rooms;
  std::string room;
  bool is_layout = false;
  for (const std::string& line : LinesOf(fs::path(PREPOST_SOURCE_DIR) / "docs/internals.md")) {
    if (line == "```text") is_layout = true;
    if (line == "```" && is_layout) break;
    if (!is_layout) continue;
    if (!line.starts_with(' ')) room = line.substr(0, line.find('/'));
    rooms[room] += line + "\n";
  }
  return rooms;
}

// A newcomer finds any part by the layout alone: it names every folder of every room.
TEST(IncludeDirectionTest, TheLayoutNamesEveryFolder) {
  std::map<std::string, std::string> layout = ReadLayout();
  for (const char* room : {"ir", "compiler", "runtime", "backends", "library", "planning", "sim",
                           "viz", "tools", "python"}) {
    EXPECT_TRUE(layout.contains(room)) << "docs/internals.md: the layout has no room " << room;
    for (const fs::path& source : SourcesIn(room)) {
      const fs::path folder = source.parent_path().filename();
      EXPECT_NE(layout[room].find(folder.string() + "/"), std::string::npos)
          << "docs/internals.md: the layout of " << room << " does not name " << folder
          << ", where " << source << " is";
    }
    std::istringstream lines(layout[room]);
    for (std::string line; std::getline(lines, line);) {
      const size_t end = line.find('/');
      if (!line.starts_with("  ") || line.starts_with("   ") || end == std::string::npos) continue;
      const fs::path folder = fs::path(PREPOST_SOURCE_DIR) / room / line.substr(2, end - 2);
      EXPECT_TRUE(fs::is_directory(folder)) << "docs/internals.md: there is no " << folder;
    }
  }
}

// Headers that other folders include expose std types only; those marked "Internal to" are not for
// them.
TEST(IncludeDirectionTest, PublicHeadersExposeStdOnly) {
  const std::regex foreign(
      R"re(^#include <(llvm|nlohmann|fmt|CLI|infiniband|graphviz|gvc|cgraph|sodium)[/.])re");
  for (const auto& [folder, allowed] : MayInclude()) {
    if (folder == "tools" || folder == "planning")
      continue;  // for the command and the Python package
    for (const fs::path& source : SourcesIn(folder)) {
      if (source.extension() != ".h") continue;
      const std::vector<std::string> lines = LinesOf(source);
      const auto is_mark = [](const std::string& line) {
        return line.starts_with("//") && line.find("Internal to") != std::string::npos;
      };
      if (std::ranges::any_of(lines, is_mark)) continue;
      for (const std::string& line : lines)
        EXPECT_FALSE(std::regex_search(line, foreign)) << source << ": " << line;
    }
  }
}

TEST(IncludeDirectionTest, OneFileIncludesMlx5dvAndOneLibibverbs) {
  for (const auto& [folder, allowed] : MayInclude()) {
    for (const fs::path& source : SourcesIn(folder)) {
      if (source.filename() == "rdma_core.cc" || source.filename() == "libibverbs.h") continue;
      for (const std::string& line : LinesOf(source)) {
        const bool includes =
            line.starts_with("#include") && line.find("infiniband") != std::string::npos;
        EXPECT_FALSE(includes) << source;
      }
    }
  }
}

TEST(IncludeDirectionTest, EverySourceNamesItsLicence) {
  for (const char* folder : {"include", "ir", "compiler", "runtime", "backends", "library",
                             "planning", "python", "sim", "viz", "tools", "tests", "bench"}) {
    for (const fs::path& source : SourcesIn(folder)) {
      const std::vector<std::string> lines = LinesOf(source);
      EXPECT_TRUE(!lines.empty() && lines.front() == "// SPDX-License-Identifier: Apache-2.0")
          << source;
    }
  }
}

}  // namespace
