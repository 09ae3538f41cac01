// SPDX-License-Identifier: Apache-2.0
//
// Warnings, as a user sees them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/command.h"
#include "tests/support/temp_folder.h"

namespace prepost::warnings_test {
namespace {

using test::Command;

// Catches a warning per file of a large folder, and one that is lost.
TEST(WarningsTest, ThreeOfAKindAndHowManyMore) {
  test::TempFolder folder;
  const std::string plan = folder / "plan";
  Command compile(
      {"compile", "--nodes", "6", "--message-bytes", "1", "--encoding", "shards", "-o", plan});
  ASSERT_EQ(compile.Wait(), 0) << compile.err();
  for (const auto& entry : std::filesystem::directory_iterator(plan)) {
    std::string text = test::ReadText(entry.path());
    const std::string known = "\"version\": \"1.0\"";
    text.replace(text.find(known), known.size(), "\"version\": \"1.9\"");
    std::ofstream(entry.path()) << text;
  }
  Command verify({"verify", plan});
  EXPECT_EQ(verify.Wait(), 0);
  const std::string begin = "prepost: warning: " + plan + ": ";
  const std::string warning = "version 1.9 is newer than 1.1, which this program knows\n";
  EXPECT_EQ(verify.err(), begin + "index.json: " + warning + begin + "node-00000.json: " + warning +
                              begin + "node-00001.json: " + warning + begin +
                              "4 more times: " + warning);
}

}  // namespace
}  // namespace prepost::warnings_test
