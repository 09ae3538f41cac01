// SPDX-License-Identifier: Apache-2.0
//
// prepost simulate --seeds from outside: statistics that are those of the single runs, in every
// form in which they are printed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/read_csv.h"
#include "tests/support/simulate_fixture.h"

namespace prepost::simulate_seeds_test {
namespace {

using test::Command;
using test::ReadCsv;
using test::SimulateSweepTest;
using test::SimulateTest;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr std::array kNames = {"mean", "deviation", "min", "p5", "p50", "p95", "max"};
const std::vector<std::string> kNoise = {"--preempt", "hosts=2,rate=5000,for=20us", "--slow",
                                         "hosts=1,factor=0.5"};

std::vector<std::string> With(std::vector<std::string> flags,
                              const std::vector<std::string>& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

/// By their definition, apart from the command's code: a percentile is the smallest figure that so
/// many do not exceed.
std::map<std::string, double> StatisticsOf(const std::vector<double>& figures) {
  const auto count = static_cast<double>(figures.size());
  double sum = 0, squares = 0;
  for (const double it : figures) sum += it;
  for (const double it : figures) squares += (it - sum / count) * (it - sum / count);
  const auto percentile = [&](double share) {
    double least = std::ranges::max(figures);
    for (const double it : figures) {
      const auto below = static_cast<double>(
          std::ranges::count_if(figures, [&](double other) { return other <= it; }));
      if (below >= share * count) least = std::min(least, it);
    }
    return least;
  };
  return {{"mean", sum / count},
          {"deviation", std::sqrt(squares / (count - 1))},
          {"min", percentile(0)},
          {"p5", percentile(0.05)},
          {"p50", percentile(0.5)},
          {"p95", percentile(0.95)},
          {"max", std::ranges::max(figures)}};
}

void ExpectStatistics(const Json& found, const std::vector<double>& figures,
                      const std::string& of) {
  ASSERT_EQ(found.size(), kNames.size()) << of << found;
  for (const auto& [name, value] : StatisticsOf(figures)) {
    EXPECT_NEAR(found[name].get<double>(), value, 1e-9 * std::abs(value) + 1e-15)
        << of << " " << name;
  }
}

// Catches runs with other seeds than they say, figures of one executor under the other's name, and
// deviations of what is no sample.
TEST_F(SimulateTest, StatisticsAreThoseOfTheRuns) {
  const Json json = SimulateJson(With(kNoise, {"--seed", "5", "--seeds", "7"}));
  EXPECT_EQ(json["format"], "prepost.simulation_statistics");
  EXPECT_EQ(json["modelled"], true);
  EXPECT_EQ(json["seeds"], Json({{"first", 5}, {"count", 7}}));
  EXPECT_EQ(json["message_bytes"], 8 << 20);
  std::vector<Json> runs;
  for (int seed = 5; seed < 12; ++seed)
    runs.push_back(SimulateJson(With(kNoise, {"--seed", std::to_string(seed)})));
  const auto expect = [&](const Json& found, const std::string& pointer) {
    std::vector<double> figures;
    for (const Json& run : runs) figures.push_back(run[Json::json_pointer(pointer)].get<double>());
    ExpectStatistics(found, figures, pointer);
  };
  for (const std::string executor : {"offload", "cpu"}) {
    for (const std::string key :
         {"completion_seconds", "known_seconds", "skew_seconds", "of_bound"})
      expect(json[executor][key], "/" + executor + "/" + key);
    std::vector<double> bandwidths;
    for (const Json& run : runs) {
      bandwidths.push_back(run["message_bytes"].get<double>() /
                           run[executor]["completion_seconds"].get<double>());
    }
    ExpectStatistics(json[executor]["bandwidth_bytes_per_second"], bandwidths, "bandwidth");
  }
  expect(json["bound_seconds"], "/bound_seconds");
  expect(json["gain"]["completion"], "/gain/completion");
  expect(json["gain"]["known"], "/gain/known");
  EXPECT_GT(json["cpu"]["completion_seconds"]["deviation"], 0);
  ASSERT_EQ(json["runs"].size(), runs.size());
  for (size_t i = 0; i < runs.size(); ++i) {
    EXPECT_EQ(json["runs"][i]["seed"], runs[i]["seed"]);
    EXPECT_EQ(json["runs"][i]["bound_seconds"], runs[i]["bound_seconds"]);
    EXPECT_EQ(json["runs"][i]["cpu"]["skew_seconds"], runs[i]["cpu"]["skew_seconds"]);
  }
}

// Catches a head that names the hosts, or the seed, of one of the runs; and results that depend on
// how many run at a time.
TEST_F(SimulateTest, TheHeadIsOfAllSeeds) {
  const std::string text = Simulate(With(kNoise, {"--seeds", "4"}));
  EXPECT_THAT(text, HasSubstr(", but --slow hosts=1,factor=0.5, --preempt "
                              "hosts=2,rate=5000,for=20us, seeds 1 to 4: "));
  EXPECT_THAT(text,
              AllOf(HasSubstr("\npreposted, inline, hybrid "), HasSubstr("\nCPU-driven, hybrid "),
                    HasSubstr("\nCPU-driven / preposted "), Not(HasSubstr("(host"))));
  for (const char* name : kNames) EXPECT_THAT(text, HasSubstr(std::string("\n  ") + name + " "));
  EXPECT_EQ(Simulate(With(kNoise, {"--seeds", "4", "--jobs", "1"})), text);
  const Json json = SimulateJson(With(kNoise, {"--seeds", "4"}));
  EXPECT_EQ(json["deviations"].back(), "seeds 1 to 4");
  EXPECT_THAT(json["command"].get<std::string>(), HasSubstr(" --seeds 4"));
  EXPECT_FALSE(json.contains("seed"));
}

TEST_F(SimulateTest, GroupsHaveTheirAggregate) {
  const std::vector<std::string> flags = {"--groups", "2", "--preempt", "rate=5000,for=20us"};
  const Json json = SimulateJson(With(flags, {"--seeds", "3"}));
  std::vector<double> bandwidths;
  for (const char* seed : {"1", "2", "3"}) {
    bandwidths.push_back(
        SimulateJson(With(flags, {"--seed", seed}))["cpu"]["aggregate_bytes_per_second"]);
  }
  ExpectStatistics(json["cpu"]["aggregate_bytes_per_second"], bandwidths, "aggregate");
  EXPECT_THAT(Simulate(With(flags, {"--seeds", "3"})),
              testing::ContainsRegex("  groups complete +of bound "));
}

// Catches columns without their statistic, or with that of another row.
TEST_F(SimulateSweepTest, EachRowHasStatistics) {
  const std::vector<std::string> flags = {
      "--message-bytes", "1MiB",      "--preempt", "rate=5000,for=20us",    "--seeds", "5",
      "--sweep",         "nodes=4,8", "--sweep",   "wait=polling,interrupt"};
  const Json sweep = SimulateJson(flags);
  const auto lines = ReadCsv(Simulate(With(flags, {"--csv", "-"})));
  ASSERT_EQ(sweep["rows"].size(), 4u);
  ASSERT_EQ(lines.size(), 8u);
  EXPECT_EQ(sweep["deviations"].back(), "seeds 1 to 5");
  for (size_t i = 0; i < lines.size(); ++i) {
    const Json& row = sweep["rows"][i / 2];
    const std::string executor = i % 2 == 0 ? "offload" : "cpu";
    EXPECT_EQ(lines[i].at("executor"), executor);
    EXPECT_EQ(lines[i].at("first_seed"), "1");
    EXPECT_EQ(lines[i].at("seeds"), "5");
    for (const std::string name : kNames) {
      const auto expect = [&](const std::string& column, const Json& value) {
        EXPECT_EQ(std::stod(lines[i].at(column + "." + name)), value[name].get<double>()) << column;
      };
      for (const std::string key : {"completion_seconds", "known_seconds", "skew_seconds",
                                    "of_bound", "bandwidth_bytes_per_second"}) {
        expect(key, row["simulation"][executor][key]);
      }
      expect("gain", row["simulation"]["gain"]["completion"]);
      expect("bound_seconds", row["simulation"]["bound_seconds"]);
    }
  }
  const Json alone = SimulateJson({"--message-bytes", "1MiB", "--preempt", "rate=5000,for=20us",
                                   "--seeds", "5", "--nodes", "8", "--wait", "polling"});
  EXPECT_EQ(alone["cpu"], sweep["rows"][2]["simulation"]["cpu"]);
  EXPECT_EQ(alone["runs"], sweep["rows"][2]["simulation"]["runs"]);
  const std::string text = Simulate(flags);
  EXPECT_THAT(text, HasSubstr("\nall nodes have it after, 5 seeds each\n"));
  EXPECT_THAT(text, testing::ContainsRegex("\n +8  interrupt  CPU-driven "));
}

// Catches rows that are lost because others draw nothing, or a failure that says nothing of its
// seed.
TEST_F(SimulateSweepTest, RowsThatDrawNothingOrFail) {
  const Json sweep =
      SimulateJson({"--message-bytes", "1MiB", "--nodes", "4", "--executor", "cpu", "--seeds", "3",
                    "--sweep", "slow=1=0.5;random=0.5,factor=0.5;9=0.5"});
  const Json& rows = sweep["rows"];
  EXPECT_EQ(rows[0]["simulation"]["cpu"]["completion_seconds"]["deviation"], 0);
  EXPECT_EQ(rows[0]["simulation"]["deviations"], Json::array({"--slow 1=0.5"}));
  EXPECT_EQ(rows[0]["simulation"]["runs"].size(), 3u);
  EXPECT_EQ(rows[0]["simulation"]["runs"][2]["seed"], 3);
  EXPECT_GT(rows[1]["simulation"]["cpu"]["completion_seconds"]["deviation"], 0);
  EXPECT_THAT(rows[2]["error"].get<std::string>(), HasSubstr("no node '9'"));
  EXPECT_EQ(rows[2]["simulation"], nullptr);
}

// Catches a band that is not drawn, or that no reader is told of.
TEST_F(SimulateSweepTest, PlotsHaveABand) {
  const std::string file = folder_ / "seeds.svg";
  const auto plot = [&](const std::vector<std::string>& more) {
    Simulate(With({"--message-bytes", "1MiB", "--preempt", "rate=5000,for=20us", "--executor",
                   "cpu", "--sweep", "nodes=4,8,16", "--plot", file},
                  more));
    return test::ReadText(file);
  };
  const std::string svg = plot({"--seeds", "6"});
  EXPECT_THAT(svg, AllOf(HasSubstr(">median of 6 seeds;<"), HasSubstr(">band: 5th to 95th<"),
                         HasSubstr(">percentile<"), HasSubstr("seeds 1 to 6"),
                         HasSubstr("PolyCollection"), HasSubstr(">CPU-driven<")));
  EXPECT_EQ(plot({"--seeds", "6"}), svg);
  EXPECT_NE(plot({"--seeds", "5"}), svg);
  for (const char* y : {"known", "bandwidth", "of-bound", "skew"})
    EXPECT_THAT(plot({"--seeds", "3", "--plot-y", y}), HasSubstr("PolyCollection")) << y;
  EXPECT_THAT(plot({}), AllOf(Not(HasSubstr("PolyCollection")), Not(HasSubstr("median"))));
}

TEST_F(SimulateTest, RefusesWhatIsOfOneRun) {
  const auto expect = [&](std::vector<std::string> flags, const std::string& message) {
    ExpectRefused(
        With({"--profile", test::ProfilePath("fractus"), "--preempt", "rate=9,for=9us"}, flags), 2,
        message);
  };
  expect({"--seeds", "3", "--trace", folder_ / "t.json"}, "--trace is of one run, not of --seeds");
  expect({"--seeds", "3", "--per-node"}, "--per-node is of one run, not of --seeds");
  expect({"--seeds", "3", "--causes", "--json"}, "--causes is of one run, not of --seeds");
  expect({"--seeds", "3", "--sweep", "seed=1,2"}, "--sweep seed: --seeds has one seed after");
  expect({"--sweep", "seeds=2,3"}, "--sweep: unknown key 'seeds'");
  expect({"--seeds", "1"}, "--seeds: ");
  expect({"--seeds", "3", "--seed", "18446744073709551614"},
         "--seeds: from seed 18446744073709551614 on there are no 3");
  expect({"--seeds", "50001", "--sweep", "groups=1,2"},
         "--seeds: 2 rows with 50001 seeds each, the limit is 100000 runs");
  expect({"--jobs", "2"}, "--jobs is for --sweep and --seeds");
  expect({"--seeds", "3", "--plot", "a.svg"}, "--plot is for --sweep");
  const std::string nothing = "--seeds: nothing is drawn, so all seeds give the same";
  ExpectRefused({"--profile", test::ProfilePath("fractus"), "--seeds", "3"}, 2, nothing);
  ExpectRefused({"--profile", test::ProfilePath("fractus"), "--seeds", "3", "--sweep",
                 "wait=polling,hybrid", "--neighbours", "count=1,slice=1ms"},
                2, nothing);
  ExpectRefused(
      {"--profile", test::ProfilePath("fractus"), "--seeds", "3", "--slow", "hosts=9,factor=0.5"},
      1, "9 hosts, and there are 8");
}

// Catches the same figures over and over where hosts have nothing to do.
TEST_F(SimulateTest, SaysThatSeedsChangeNothing) {
  Command command({"simulate", plan_, "--profile", test::ProfilePath("fractus"), "--executor",
                   "offload", "--preempt", "rate=5000,for=20us", "--seeds", "3"});
  ASSERT_EQ(command.Wait(), 0) << command.err();
  EXPECT_THAT(command.err(), HasSubstr("note: all seeds give the same"));
}

}  // namespace
}  // namespace prepost::simulate_seeds_test
