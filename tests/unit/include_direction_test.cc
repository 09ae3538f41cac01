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

const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"ir", {"ir"}},
    {"compiler", {"compiler", "ir"}},
    {"runtime", {"runtime", "ir"}},
    {"backends/nic", {"backends/nic", "runtime", "ir"}},
    {"backends/emulated", {"backends/emulated", "backends/nic", "runtime", "ir"}},
    {"backends/mlx5", {"backends/mlx5", "backends/nic", "runtime", "ir"}},
    {"viz", {"viz", "ir", "runtime", "backends/nic"}},
};

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

TEST(IncludeDirectionTest, FoldersIncludeOnlyWhatTheyMay) {
  const std::regex quoted(R"re(^\s*#\s*include ")re");
  const std::regex include(R"re("prepost/(backends/[a-z0-9]+|[a-z]+)/[a-z0-9_]+\.h")re");
  for (const auto& [folder, allowed] : kMayInclude) {
    const std::vector<fs::path> sources = SourcesIn(folder);
    EXPECT_FALSE(sources.empty()) << folder;
    for (const fs::path& source : sources) {
      for (const std::string& line : LinesOf(source)) {
        std::smatch match;
        if (!std::regex_search(line, quoted) || line == R"(#include "prepost/version.h")") continue;
        EXPECT_TRUE(std::regex_search(line, match, include) && allowed.contains(match[1]))
            << source << ": " << line;
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

TEST(IncludeDirectionTest, OneFileIncludesMlx5dv) {
  for (const auto& [folder, allowed] : kMayInclude) {
    for (const fs::path& source : SourcesIn(folder)) {
      if (source.filename() == "rdma_core.cc") continue;
      for (const std::string& line : LinesOf(source)) {
        const bool includes =
            line.starts_with("#include") && line.find("infiniband") != std::string::npos;
        EXPECT_FALSE(includes) << source;
      }
    }
  }
}

TEST(IncludeDirectionTest, EverySourceNamesItsLicence) {
  for (const char* folder :
       {"ir", "compiler", "runtime", "backends", "viz", "tools", "tests", "bench"}) {
    for (const fs::path& source : SourcesIn(folder)) {
      const std::vector<std::string> lines = LinesOf(source);
      EXPECT_TRUE(!lines.empty() && lines.front() == "// SPDX-License-Identifier: Apache-2.0")
          << source;
    }
  }
}

}  // namespace
