// SPDX-License-Identifier: Apache-2.0
//
// What stands above the rows of prepost simulate --sweep, and its plots.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/simulate_fixture.h"

namespace prepost::simulate_sweep_plot_test {
namespace {

using test::SimulateSweepTest;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

// Catches a bandwidth of groups that is one message's.
TEST_F(SimulateSweepTest, BandwidthOfGroupsIsOfAllMessages) {
  const auto plot = [&](const std::string& groups) {
    const std::string file = folder_ / "groups.svg";
    Simulate({"--nodes", "4", "--message-bytes", "1MiB", "--sweep", "groups=" + groups,
              "--executor", "offload", "--plot", file, "--plot-y", "bandwidth"});
    return test::ReadText(file);
  };
  const std::string svg = plot("1,8");
  EXPECT_THAT(svg, HasSubstr("all messages"));
  EXPECT_THAT(svg, HasSubstr(">100 Gbit/s<")) << "one message has at most 50";
}

// Catches a skew of groups that is none, and heads that do not say what is other than in the
// profile.
TEST_F(SimulateSweepTest, PlotsSaySkewOfGroupsAndWhatDeviates) {
  const std::string file = folder_ / "skew.svg";
  const std::string text = Simulate(
      {"--nodes", "4", "--message-bytes", "1MiB", "--groups", "2", "--set", "host.poll=1us",
       "--sweep", "host.completion=1us,2us,3us", "--plot", file, "--plot-y", "skew"});
  EXPECT_THAT(text, HasSubstr(", but --set host.poll=1us, --groups 2\n"));
  EXPECT_THAT(text, HasSubstr("\nall groups are complete at\n"));
  const std::string svg = test::ReadText(file);
  EXPECT_THAT(svg, HasSubstr(", but --set host.poll=1us, --groups 2"));
  EXPECT_THAT(svg, HasSubstr(">preposted<"));
}

// Catches heads, and rows, that state what does not hold in them: a seed that is another in each
// row.
TEST_F(SimulateSweepTest, HeadsSayWhatAllRowsHave) {
  const std::vector<std::string> base = {"--nodes", "4",     "--message-bytes",
                                         "1MiB",    "--set", "host.poll=1us"};
  const auto sweep = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), base.begin(), base.end());
    const Json json = SimulateJson(flags);
    const std::string text = Simulate(flags);
    std::string head;
    for (const Json& it : json["deviations"])
      head += (head.empty() ? ", but " : ", ") + it.get<std::string>();
    EXPECT_THAT(text, HasSubstr(".json)" + head + "\n"));
    return std::pair(json["deviations"], json["rows"][1]["simulation"]["deviations"]);
  };
  using Words = std::vector<std::string>;
  const auto [seeds, with_seed] =
      sweep({"--preempt", "rate=1,for=1us", "--seed", "3", "--sweep", "seed=1,2"});
  EXPECT_EQ(seeds, Json(Words{"--set host.poll=1us", "--preempt rate=1,for=1us"}));
  EXPECT_EQ(with_seed, Json(Words{"--set host.poll=1us", "--preempt rate=1,for=1us", "seed 2"}));
  const auto [preempts, with_preempt] =
      sweep({"--sweep", "preempt=rate=1,for=1us;rate=2,for=1us", "--seed", "3"});
  EXPECT_EQ(preempts, Json(Words{"--set host.poll=1us", "seed 3"}));
  EXPECT_EQ(with_preempt, Json(Words{"--set host.poll=1us", "--preempt rate=2,for=1us", "seed 3"}));
}

// Catches what the plan is that a head leaves out, or states although rows differ in it.
TEST_F(SimulateSweepTest, HeadsSayWhichPlanAllRowsHave) {
  const std::string file = folder_ / "plot.svg";
  const auto head = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"--nodes", "4", "--message-bytes", "1MiB", "--algorithm",
                                 "binomial_pipeline", "--plot", file, "--sweep"});
    const std::string text = Simulate(flags);
    const std::string plan = text.substr(text.find('\n') + 1);
    const std::string line = plan.substr(0, plan.find('\n'));
    EXPECT_THAT(test::ReadText(file), HasSubstr(">" + line + "<"));
    return text.substr(text.find(".json)") + 6, text.find('\n') - text.find(".json)") - 6) + "; " +
           line;
  };
  EXPECT_EQ(head({"block-bytes=1MiB", "--root", "3", "--order", "3,0,2,1", "--mode", "managed",
                  "--masters", "lane", "--send-window", "none"}),
            ", but --mode managed, --masters lane, --order 3,0,2,1; binomial_pipeline, 4 nodes, "
            "root 3, 1048576 bytes, blocks of 1048576, ready barrier, send window none");
  EXPECT_EQ(head({"root=1,2", "--block-bytes", "1MiB", "--ready", "window=2", "--sweep",
                  "send-window=1,2"}),
            "; binomial_pipeline, 4 nodes, 1048576 bytes, blocks of 1048576, ready window=2");
}

// Catches lines that go back and forth, and an axis that goes by which value stands first.
TEST_F(SimulateSweepTest, CurvesAreOfSortedPointsAndRowsAreNot) {
  const auto plot = [&](const std::string& values) {
    const std::string file = folder_ / "plot.svg";
    Simulate({"--nodes", "4", "--message-bytes", "1MiB", "--sweep", "block-bytes=" + values,
              "--plot", file});
    return test::ReadText(file);
  };
  EXPECT_EQ(plot("64KiB,1MiB,256KiB,16KiB"), plot("16KiB,64KiB,256KiB,1MiB"));
  const std::string file = folder_ / "rates.svg";
  Simulate({"--nodes", "4", "--message-bytes", "1MiB", "--sweep",
            "network.host_rate=10Gbit/s,20Gbit/s,40Gbit/s,80Gbit/s", "--plot", file});
  EXPECT_THAT(test::ReadText(file), HasSubstr(">20 Gbit/s<")) << "as rates are told everywhere";
  const Json json = SimulateJson(
      {"--nodes", "4", "--message-bytes", "1MiB", "--sweep", "block-bytes=1MiB,16KiB"});
  EXPECT_EQ(json["rows"][0]["values"]["block_bytes"], 1 << 20);
}

// Catches a curve that is not drawn, and pictures that differ from run to run.
TEST_F(SimulateSweepTest, PlotHasACurvePerExecutorAndCombination) {
  const std::string file = folder_ / "plot.svg";
  const std::vector<std::string> flags = {"--nodes",         "4",
                                          "--message-bytes", "4MiB",
                                          "--sweep",         "block-bytes=64KiB:4MiB:x4",
                                          "--sweep",         "wait=polling,interrupt",
                                          "--plot",          file};
  Simulate(flags);
  const std::string svg = test::ReadText(file);
  for (const char* name : {"CPU-driven, wait polling", "CPU-driven, wait interrupt", ">preposted<",
                           "modelled, with the profile Fractus", ">256 KiB<"}) {
    EXPECT_THAT(svg, HasSubstr(name));
  }
  EXPECT_THAT(svg, Not(HasSubstr("preposted, wait"))) << "hosts do not change it";
  Simulate(flags);
  EXPECT_EQ(test::ReadText(file), svg);
}

// The executor of a curve says what that key has. Catches curves that say it twice, or are drawn
// twice.
TEST_F(SimulateSweepTest, SweptExecutorsAreCurves) {
  const std::string file = folder_ / "plot.svg";
  Simulate({"--message-bytes", "64KiB", "--sweep", "nodes=2,4", "--sweep",
            "executor=cpu,offload,both", "--plot", file});
  const std::string svg = test::ReadText(file);
  EXPECT_THAT(svg, HasSubstr(">preposted<"));
  EXPECT_THAT(svg, HasSubstr(">CPU-driven<"));
  EXPECT_THAT(svg, Not(HasSubstr("executor")));
}

// Catches points of several combinations on one curve, which are labelled alike: by the stems of
// files in two folders, or by times that differ in the seventh digit.
TEST_F(SimulateSweepTest, CurvesAreOfCombinationsNotOfLabels) {
  const std::string first = folder_ / "first/p.json", second = folder_ / "second/p.json",
                    file = folder_ / "plot.svg";
  for (const auto& [name, path] : {std::pair("fractus", first), {"sierra", second}}) {
    std::filesystem::create_directory(std::filesystem::path(path).parent_path());
    std::filesystem::copy_file(test::ProfilePath(name), path);
  }
  const auto plot = [&](const std::string& others) {
    test::OutputOf({"simulate", "--profile", test::ProfilePath("fractus"), "--message-bytes",
                    "1MiB", "--executor", "cpu", "--sweep", "nodes=4,8", "--sweep", others,
                    "--plot", file});
    return test::ReadText(file);
  };
  const std::string profiles = plot("profile=" + first + "," + second);
  EXPECT_THAT(profiles, HasSubstr(">CPU-driven, " + first + "<"));
  EXPECT_THAT(profiles, HasSubstr(">CPU-driven, " + second + "<"));
  EXPECT_THAT(profiles, Not(HasSubstr(">CPU-driven, p<")));
  const std::string times = plot("host.completion=1us,1.000001us");
  EXPECT_THAT(times, HasSubstr(">CPU-driven, host.completion 1 µs<"));
  EXPECT_THAT(times, HasSubstr(">CPU-driven, host.completion 1.000001 µs,<"));
}

}  // namespace
}  // namespace prepost::simulate_sweep_plot_test
