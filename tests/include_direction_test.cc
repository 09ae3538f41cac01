// SPDX-License-Identifier: Apache-2.0
//
// The folders include each other only in the direction that docs/internals.md draws, only std
// types stand in public headers, and every source says its licence.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

/// The table of the layout (docs/internals.md): what each room may include beside itself. A source
/// belongs to the room with the longest name that its path begins with.
const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"ir", {}},
    {"compiler", {"ir"}},
    {"runtime", {"ir"}},
    {"backends",
     {"backends/nic", "backends/emulated", "backends/mlx5", "backends/fabric", "backends/triggered",
      "backends/verbs", "runtime", "ir"}},
    {"backends/fabric", {"backends/triggered", "runtime", "ir"}},
    {"backends/triggered", {"runtime", "ir"}},
    {"backends/verbs", {"runtime", "ir"}},
    {"backends/nic", {"runtime", "ir"}},
    {"backends/emulated", {"backends/nic", "runtime", "ir"}},
    {"backends/local", {"backends/emulated", "backends/nic", "runtime", "ir"}},
    {"backends/mlx5", {"backends/nic", "backends/verbs", "runtime", "ir"}},
    {"library", {"backends", "backends/nic", "backends/emulated", "compiler", "runtime", "ir"}},
    {"python", {"backends/nic", "compiler", "ir", "library", "runtime", "sim", "tools", "viz"}},
    {"sim", {"backends/emulated", "backends/local", "backends/nic", "compiler", "runtime", "ir"}},
    {"viz", {"backends/nic", "backends/triggered", "runtime", "ir"}},
    {"tools",
     {"backends", "backends/nic", "backends/emulated", "backends/local", "backends/mlx5",
      "backends/triggered", "compiler", "ir", "library", "runtime", "sim", "viz"}},
};

/// The room of a path relative to the root, "" if it is in none.
std::string RoomOf(const std::string& path) {
  std::string found;
  for (const auto& [room, others] : kMayInclude) {
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

std::vector<std::string> LinesOf(const fs::path& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(IncludeDirectionTest, RoomsIncludeOnlyWhatTheyMay) {
  const std::regex quoted(R"re(^\s*#\s*include "([^"]*)")re");
  const fs::path root(PREPOST_SOURCE_DIR);
  for (const auto& [folder, allowed] : kMayInclude) {
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

// Headers that other folders include expose std types only; those marked "Internal to" are not for
// them.
TEST(IncludeDirectionTest, PublicHeadersExposeStdOnly) {
  const std::regex foreign(
      R"re(^#include <(llvm|nlohmann|fmt|CLI|infiniband|graphviz|gvc|cgraph|sodium)[/.])re");
  for (const auto& [folder, allowed] : kMayInclude) {
    if (folder == "tools") continue;  // for the command and the Python package
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
  for (const auto& [folder, allowed] : kMayInclude) {
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
                             "python", "sim", "viz", "tools", "tests", "bench"}) {
    for (const fs::path& source : SourcesIn(folder)) {
      const std::vector<std::string> lines = LinesOf(source);
      EXPECT_TRUE(!lines.empty() && lines.front() == "// SPDX-License-Identifier: Apache-2.0")
          << source;
    }
  }
}

}  // namespace
