// SPDX-License-Identifier: Apache-2.0
//
// prepost simulate --causes and --trace, and compare --clock virtual, from outside: figures that
// add up and agree with each other, and what is refused. What they mean is tested where they are
// made (tests/sim/causes/causes_test.cc).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/command.h"
#include "tests/support/simulate_fixture.h"

namespace prepost::simulate_causes_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class SimulateCausesTest : public test::SimulatePlanTest {
 protected:
  SimulateCausesTest() : SimulatePlanTest("6", "4MiB") {}
  /// Of any command.
  void ExpectRefused(std::vector<std::string> arguments, int code, const std::string& message) {
    test::ExpectRefused(arguments, code, message, folder_);
  }

  const std::string profile_ = test::ProfilePath("fractus");
};

/// Times in JSON are picoseconds in seconds.
constexpr double kRounding = 1e-13;

double SumOf(const Json& object) {
  double sum = 0;
  for (const auto& [key, value] : object.items()) {
    if (key != "end_seconds" && key != "node") sum += value.get<double>();
  }
  return sum;
}

// Catches causes that are left out of the output, and folded links that lose what they stand for.
TEST_F(SimulateCausesTest, CausesAddUpInTheOutput) {
  const Json json = Json::parse(Simulate({"--causes", "--json"}));
  const Json plain = Json::parse(Simulate({"--json"}));
  for (const char* executor : {"offload", "cpu"}) {
    SCOPED_TRACE(executor);
    const Json& run = json[executor];
    const bool is_offload = executor == std::string("offload");
    const double completion = run["completion_seconds"].get<double>();
    const Json& ends = run[is_offload ? "node_final_seconds" : "node_known_seconds"];
    EXPECT_EQ(run["node_seconds"], plain[executor]["node_seconds"]) << "telling changes nothing";
    EXPECT_FALSE(plain[executor].contains("critical_path"));
    EXPECT_NEAR(SumOf(run["critical_path_seconds"]), completion, kRounding * 100);
    EXPECT_NEAR(SumOf(run["after_completion_seconds"]),
                run["known_seconds"].get<double>() - completion, kRounding * 100);
    EXPECT_GT(SumOf(run["after_completion_seconds"]), 0);
    double path = 0;
    for (const Json& folded : run["critical_path"]) {
      for (const Json& link : folded["links"]) path += SumOf(link["seconds"]);
    }
    EXPECT_NEAR(path, completion, kRounding * 100);
    ASSERT_EQ(run["time_by_cause"].size(), 6u);
    for (size_t i = 0; i < 6; ++i) {
      const Json& node = run["time_by_cause"][i];
      EXPECT_EQ(node["node"], i);
      EXPECT_EQ(node["end_seconds"], ends[i]);
      EXPECT_NEAR(SumOf(node), node["end_seconds"].get<double>(), kRounding * 100);
    }
    const Json& last = run["last_node"];
    EXPECT_EQ(last, run["time_by_cause"][last["node"].get<size_t>()]);
  }
  const std::string text = Simulate({"--causes"});
  EXPECT_THAT(text, HasSubstr("critical path, preposted: "));
  EXPECT_THAT(text, HasSubstr("critical path, CPU-driven: "));
  EXPECT_THAT(text, HasSubstr("  remote block transfers"));
  EXPECT_THAT(Simulate({}), Not(HasSubstr("critical path")));
}

// Catches groups whose times are reported for another, from another start, or not at all, and
// totals that leave one out.
TEST_F(SimulateCausesTest, EachGroupAddsUp) {
  const std::string workload = folder_ / "workload.json";
  std::ofstream(workload) << R"({"format": "prepost.workload", "version": "1.0", "name": "three",
    "hosts": 8, "groups": [
      {"plan": "plan.json", "hosts": [0, 1, 2, 3, 4, 5]},
      {"plan": "plan.json", "hosts": [0, 2, 1, 5, 6, 7], "start": "1us"},
      {"plan": "plan.json", "hosts": [3, 2, 1, 0, 7, 6], "after": 0}]})";
  const std::vector<std::string> base = {"simulate", "--workload", workload, "--profile",
                                         profile_,   "--causes",   "--set",  "host.cores=1"};
  std::vector<std::string> with_json = base;
  with_json.push_back("--json");
  const Json json = Json::parse(test::OutputOf(with_json));
  for (const char* executor : {"offload", "cpu"}) {
    SCOPED_TRACE(executor);
    const Json& run = json[executor];
    const Json& groups = run["groups"];
    ASSERT_EQ(groups.size(), 3u);
    EXPECT_NEAR(SumOf(run["critical_path_seconds"]), run["completion_seconds"].get<double>(),
                kRounding * 100);
    EXPECT_NEAR(SumOf(run["after_completion_seconds"]),
                run["known_seconds"].get<double>() - run["completion_seconds"].get<double>(),
                kRounding * 100);
    EXPECT_EQ(groups[run["last_group"].get<size_t>()]["completion_seconds"],
              run["completion_seconds"]);
    double path = 0, after = 0, nodes = 0, others = 0;
    for (const Json& group : groups) {
      const double latency = group["latency_seconds"].get<double>();
      EXPECT_NEAR(SumOf(group["critical_path_seconds"]), latency, kRounding * 100);
      EXPECT_NEAR(SumOf(group["after_completion_seconds"]),
                  group["known_seconds"].get<double>() - group["completion_seconds"].get<double>(),
                  kRounding * 100);
      EXPECT_NEAR(SumOf(group["last_node"]), group["last_node"]["end_seconds"].get<double>(),
                  kRounding * 100);
      EXPECT_GE(SumOf(group["last_node"]), latency - kRounding * 100);
      path += latency;
      after += SumOf(group["after_completion_seconds"]);
      nodes += SumOf(group["last_node"]);
      others += group["critical_path_seconds"]["other_groups_sharing"].get<double>();
    }
    EXPECT_GT(others, 0);
    EXPECT_NEAR(SumOf(run["all_critical_paths_seconds"]), path, kRounding * 1000);
    EXPECT_NEAR(SumOf(run["all_after_completion_seconds"]), after, kRounding * 1000);
    EXPECT_NEAR(SumOf(run["all_last_nodes"]), nodes, kRounding * 1000);
  }
  EXPECT_GT(json["cpu"]["all_critical_paths_seconds"]["other_groups_core"], 0);
  const std::string text = test::OutputOf(base);
  EXPECT_THAT(text, HasSubstr("last nodes of all groups"));
  EXPECT_THAT(text, HasSubstr("critical path, preposted, to group 2, the last to be complete"));
  EXPECT_THAT(text, HasSubstr("  group 0 0>1:0 "));
  std::vector<std::string> with_csv = base;
  with_csv.insert(with_csv.end(), {"--sweep", "seed=1", "--csv", "-"});
  EXPECT_THAT(test::OutputOf(with_csv),
              HasSubstr(",all_critical_paths_seconds.other_groups_core,"));
}

// Catches nodes of plans where all else is reported for hosts.
TEST_F(SimulateCausesTest, NodesOfGroupsAreHosts) {
  const std::vector<std::string> base = {"simulate", "--nodes",    "2",       "--message-bytes",
                                         "1MiB",     "--profile",  profile_,  "--groups",
                                         "2",        "--per-node", "--causes"};
  EXPECT_THAT(test::OutputOf(base), HasSubstr("  group 1, node 0 "));
  std::vector<std::string> with_json = base;
  with_json.push_back("--json");
  const Json run = Json::parse(test::OutputOf(with_json))["cpu"];
  EXPECT_EQ(run["groups"][0]["last_node"]["node"], 1);
  EXPECT_EQ(run["groups"][1]["last_node"]["node"], 0);
  EXPECT_EQ(run["last_node"], run["groups"][run["last_group"].get<size_t>()]["last_node"]);
  const bool is_second = run["last_group"] == 1;
  EXPECT_EQ(run["critical_path"][0]["links"][0]["message"],
            is_second ? "group 1 1>0:0" : "group 0 0>1:0");
  // The second alone.
  const std::string workload = folder_ / "turned.json";
  std::ofstream(workload) << R"({"format": "prepost.workload", "version": "1.0", "hosts": 3,
      "groups": [{"hosts": [0, 1], "spec": {"message_bytes": 1}},
                 {"hosts": [2, 0], "spec": {"message_bytes": 1048576}}]})";
  EXPECT_THAT(
      test::OutputOf({"simulate", "--workload", workload, "--profile", profile_, "--causes"}),
      HasSubstr("  group 1 2>0:0 "));
}

TEST_F(SimulateCausesTest, SweepsHaveThemInColumns) {
  const std::string csv = Simulate({"--causes", "--sweep", "seed=1,2", "--csv", "-"});
  EXPECT_THAT(csv, HasSubstr(",last_node.remote_setup_seconds,"));
  EXPECT_THAT(csv, HasSubstr(",critical_path_seconds.wire,"));
}

TEST_F(SimulateCausesTest, FirstBlocksAreCopiedOnRequest) {
  const auto copy = [&](std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--causes", "--json", "--executor", "cpu"});
    return Json::parse(Simulate(flags))["cpu"]["last_node"]["copy_seconds"].get<double>();
  };
  EXPECT_EQ(copy({}), 0);
  EXPECT_GT(copy({"--copy-first-block"}), 0.5 * (1 << 20) / 3.75e9);
}

// Catches traces that the pictures of runs cannot take, times of something else, and pictures of
// what nobody has measured that say so.
TEST_F(SimulateCausesTest, TracesAreDrawnAsThoseOfRuns) {
  for (const std::string executor : {"cpu", "offload"}) {
    const std::string trace = folder_ / (executor + ".json"), picture = folder_ / "run.svg";
    Simulate(
        {"--executor", executor, "--set", "host.poll=1us", "--slow", "3=0.5", "--trace", trace});
    std::ifstream in(trace);
    const Json json = Json::parse(in);
    EXPECT_EQ(json["otherData"]["executor"], executor);
    EXPECT_EQ(json["otherData"]["detail"],
              "modelled, with the profile Fractus, but --set host.poll=1us, --slow 3=0.5");
    for (const char* view : {"spacetime", "tree"}) {
      test::OutputOf({"draw", plan_, "--trace", trace, "--view", view, "-o", picture});
      EXPECT_THAT(test::ReadText(picture), HasSubstr(", modelled<"));
      EXPECT_THAT(
          test::ReadText(picture),
          HasSubstr("; modelled, with the profile Fractus, but --set host.poll=1us, --slow"));
      EXPECT_THAT(test::ReadText(picture), Not(HasSubstr("measured")));
    }
  }
  // Of many flags, so many that the file is still one that can be read.
  std::vector<std::string> many = {"--executor", "cpu", "--trace", folder_ / "many.json"};
  for (int i = 0; i < 99; ++i)
    many.insert(many.end(), {"--delay", "node=1,at=" + std::to_string(i) + "s,for=1us"});
  Simulate(many);
  test::OutputOf({"draw", plan_, "--trace", folder_ / "many.json", "-o", folder_ / "many.svg"});
  EXPECT_THAT(test::ReadText(folder_ / "many.svg"), HasSubstr("...<"));
  const std::vector<std::string> base = {"simulate", plan_, "--profile", profile_, "--trace"};
  const auto expect = [&](std::vector<std::string> flags, const std::string& message) {
    flags.insert(flags.begin(), base.begin(), base.end());
    ExpectRefused(flags, 2, message);
  };
  expect({"t.json"}, "--trace is of one executor");
  expect({"t.json", "--executor", "cpu", "--sweep", "seed=1,2"}, "not for --sweep");
  expect({plan_, "--executor", "cpu"}, "would replace");
  expect({"-", "--executor", "cpu"}, "a file is needed");
}

// Catches wake-ups that are counted and have no time, and such of hosts that never sleep.
TEST_F(SimulateCausesTest, TracesTellWhenHostsWokeUp) {
  for (const std::string executor : {"cpu", "offload"}) {
    for (const std::string wait : {"interrupt", "polling"}) {
      SCOPED_TRACE(executor + " " + wait);
      const std::string trace = folder_ / "trace.json";
      Simulate({"--executor", executor, "--wait", wait, "--trace", trace});
      std::ifstream in(trace);
      const Json hosts = Json::parse(in)["otherData"]["hosts"];
      ASSERT_EQ(hosts.size(), 6u);
      for (const Json& host : hosts) {
        EXPECT_EQ(host["wakeups"] != 0, wait == "interrupt");
        EXPECT_EQ(host.value("wakeups_ns", Json::array()).size(), host["wakeups"]);
      }
    }
  }
}

// Both commands have one default.
TEST_F(SimulateCausesTest, CompareWaitsAsSimulateWhereNothingIsSaid) {
  const std::vector<std::string> base = {"compare", plan_,       "--clock", "virtual",
                                         "--json",  "--profile", profile_};
  std::vector<std::string> hybrid = base;
  hybrid.insert(hybrid.end(), {"--wait", "hybrid"});
  EXPECT_EQ(test::OutputOf(base), test::OutputOf(hybrid));
  EXPECT_EQ(Json::parse(Simulate({"--json"}))["cpu"],
            Json::parse(Simulate({"--json", "--wait", "hybrid"}))["cpu"]);
  const Json compared = Json::parse(test::OutputOf(base))["comparisons"][0];
  EXPECT_EQ(compared["received_ratio"]["of_medians"],
            Json::parse(Simulate({"--json"}))["gain"]["completion"]);
}

// Catches figures that differ from simulate's.
TEST_F(SimulateCausesTest, CompareSaysTheSameOfBothWays) {
  const std::vector<std::string> base = {"compare",   plan_,    "--clock", "virtual",
                                         "--profile", profile_, "--wait",  "polling"};
  std::vector<std::string> with_json = base;
  with_json.push_back("--json");
  const Json json = Json::parse(test::OutputOf(with_json));
  EXPECT_EQ(json["modelled"], true);
  EXPECT_EQ(json["clock"], "virtual");
  EXPECT_EQ(json["profile"]["name"], "Fractus");
  ASSERT_EQ(json["comparisons"].size(), 1u);
  const Json& compared = json["comparisons"][0];
  const Json simulated = Json::parse(Simulate({"--wait", "polling", "--json"}));
  for (const auto& [way, executor] : {std::pair("cpu-driven", "cpu"), {"preposted", "offload"}}) {
    for (const auto& [key, figure] :
         {std::pair("received_ns", "completion_seconds"), {"completion_ns", "known_seconds"}}) {
      EXPECT_NEAR(compared[way][key]["median"].get<double>(),
                  simulated[executor][figure].get<double>() * 1e9, 1e-3);
    }
    EXPECT_EQ(compared[way]["doorbells"], simulated[executor]["doorbells"]);
    EXPECT_EQ(compared[way]["latency_ns"]["count"], 6);
  }
  EXPECT_EQ(compared["cpu-driven"]["work_requests"], simulated["cpu"]["posts"]);
  EXPECT_EQ(compared["preposted"]["work_requests_before"], simulated["offload"]["posts_before"]);
  EXPECT_EQ(compared["received_ratio"]["of_medians"], simulated["gain"]["completion"]);
  EXPECT_EQ(compared["completion_ratio"]["of_medians"], simulated["gain"]["known"]);
  const std::string text = test::OutputOf(base);
  EXPECT_THAT(text, HasSubstr("modelled, with the profile Fractus"));
  EXPECT_THAT(text, HasSubstr("milliseconds, modelled"));
}

// Catches WQEs that are written on the way and counted before the start, arming that has their
// time, doorbells for them that are not counted, and processor time without them.
TEST_F(SimulateCausesTest, RingsThatAreWrittenAgainAreWorkOnTheWay) {
  test::OutputOf({"compile", "--nodes", "4", "--message-bytes", "4MiB", "--block-bytes", "64KiB",
                  "--ready", "window=1", "--send-window", "1", "-o", plan_});
  const auto compare = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(),
                 {"compare", plan_, "--clock", "virtual", "--profile", profile_, "--json"});
    return Json::parse(test::OutputOf(flags))["comparisons"][0]["preposted"];
  };
  const std::string device = PREPOST_SOURCE_DIR "/examples/devices/tiny.json";
  const Json whole = compare({"--wait", "polling"});
  const Json parts = compare({"--wait", "polling", "--device-profile", device});
  EXPECT_EQ(whole["work_requests"], 0);
  EXPECT_EQ(whole["wakeups"], 0);
  EXPECT_EQ(whole["completions_read"], 4);
  EXPECT_GT(parts["work_requests"], parts["work_requests_before"]);
  EXPECT_EQ(parts["work_requests"].get<int>() + parts["work_requests_before"].get<int>(),
            whole["work_requests_before"]);
  EXPECT_GT(parts["doorbells"], whole["doorbells"]);
  EXPECT_GT(parts["completions_read"], whole["completions_read"]);
  EXPECT_EQ(parts["wakeups"], 0);
  const auto figure = [](const Json& way, const char* key) {
    return way[key]["median"].get<double>();
  };
  const double before = parts["work_requests_before"];
  EXPECT_NEAR(figure(parts, "arm_cpu_ns"),
              figure(whole, "arm_cpu_ns") * before / whole["work_requests_before"].get<double>(),
              1e-3);
  const Json asleep = compare({"--wait", "interrupt", "--device-profile", device});
  EXPECT_GT(asleep["wakeups"], 4);
  const Json simulated = Json::parse(
      Simulate({"--wait", "interrupt", "--device-profile", device, "--json"}))["offload"];
  EXPECT_GT(simulated["rearming_seconds"], 0);
  EXPECT_EQ(simulated["posts"], asleep["work_requests"]);
  EXPECT_EQ(simulated["wakeups"], asleep["wakeups"]);
  EXPECT_NEAR(simulated["busy_seconds"].get<double>() * 1e9, figure(asleep, "host_cpu_ns"), 1e-3);
  const Json host = Json::parse(
      test::OutputOf({"simulate", plan_, "--profile", profile_, "--executor", "offload", "--json",
                      "--set", "host.poll=1us", "--set", "host.completion=2us", "--set",
                      "host.interrupt=8us", "--wait", "interrupt"}))["offload"];
  EXPECT_NEAR(host["detection_seconds"].get<double>(), 11e-6, kRounding);
  EXPECT_NEAR(host["busy_seconds"].get<double>(), 4 * 3e-6, kRounding);
}

// Catches a seed that draws nothing, or is not printed.
TEST_F(SimulateCausesTest, CompareDrawsPreemptionsFromItsSeed) {
  const auto compare = [&](const std::string& seed) {
    return Json::parse(
        test::OutputOf({"compare", plan_, "--clock", "virtual", "--profile", profile_, "--set",
                        "host.preemption.rate=50000", "--set", "host.preemption.length=20us",
                        "--set", "host.preemption.lengths=exponential", "--json", "--seed", seed}));
  };
  const Json one = compare("1"), two = compare("2");
  EXPECT_EQ(one["deviations"].back(), "seed 1");
  EXPECT_EQ(two["deviations"].back(), "seed 2");
  EXPECT_NE(one["comparisons"][0]["cpu-driven"], two["comparisons"][0]["cpu-driven"]);
}

TEST_F(SimulateCausesTest, CompareRefusesWhatTheClockHasNot) {
  const auto expect = [&](std::vector<std::string> flags, int code, const std::string& message) {
    flags.insert(flags.begin(), {"compare", plan_});
    ExpectRefused(flags, code, message);
  };
  expect({"--clock", "virtual"}, 2, "--clock virtual needs a --profile");
  expect({"--clock", "virtal"}, 2, "did you mean 'virtual'?");
  expect({"--profile", profile_}, 2, "--profile is for --clock virtual");
  expect({"--set", "host.poll=1us"}, 2, "--set is for --clock virtual");
  for (const char* flag : {"--repeat", "--stress", "--timeout"}) {
    expect({"--clock", "virtual", "--profile", profile_, flag, "2"}, 2,
           std::string(flag) + " is for --clock real");
  }
  expect({"--clock", "virtual", "--profile", profile_, "--wait", "hybrid", "--idle-ms", "2"}, 2,
         "--idle-ms is for --clock real: of the virtual clock, --set host.hybrid_polling=50ms");
  expect({"--clock", "virtual", "--profile", profile_, "--seed", "2"}, 2,
         "the profile has no host.preemption");
  ExpectRefused({"compare", "--nodes", "2", "--bytes", "16MiB", "--clock", "virtual", "--profile",
                 profile_, "--set", "network.host_rate=8bit/s"},
                2, "prepost: --set network.host_rate=8bit/s: it goes on beyond");
  expect({"--clock", "virtual", "--profile", PREPOST_SOURCE_DIR "/examples/profiles/tcp-10g.json"},
         1, "over TCP");
}

}  // namespace
}  // namespace prepost::simulate_causes_test
