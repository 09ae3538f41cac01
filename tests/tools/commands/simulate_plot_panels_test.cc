// SPDX-License-Identifier: Apache-2.0
//
// prepost simulate --sweep --plot with more curves than one panel can show, and with none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/temp_folder.h"

namespace prepost::simulate_plot_panels_test {
namespace {

using ::testing::HasSubstr;

class SimulatePlotTest : public ::testing::Test {
 protected:
  /// The picture and the CSV of a sweep.
  std::string Plot(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"simulate", "--profile", test::ProfilePath("fractus"), "--plot",
                                 plot_, "--csv", csv_});
    test::OutputOf(flags);
    EXPECT_TRUE(std::filesystem::exists(csv_));
    return test::ReadText(plot_);
  }
  static size_t Occurrences(const std::string& text, const std::string& part) {
    size_t count = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++count;
    return count;
  }

  test::TempFolder folder_;
  const std::string plot_ = folder_ / "plot.svg", csv_ = folder_ / "sweep.csv";
};

// Two executors and nine sizes of groups, as in the docs: catches curves that are refused after all
// has been simulated, are left out, or lose their names.
TEST_F(SimulatePlotTest, APanelPerExecutor) {
  const std::string svg = Plot({"--message-bytes", "256KiB", "--sweep",
                                "block-bytes=64KiB:256KiB:x2", "--sweep", "nodes=2:512:x2"});
  EXPECT_EQ(Occurrences(svg, ">preposted</text>"), 1u);
  EXPECT_EQ(Occurrences(svg, ">CPU-driven</text>"), 1u);
  for (int nodes = 2; nodes <= 512; nodes *= 2)
    EXPECT_EQ(Occurrences(svg, ">nodes " + std::to_string(nodes) + "</text>"), 2u) << nodes;
}

// Catches names that neither the title nor the curve says.
TEST_F(SimulatePlotTest, APanelPerValueOfAKey) {
  const std::string svg = Plot({"--message-bytes", "64KiB", "--executor", "cpu", "--sweep",
                                "block-bytes=16KiB:64KiB:x2", "--sweep", "nodes=2:10:+2", "--sweep",
                                "wait=polling,hybrid,interrupt"});
  for (const char* title :
       {">wait polling</text>", ">wait hybrid</text>", ">wait interrupt</text>"})
    EXPECT_EQ(Occurrences(svg, title), 1u) << title;
  EXPECT_EQ(Occurrences(svg, ">CPU-driven, nodes 10</text>"), 3u);
}

// Catches an executor that the keys leave as it is in one panel alone.
TEST_F(SimulatePlotTest, WhatAllPanelsHaveIsInEach) {
  const std::string svg =
      Plot({"--nodes", "4", "--message-bytes", "64KiB", "--sweep", "block-bytes=16KiB:64KiB:x2",
            "--sweep", "wait=polling,hybrid", "--sweep", "host.completion=0us:7us:+1us"});
  EXPECT_EQ(Occurrences(svg, ">preposted</text>"), 2u);
  EXPECT_EQ(Occurrences(svg, ">CPU-driven, host.completion 7 µs</text>"), 2u);
}

// A chain is a kary_chain of one. Catches a curve that lies below another and is not to be seen.
TEST_F(SimulatePlotTest, CurvesThatCoincideHaveOneLine) {
  const std::string svg =
      Plot({"--message-bytes", "64KiB", "--nodes", "5", "--executor", "cpu", "--sweep",
            "block-bytes=16KiB:64KiB:x2", "--sweep", "algorithm=chain,kary_chain=1,sequential"});
  EXPECT_EQ(Occurrences(svg, ">CPU-driven, chain,</text>"), 1u);
  EXPECT_EQ(Occurrences(svg, ">CPU-driven, kary_chain=1</text>"), 1u);
  EXPECT_EQ(Occurrences(svg, ">CPU-driven, sequential</text>"), 1u);
}

// There is no preposting over TCP. Catches a curve that is taken for all combinations', since they
// have no other.
TEST_F(SimulatePlotTest, ACurveOfOneCombinationSaysWhichOne) {
  const std::string svg =
      Plot({"--message-bytes", "64KiB", "--sweep", "nodes=2,4", "--sweep",
            "profile=" + test::ProfilePath("tcp-10g") + "," + test::ProfilePath("fractus")});
  EXPECT_EQ(Occurrences(svg, ">preposted, fractus</text>"), 1u);
  EXPECT_EQ(Occurrences(svg, ">preposted</text>"), 0u);
}

// The size of panels, their titles and their number: whole keys first, parts of one where there are
// too many values.
TEST_F(SimulatePlotTest, AKeyOfManyValuesIsCut) {
  const std::string svg = Plot({"--message-bytes", "64KiB", "--executor", "cpu", "--sweep",
                                "nodes=2,3", "--sweep", "block-bytes=1KiB:24KiB:+1KiB"});
  EXPECT_EQ(Occurrences(svg, ">block-bytes 1 KiB to 12 KiB</text>"), 1u);
  EXPECT_EQ(Occurrences(svg, ">block-bytes 13 KiB to 24 KiB</text>"), 1u);
  EXPECT_EQ(Occurrences(svg, ">CPU-driven, block-bytes 24 KiB</text>"), 1u);
}

// Catches a sweep of hours that ends in no picture.
TEST_F(SimulatePlotTest, TooManyCurvesAreRefusedBeforeAnyRun) {
  test::ExpectRefused({"simulate", "--profile", test::ProfilePath("fractus"), "--message-bytes",
                       "1GiB", "--block-bytes", "64KiB", "--sweep", "seed=1,2", "--sweep",
                       "nodes=2:512:+1", "--plot", plot_, "--csv", csv_},
                      2, "--plot: 1022 curves do not fit in 24 panels of 12", folder_);
  EXPECT_FALSE(std::filesystem::exists(csv_));
}

// Catches figures that are thrown away because they have no place in a plot.
TEST_F(SimulatePlotTest, WhatCannotBeDrawnIsToldNevertheless) {
  test::Command run({"simulate", "--profile", test::ProfilePath("fractus"), "--message-bytes",
                     "64KiB", "--sweep", "nodes=1", "--plot-y", "of-bound", "--plot", plot_,
                     "--csv", csv_});
  EXPECT_EQ(run.Wait(), 1);
  EXPECT_THAT(run.err(), HasSubstr("--plot: there is nothing to plot"));
  EXPECT_THAT(run.out(), HasSubstr("modelled, with the profile Fractus"));
  EXPECT_THAT(test::ReadText(csv_), HasSubstr("completion_seconds"));
  EXPECT_FALSE(std::filesystem::exists(plot_));
}

}  // namespace
}  // namespace prepost::simulate_plot_panels_test
