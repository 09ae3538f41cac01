// SPDX-License-Identifier: Apache-2.0
//
// prepost draw from outside: formats by suffix, the same bytes from run to run, what is refused,
// and the README's picture.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/command.h"
#include "tests/support/golden.h"
#include "tests/support/temp_folder.h"

namespace prepost {
namespace {

using test::Command;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class DrawTest : public ::testing::Test {
 protected:
  void Compile(const std::string& nodes, const std::string& blocks) {
    ASSERT_EQ(Command({"compile", "--nodes", nodes, "--message-bytes", blocks, "--block-bytes", "1",
                       "-o", plan_})
                  .Wait(),
              0);
  }
  /// Draws to `name` and gives what was written.
  std::string Draw(const std::string& name, std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), {"draw", plan_, "-o", folder_ / name});
    Command draw(flags);
    EXPECT_EQ(draw.Wait(), 0) << draw.err();
    EXPECT_EQ(draw.out(), "");
    return test::ReadText(folder_ / name);
  }
  void ExpectRefused(std::vector<std::string> flags, int code, const std::string& message) {
    flags.insert(flags.begin(), {"draw", plan_});
    Command draw(flags);
    EXPECT_EQ(draw.Wait(), code);
    EXPECT_THAT(draw.err(), HasSubstr(message));
    EXPECT_EQ(draw.err_lines(), 1u) << draw.err();
    EXPECT_EQ(test::CountFiles(folder_.path()), 1u);
  }

  test::TempFolder folder_;
  const std::string plan_ = folder_ / "plan.json";
};

TEST_F(DrawTest, FormatsFollowTheSuffix) {
  Compile("5", "3");
  EXPECT_THAT(Draw("a.svg"), HasSubstr("<svg"));
  EXPECT_THAT(Draw("a.html"), HasSubstr("<svg"));
  EXPECT_THAT(Draw("a.html"), HasSubstr("<html"));
  EXPECT_THAT(Draw("g.dot", {"--view", "graph"}), StartsWith("digraph"));
  EXPECT_THAT(Draw("g.svg", {"--view", "graph"}), HasSubstr("<svg"));
  Command to_stdout({"draw", plan_});
  EXPECT_EQ(to_stdout.Wait(), 0);
  EXPECT_EQ(to_stdout.out(), Draw("a.svg"));
}

// Addresses, hash orders or dates that get into a picture show only between processes.
TEST_F(DrawTest, TheSameBytesFromRunToRun) {
  Compile("13", "10");
  for (const char* view : {"spacetime", "graph"}) {
    const std::string once = Draw("once.svg", {"--view", view});
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(Draw("again.svg", {"--view", view}) == once) << view;
  }
}

TEST_F(DrawTest, RefusesWithTheFlagsThatNarrow) {
  Compile("16", "32");
  ExpectRefused({"--view", "graph", "-o", folder_ / "g.svg"}, 1, "--rounds");
  ExpectRefused({"--view", "grpah"}, 2, "did you mean 'graph'?");
  ExpectRefused({"-o", folder_ / "a.sgv"}, 2, "did you mean 'svg'?");
  ExpectRefused({"-o", folder_ / "a.dot"}, 2, "--view graph");
  ExpectRefused({"--rounds", "5:2"}, 2, "rounds");
  ExpectRefused({"--node", "16"}, 1, "16");
}

TEST_F(DrawTest, TheReadmesPicture) {
  ASSERT_EQ(Command({"compile", "--nodes", "8", "--message-bytes", "4MiB", "-o", plan_}).Wait(), 0);
  test::ExpectGolden("../../docs/images/pipeline-8.svg", Draw("a.svg"));
}

}  // namespace
}  // namespace prepost
