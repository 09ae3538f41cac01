// SPDX-License-Identifier: Apache-2.0
//
// prepost simulate from outside: its text, JSON that says the same, and what it refuses. What the
// model says is tested where it is made (tests/differential/virtual_*).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/command.h"
#include "tests/support/temp_folder.h"

namespace prepost {
namespace {

using test::Command;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class SimulateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Command compile({"compile", "--nodes", "8", "--message-bytes", "8MiB", "-o", plan_});
    ASSERT_EQ(compile.Wait(), 0) << compile.err();
  }
  std::string Simulate(std::vector<std::string> flags, const std::string& profile = "fractus") {
    flags.insert(flags.begin(), {"simulate", plan_, "--profile", test::ProfilePath(profile)});
    return test::OutputOf(flags);
  }
  Json SimulateJson(std::vector<std::string> flags, const std::string& profile = "fractus") {
    flags.push_back("--json");
    return Json::parse(Simulate(flags, profile));
  }
  void ExpectRefused(std::vector<std::string> flags, int code, const std::string& message) {
    flags.insert(flags.begin(), {"simulate", plan_});
    test::ExpectRefused(flags, code, message, folder_);
  }

  test::TempFolder folder_;
  const std::string plan_ = folder_ / "plan.json";
};

// Catches figures that do not say that they are modelled, and a text that differs from the JSON.
TEST_F(SimulateTest, SaysThatItIsModelledAndWithWhat) {
  const std::string text = Simulate({"--per-node"});
  EXPECT_THAT(text, HasSubstr("modelled, with the profile Fractus"));
  EXPECT_THAT(text, HasSubstr("  node 7"));
  const Json json = SimulateJson({});
  EXPECT_EQ(json["modelled"], true);
  EXPECT_EQ(json["profile"]["name"], "Fractus");
  for (const char* executor : {"offload", "cpu"}) {
    SCOPED_TRACE(executor);
    EXPECT_GE(json[executor]["of_bound"].get<double>(), 1.0);
    EXPECT_EQ(json[executor]["node_seconds"].size(), 8u);
    char ratio[16];
    std::snprintf(ratio, sizeof(ratio), "%.3f", json[executor]["of_bound"].get<double>());
    EXPECT_THAT(text, HasSubstr(ratio));
  }
  EXPECT_LT(json["offload"]["completion_seconds"], json["cpu"]["completion_seconds"]);
  EXPECT_EQ(Simulate({"--json"}), Simulate({"--json"}));
}

// Catches delays that reach nobody, or the wrong one, or preposted queues.
TEST_F(SimulateTest, DelaysReachHostsOnly) {
  const Json plain = SimulateJson({});
  const Json delayed = SimulateJson({"--delay", "for=1ms,node=4,at=100us"});
  EXPECT_EQ(delayed["offload"], plain["offload"]);
  const double later = delayed["cpu"]["completion_seconds"].get<double>() -
                       plain["cpu"]["completion_seconds"].get<double>();
  EXPECT_GT(later, 0.5e-3);
  EXPECT_LE(later, 1e-3 + 1e-12);
}

TEST_F(SimulateTest, OneExecutorAlone) {
  EXPECT_FALSE(SimulateJson({"--executor", "cpu"}).contains("offload"));
  EXPECT_FALSE(SimulateJson({"--executor", "offload"}).contains("cpu"));
  EXPECT_FALSE(SimulateJson({}, "tcp-10g").contains("offload")) << "no NIC to prepost";
  EXPECT_EQ(SimulateJson({"--mode", "managed", "--executor", "offload"})["offload"]["mode"],
            "managed");
}

// Catches a network that is the profile's although another is given.
TEST_F(SimulateTest, ATopologyTakesTheNetworksPlace) {
  const std::string topology = folder_ / "slow.json";
  std::ofstream(topology) << R"({"format": "prepost.topology", "version": "1.0",
      "host_rate": "8Gbit/s", "up_rate": "8Gbit/s", "racks": [{"name": "r", "hosts": "h[0-7]"}]})";
  const Json json = SimulateJson({"--topology", topology});
  EXPECT_NEAR(json["bound_seconds"].get<double>(), 8.388608e-3, 1e-9);
  // What would change nothing is no change to the profile.
  const auto expect = [&](std::vector<std::string> flags, const std::string& message) {
    flags.insert(flags.end(), {"--profile", test::ProfilePath("fractus")});
    test::ExpectRefused(flags, 2, message, folder_);
  };
  const std::string instead =
      "changes nothing: the network is that of --topology " + topology + ", in place of";
  expect({"simulate", plan_, "--topology", topology, "--set", "network.host_rate=1Gbit/s"},
         "--set network.host_rate=1Gbit/s: " + instead);
  expect({"simulate", "--message-bytes", "1MiB", "--topology", topology, "--sweep",
          "network.rack_latency=1us,2us"},
         "--sweep network.rack_latency=1us: " + instead);
  expect({"compare", "--clock", "virtual", "--bytes", "1MiB", "--topology", topology, "--set",
          "network.host_rate=1Gbit/s"},
         "--set network.host_rate=1Gbit/s: " + instead);
  const std::string spec = folder_ / "spec.json";
  std::ofstream(spec) << R"({"format": "prepost.spec", "version": "1.0", "collective": "multicast",
      "nodes": 8, "message_bytes": 1048576, "topology": "slow.json"})";
  expect({"simulate", spec, "--set", "network.host_rate=1Gbit/s"},
         "the network is that of " + spec);
  expect({"compare", spec, "--clock", "virtual", "--set", "network.host_rate=1Gbit/s"},
         "the network is that of " + spec);
}

// Catches a note that names one of several flags, or comes where hosts have something to do.
TEST_F(SimulateTest, SaysWhatChangesNothing) {
  const auto note = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"simulate", plan_, "--profile", test::ProfilePath("fractus")});
    Command command(flags);
    EXPECT_EQ(command.Wait(), 0) << command.err();
    return command.err();
  };
  const std::vector<std::string> three = {"--delay",      "node=1,at=0s,for=1us",
                                          "--preempt",    "rate=1,for=1us",
                                          "--neighbours", "count=1,slice=1ms"};
  const auto with = [&](size_t count, const std::string& executor) {
    std::vector<std::string> flags(three.begin(), three.begin() + static_cast<ptrdiff_t>(count));
    flags.insert(flags.end(), {"--executor", executor});
    return note(flags);
  };
  EXPECT_THAT(with(2, "offload"), HasSubstr("note: --delay changes nothing: all queues fit"));
  EXPECT_THAT(with(6, "offload"),
              HasSubstr("note: --delay, --preempt, --neighbours change nothing: all queues fit"));
  EXPECT_EQ(with(6, "cpu"), "");
  EXPECT_THAT(note({"--seed", "3"}), HasSubstr("note: --seed changes nothing"));
  EXPECT_EQ(note({"--seed", "3", "--preempt", "rate=1,for=1us"}), "");
  EXPECT_EQ(note({"--seed", "3", "--slow", "random=0.1,factor=0.5"}), "");
}

// Catches slow paths that slow nothing, everything, or the bound too much.
TEST_F(SimulateTest, SlowPathsAndNodes) {
  const Json plain = SimulateJson({});
  const Json path = SimulateJson({"--slow", "0->1=0.5"});
  const Json node = SimulateJson({"--slow", "3=0.25"});
  for (const char* executor : {"offload", "cpu"}) {
    SCOPED_TRACE(executor);
    const double time = plain[executor]["completion_seconds"];
    EXPECT_GT(path[executor]["completion_seconds"], time);
    EXPECT_LT(path[executor]["completion_seconds"], 2 * time);
    EXPECT_GE(node[executor]["of_bound"].get<double>(), 1.0);
    const Json& links = path[executor]["links"];
    EXPECT_TRUE(std::ranges::any_of(links, [](const Json& link) {
      return link["kind"] == "pair" && link["from"] == 0 && link["to"] == 1 && link["bytes"] > 0;
    }));
  }
  EXPECT_EQ(path["bound_seconds"], plain["bound_seconds"]) << "there are ways around it";
  EXPECT_NEAR(node["bound_seconds"].get<double>(), 4 * plain["bound_seconds"].get<double>(), 1e-9);
  EXPECT_EQ(path["slow_paths"], 1);
  EXPECT_EQ(node["slow_paths"], 0);
  EXPECT_THAT(Simulate({"--slow", "0->1=0.5"}),
              HasSubstr("1 path from one node to another is slow"));
  EXPECT_THAT(Simulate({}), Not(HasSubstr("slow")));
  const auto random = [&](const std::string& seed) {
    return SimulateJson({"--slow", "random=0.2,factor=0.1", "--executor", "offload", "--seed", seed,
                         "--slow", "5->6=0.1"});
  };
  EXPECT_EQ(random("1"), random("1"));
  EXPECT_NE(random("1")["offload"], random("2")["offload"]);
  EXPECT_EQ(SimulateJson({"--slow", "random=0,factor=0.1"})["offload"], plain["offload"]);
}

TEST_F(SimulateTest, PreemptionsInPlaceOfTheProfiles) {
  const Json plain = SimulateJson({});
  const Json often = SimulateJson({"--preempt", "rate=5000,for=20us"});
  EXPECT_EQ(often["offload"], plain["offload"]);
  EXPECT_GT(often["cpu"]["delayed_seconds"], 0);
  EXPECT_GT(often["cpu"]["completion_seconds"], plain["cpu"]["completion_seconds"]);
  EXPECT_NE(SimulateJson({"--preempt", "rate=5000,for=20us,lengths=exponential"})["cpu"],
            often["cpu"]);
}

// Catches hosts of preposted queues that are never away, or are so when they have nothing to do.
TEST_F(SimulateTest, NoiseReachesPrepostedHostsThatWriteRings) {
  const std::string tiny = std::string(PREPOST_SOURCE_DIR) + "/examples/devices/tiny.json";
  Command compile({"compile", "--nodes", "4", "--message-bytes", "8MiB", "--block-bytes", "64KiB",
                   "-o", plan_});
  ASSERT_EQ(compile.Wait(), 0) << compile.err();
  const auto seconds = [&](std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--executor", "offload"});
    return SimulateJson(flags)["offload"]["completion_seconds"].get<double>();
  };
  for (const auto& [flag, value] :
       std::vector<std::pair<std::string, std::string>>{{"--delay", "node=3,at=0s,for=5ms"},
                                                        {"--preempt", "rate=10000,for=100us"},
                                                        {"--neighbours", "count=3,slice=300us"}}) {
    SCOPED_TRACE(flag);
    EXPECT_EQ(seconds({flag, value}), seconds({}));
    EXPECT_GT(seconds({flag, value, "--device-profile", tiny, "--wait", "polling"}),
              seconds({"--device-profile", tiny, "--wait", "polling"}));
    Command note({"simulate", plan_, "--profile", test::ProfilePath("fractus"), "--executor",
                  "offload", flag, value});
    ASSERT_EQ(note.Wait(), 0);
    EXPECT_THAT(note.err(), HasSubstr("note: " + flag + " changes nothing"));
  }
}

// Catches a flag that sets nothing, or the wrong host's.
TEST_F(SimulateTest, NeighboursOfAllHostsOrOne) {
  const auto seconds = [&](std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--executor", "cpu", "--wait", "polling"});
    return SimulateJson(flags)["cpu"]["completion_seconds"].get<double>();
  };
  const double plain = seconds({});
  const double all = seconds({"--neighbours", "count=1,slice=20us"});
  EXPECT_GT(all, 1.05 * plain);
  EXPECT_EQ(seconds({"--set", "host.neighbours.count=1", "--set", "host.neighbours.slice=20us"}),
            all);
  const double one = seconds({"--neighbours", "node=3,count=1,slice=20us"});
  EXPECT_GT(one, plain);
  EXPECT_LT(one, all);
  EXPECT_EQ(
      seconds({"--neighbours", "count=1,slice=20us", "--neighbours", "node=3,count=1,slice=20us"}),
      all);
  EXPECT_EQ(seconds({"--neighbours", "count=0,slice=20us"}), plain);
}

// Catches groups that do not share, that are not rotated, and sums and means that are not.
TEST_F(SimulateTest, RotatedGroups) {
  const Json plain = SimulateJson({});
  const Json one = SimulateJson({"--groups", "1"});
  const Json three = SimulateJson({"--groups", "3"});
  for (const char* executor : {"offload", "cpu"}) {
    SCOPED_TRACE(executor);
    EXPECT_EQ(one[executor]["completion_seconds"], plain[executor]["completion_seconds"]);
    EXPECT_EQ(one[executor]["of_bound"], plain[executor]["of_bound"]);
    for (const char* key : {"skew_seconds", "doorbells", "posts", "wakeups", "arming_seconds"})
      EXPECT_EQ(one[executor][key], plain[executor][key]) << key;
    EXPECT_EQ(three[executor]["doorbells"], 3 * plain[executor]["doorbells"].get<int>());
    EXPECT_GT(three[executor]["arming_seconds"],
              2 * plain[executor]["arming_seconds"].get<double>());
    const Json& run = three[executor];
    EXPECT_GE(run["of_bound"].get<double>(), 1.0);
    double mean = 0, last = 0, square = 0;
    ASSERT_EQ(run["groups"].size(), 3u);
    for (size_t g = 0; g < 3; ++g) {
      const Json& group = run["groups"][g];
      EXPECT_EQ(group["root"], g);
      EXPECT_EQ(group["latency_seconds"], group["completion_seconds"]);
      mean += group["latency_seconds"].get<double>() / 3;
      last = std::max(last, group["completion_seconds"].get<double>());
    }
    for (const Json& group : run["groups"]) {
      square += std::pow(group["latency_seconds"].get<double>() - mean, 2) / 3;
    }
    EXPECT_DOUBLE_EQ(run["completion_seconds"], last);
    EXPECT_NEAR(run["latency_mean_seconds"], mean, 1e-12);
    EXPECT_NEAR(run["latency_deviation_seconds"], std::sqrt(square), 1e-12);
    EXPECT_DOUBLE_EQ(run["aggregate_bytes_per_second"], 3 * 8 * 1048576 / last);
    EXPECT_GT(last, 2 * plain[executor]["completion_seconds"].get<double>());
  }
  const std::string text = Simulate({"--groups", "3"});
  EXPECT_THAT(text, HasSubstr("modelled, with the profile Fractus"));
  EXPECT_THAT(text, HasSubstr("group 2, root 2"));
}

// Catches draws for more pairs than time or memory are for.
TEST_F(SimulateTest, RandomSlowPathsHaveALimit) {
  const auto expect = [&](const std::string& nodes, int code, const std::string& message) {
    test::ExpectRefused(
        {"simulate", "--profile", test::ProfilePath("fractus"), "--nodes", nodes, "--message-bytes",
         "1", "--executor", "offload", "--slow", "random=0,factor=0.5", "--slow", "none"},
        code, message, folder_);
  };
  expect("4097", 1, "--slow random: 4097 hosts have 16785409 pairs, the limit is 16777216");
  expect("4096", 2, "no factor");
}

class SimulateWorkloadTest : public SimulateTest {
 protected:
  static Json Run(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"simulate", "--profile", test::ProfilePath("fractus"), "--json"});
    Command command(flags);
    EXPECT_EQ(command.Wait(), 0) << command.err();
    return Json::parse(command.out());
  }
  std::string Write(const std::string& groups) {
    std::ofstream(path_) << R"({"format": "prepost.workload", "version": "1.0", "hosts": 9,
        "spec": {"block_bytes": 1048576}, "groups": [)"
                         << groups << "]}";
    return path_;
  }
  const std::string path_ = folder_ / "workload.json";
};

// Catches groups with another plan, at another time or on other hosts than the file says.
TEST_F(SimulateWorkloadTest, GroupsAreWhatTheFileSays) {
  const Json plain = SimulateJson({});
  const Json run = Run({"--workload", Write(R"(
      {"plan": "plan.json"},
      {"plan": "plan.json", "hosts": [8, 1, 2, 3, 4, 5, 6, 7], "after": 0},
      {"spec": {"message_bytes": 8388608}, "hosts": [7, 1, 2, 3, 4, 5, 6, 0], "start": "1s"},
      {"spec": {"message_bytes": 1048576, "algorithm": "chain"}, "hosts": [8, 0], "start": 2})")});
  EXPECT_EQ(run["modelled"], true);
  EXPECT_EQ(run["hosts"], 9);
  EXPECT_EQ(run["groups"], 4);
  for (const char* executor : {"offload", "cpu"}) {
    SCOPED_TRACE(executor);
    const double alone = plain[executor]["completion_seconds"];
    const Json& groups = run[executor]["groups"];
    const auto figure = [&](size_t group, const char* key) {
      return groups[group][key].get<double>();
    };
    EXPECT_DOUBLE_EQ(figure(0, "completion_seconds"), alone);
    EXPECT_DOUBLE_EQ(figure(1, "start_seconds"), figure(0, "known_seconds"));
    EXPECT_DOUBLE_EQ(figure(1, "waited_seconds"), figure(0, "known_seconds"));
    EXPECT_NEAR(figure(1, "latency_seconds"), alone, 1e-9 + 0.01 * alone);
    EXPECT_EQ(groups[2]["root"], 7);
    EXPECT_EQ(figure(2, "start_seconds"), 1);
    EXPECT_EQ(figure(2, "waited_seconds"), 0);
    EXPECT_GT(figure(3, "completion_seconds"), 2);
    EXPECT_LT(figure(3, "latency_seconds"), alone);
    EXPECT_EQ(groups[3]["message_bytes"], 1048576);
    EXPECT_DOUBLE_EQ(run[executor]["completion_seconds"], figure(3, "completion_seconds"));
    EXPECT_EQ(run[executor]["latency_p1_seconds"], groups[3]["latency_seconds"]);
    EXPECT_EQ(run[executor]["latency_p25_seconds"], groups[3]["latency_seconds"]);
    EXPECT_GT(run[executor]["latency_p50_seconds"], groups[3]["latency_seconds"]);
    EXPECT_GE(run[executor]["of_bound"].get<double>(), 1.0);
  }
}

// Host 8 is in the second group only.
TEST_F(SimulateWorkloadTest, LinksAndDelaysAreThoseOfHosts) {
  const std::string file = Write(R"({"spec": {"message_bytes": 9999999}, "hosts": [0, 1]},
                                    {"spec": {"message_bytes": 9999999}, "hosts": [3, 8]})");
  const Json plain = Run({"--workload", file});
  for (const auto& flags : std::vector<std::vector<std::string>>{
           {"--slow", "3->8=0.5"}, {"--slow", "8=0.5"}, {"--delay", "node=8,at=0s,for=3ms"}}) {
    const Json other = Run({"--workload", file, flags[0], flags[1]});
    EXPECT_EQ(other["cpu"]["groups"][0], plain["cpu"]["groups"][0]);
    // A host that receives is not needed for that, but to know.
    const char* const figure = flags[0] == "--delay" ? "known_seconds" : "latency_seconds";
    EXPECT_GT(other["cpu"]["groups"][1][figure], plain["cpu"]["groups"][1][figure]);
  }
}

TEST_F(SimulateWorkloadTest, StandsAlone) {
  const std::string file = Write(R"({"spec": {"message_bytes": 10}})");
  const auto expect = [&](std::vector<std::string> flags, int code, const std::string& message) {
    flags.insert(flags.begin(),
                 {"simulate", "--profile", test::ProfilePath("fractus"), "--workload", file});
    test::ExpectRefused(flags, code, message, folder_);
  };
  expect({plan_}, 2, "--workload says what is sent");
  expect({"--nodes", "3"}, 2, "--workload says what is sent");
  expect({"--groups", "3"}, 2, "--workload says what is sent");
  expect({"--message-bytes", "3"}, 2, "--workload says what is sent");
  expect({"--delay", "node=9,at=1s,for=1s"}, 2, "the nodes are 0 to 8");
  std::ofstream(file) << "{";
  expect({}, 1, "workload.json:1:1: ");
  Write(R"({"spec": {"message_bytes": 10, "block_bytes": "auto"}})");
  expect({}, 1, "/groups/0/spec: block_bytes: nothing is chosen for groups that share a network");
  Write(R"({"spec": {"message_bytes": 10, "algorithm": "auto"}})");
  expect({}, 1, "expected a name such as \"chain\", found \"auto\"");
}

// Catches a time that has the root's acknowledgements in it, and gains of one host's end and another's.
TEST_F(SimulateTest, NodesHaveItBeforeTheRootKnows) {
  const std::string latency = "network.rack_latency=100ms";
  const auto run = [&](const std::string& nodes, std::vector<std::string> more) {
    more.insert(more.begin(), {"simulate", "--profile", test::ProfilePath("fractus"), "--set",
                               latency, "--message-bytes", "1MiB", "--nodes", nodes});
    return test::OutputOf(more);
  };
  const Json json = Json::parse(run("2", {"--json"}));
  for (const char* executor : {"offload", "cpu"}) {
    SCOPED_TRACE(executor);
    const Json& it = json[executor];
    EXPECT_NEAR(it["completion_seconds"].get<double>(), 0.1, 1e-3);
    EXPECT_NEAR(it["root_known_seconds"].get<double>(), 0.2, 1e-3);
    EXPECT_EQ(it["known_seconds"], it["root_known_seconds"]);
    EXPECT_EQ(it["node_seconds"][0], 0.0);
    EXPECT_EQ(it["node_seconds"][1], it["completion_seconds"]);
    EXPECT_EQ(it["skew_seconds"], 0.0);
  }
  const Json& offload = json["offload"];
  EXPECT_NEAR(offload["offload_seconds"].get<double>(),
              offload["final_seconds"].get<double>() - offload["doorbells_seconds"].get<double>(),
              1e-12);
  EXPECT_NEAR(offload["known_seconds"].get<double>(),
              offload["final_seconds"].get<double>() + offload["detection_seconds"].get<double>(),
              1e-12);
  const auto gain = [&](const char* figure) {
    return json["cpu"][figure].get<double>() / offload[figure].get<double>();
  };
  EXPECT_NEAR(json["gain"]["completion"].get<double>(), gain("completion_seconds"), 1e-9);
  EXPECT_NEAR(json["gain"]["known"].get<double>(), gain("known_seconds"), 1e-9);
  EXPECT_THAT(run("2", {}), HasSubstr("offload time"));
  // An empty message has a block, too.
  const Json empty =
      Json::parse(test::OutputOf({"simulate", "--nodes", "3", "--message-bytes", "0", "--profile",
                                  test::ProfilePath("fractus"), "--set", latency, "--json"}));
  EXPECT_GE(empty["offload"]["completion_seconds"].get<double>(), 0.1);
}

// Catches a barrier that is in some other time, or does not grow with members and distance.
TEST_F(SimulateTest, TheBarrierIsApart) {
  const auto run = [&](const std::string& call, const std::string& latency) {
    return SimulateJson({"--set", "control.system_call=" + call, "--set",
                         "control.latency=" + latency, "--set", "network.rack_latency=1us"});
  };
  const Json json = run("3us", "10us");
  EXPECT_NEAR(json["barrier_seconds"].get<double>(), 2 * 11e-6 + 18 * 3e-6, 1e-12);
  Json free = run("0s", "0s");
  EXPECT_NEAR(free["barrier_seconds"].get<double>(), 2e-6, 1e-12);
  EXPECT_EQ(json["offload"], free["offload"]);
  EXPECT_EQ(json["cpu"], free["cpu"]);
  EXPECT_THAT(Simulate({}), HasSubstr("  barrier, before"));
}

// Catches heads that name the profile for what is not its own.
TEST_F(SimulateTest, SaysWhatIsOtherThanInTheProfile) {
  using Words = std::vector<std::string>;
  const auto deviations = [&](const Words& flags) { return SimulateJson(flags)["deviations"]; };
  EXPECT_EQ(deviations({}), Json::array());
  EXPECT_EQ(deviations({"--set", "host.poll=1us", "--slow", "random=0.1,factor=0.5"}),
            Json(Words{"--set host.poll=1us", "--slow random=0.1,factor=0.5", "seed 1"}));
  EXPECT_EQ(deviations({"--neighbours", "count=1,slice=4ms"}),
            Json::array({"--neighbours count=1,slice=4ms"}));
  EXPECT_EQ(deviations({"--preempt", "rate=1,for=1us", "--seed", "7", "--wait", "polling"}),
            Json(Words{"--preempt rate=1,for=1us", "--wait polling", "seed 7"}));
  EXPECT_EQ(deviations({"--mode", "managed", "--masters", "lane"}),
            Json(Words{"--mode managed", "--masters lane"}));
  EXPECT_THAT(Simulate({}), HasSubstr("; ready window=1, send window 1\n"));
  const std::string ordered = test::OutputOf({"simulate", "--profile", test::ProfilePath("fractus"),
                                              "--nodes", "3", "--message-bytes", "1MiB", "--root",
                                              "2", "--order", "2,0,1", "--send-window", "none"});
  EXPECT_THAT(ordered, HasSubstr(", but --order 2,0,1: "));
  EXPECT_THAT(ordered, HasSubstr("3 nodes, root 2; "));
  EXPECT_THAT(ordered, HasSubstr(", send window none\n"));
  EXPECT_THAT(Simulate({"--delay", "node=1,at=0s,for=1us"}),
              HasSubstr(", but --delay node=1,at=0s,for=1us: "));
  EXPECT_THAT(test::OutputOf({"compare", plan_, "--clock", "virtual", "--profile",
                              test::ProfilePath("fractus"), "--set", "host.poll=1us"}),
              HasSubstr(", but --set host.poll=1us\n"));
  const std::string topology = folder_ / "one.json";
  std::ofstream(topology) << R"({"format": "prepost.topology", "version": "1.0",
      "host_rate": "8Gbit/s", "up_rate": "8Gbit/s", "racks": [{"name": "r", "hosts": "h[0-2]"}]})";
  EXPECT_THAT(test::OutputOf({"compare", "--bytes", "1MiB", "--topology", topology, "--clock",
                              "virtual", "--profile", test::ProfilePath("fractus")}),
              HasSubstr(", but --topology " + topology + "\n"));
  const std::string compared =
      test::OutputOf({"compare", "--clock", "virtual", "--profile", test::ProfilePath("fractus"),
                      "--nodes", "3", "--bytes", "1MiB", "--root", "2", "--order", "2,0,1",
                      "--send-window", "none", "--mode", "managed", "--masters", "lane"});
  EXPECT_THAT(compared, HasSubstr(" on 3 nodes, root 2, "));
  EXPECT_THAT(
      compared,
      HasSubstr("; ready barrier, send window none\nqueues managed by one master per lane"));
  EXPECT_THAT(compared, HasSubstr(", but --order 2,0,1\n"));
}

// Catches a value of which only one counts, whoever says it, and units that only --sweep knows.
TEST_F(SimulateTest, SettingsStandOnceAndHaveUnits) {
  const auto expect = [&](std::vector<std::string> flags, const std::string& message) {
    flags.insert(flags.begin(), {"--profile", test::ProfilePath("apt")});
    ExpectRefused(flags, 2, message);
  };
  expect({"--set", "host.poll=1us", "--set", "host.poll=2us"},
         "--set host.poll=2us: host.poll is already set by --set host.poll=1us");
  expect({"--set", "network.racks.up_rate=1GB/s", "--set", "network.racks.oversubscription=2"},
         "already set by --set network.racks.up_rate=1GB/s");
  expect({"--preempt", "rate=1,for=1us", "--set", "host.preemption.length=1us"},
         "--preempt rate=1,for=1us: host.preemption.length is already set by --set");
  expect({"--neighbours", "count=1,slice=1ms", "--set", "host.neighbours.count=2"},
         "--neighbours count=1,slice=1ms: host.neighbours.count is already set by --set");
  expect({"--set", "host.poll=1us", "--set", "host.credit=1h", "--set", "host.cores=2"},
         "prepost: --set host.credit=1h: /host/credit/value: '1h' is no time");
  expect({"--set", "host.poll=\xff"}, "/host/poll/value: ");
  expect({"--set", "nic.message_overhead_bytes=1XiB"}, "'1XiB' is no size");
  expect({"--set", "nic.message_overhead_bytes=1GiB"}, "1073741824 is too large");
  const auto cpu = [&](const std::string& segment) {
    return SimulateJson({"--set", "tcp.segment_bytes=" + segment}, "tcp-10g")["cpu"];
  };
  EXPECT_EQ(cpu("256KiB"), cpu("262144"));
  EXPECT_NE(cpu("256KiB"), cpu("16KiB"));
}

// Catches compare on another network than simulate: what `auto` chooses, and racks.
TEST_F(SimulateTest, CompareCompilesForTheSameNetwork) {
  for (const char* profile : {"apt", "sierra"}) {
    SCOPED_TRACE(profile);
    const std::vector<std::string> flags = {
        "--profile",     test::ProfilePath(profile),
        "--nodes",       "40",
        "--algorithm",   profile == std::string("apt") ? "rack_chain" : "binomial_pipeline",
        "--block-bytes", "auto",
        "--json"};
    std::vector<std::string> simulate = {"simulate", "--message-bytes", "3MiB"};
    std::vector<std::string> compare = {"compare", "--clock", "virtual", "--bytes", "3MiB"};
    simulate.insert(simulate.end(), flags.begin(), flags.end());
    compare.insert(compare.end(), flags.begin(), flags.end());
    compare.insert(compare.end(), {"--wait", "hybrid"});
    const Json simulated = Json::parse(test::OutputOf(simulate));
    const Json compared = Json::parse(test::OutputOf(compare))["comparisons"][0];
    EXPECT_EQ(compared["block_bytes"], simulated["block_bytes"]);
    EXPECT_NEAR(compared["offload_ns"].get<double>(),
                simulated["offload"]["offload_seconds"].get<double>() * 1e9, 1e-3);
    EXPECT_EQ(compared["received_ratio"]["of_medians"], simulated["gain"]["completion"]);
  }
}

// Catches a way of waiting by which hosts of preposted queues know later, and that is not told.
TEST_F(SimulateTest, SaysHowHostsWaitWithBothExecutors) {
  const Json hybrid = SimulateJson({"--executor", "offload"});
  const Json interrupt = SimulateJson({"--executor", "offload", "--wait", "interrupt"});
  EXPECT_LT(hybrid["offload"]["known_seconds"], interrupt["offload"]["known_seconds"]);
  EXPECT_EQ(hybrid["offload"]["wait"], "hybrid");
  EXPECT_EQ(interrupt["offload"]["wait"], "interrupt");
  EXPECT_THAT(Simulate({"--executor", "offload"}), HasSubstr(" inline, hybrid\n"));
  EXPECT_THAT(Simulate({"--mode", "managed", "--wait", "interrupt"}),
              testing::ContainsRegex(" managed, interrupt +interrupt\n"));
}

TEST_F(SimulateTest, OneNodeNeedsNoTime) {
  Command compile({"compile", "--nodes", "1", "--message-bytes", "5", "-o", plan_});
  ASSERT_EQ(compile.Wait(), 0);
  const Json json = SimulateJson({});
  EXPECT_EQ(json["cpu"]["skew_seconds"], 0);
  EXPECT_TRUE(json["cpu"]["of_bound"].is_null());
  EXPECT_THAT(Simulate({}), Not(HasSubstr("busiest links"))) << "there are none";
  EXPECT_TRUE(json["gain"]["completion"].is_null());
  const Json compared =
      Json::parse(test::OutputOf({"compare", plan_, "--clock", "virtual", "--profile",
                                  test::ProfilePath("fractus"), "--json"}))["comparisons"][0];
  EXPECT_TRUE(compared["received_ratio"]["of_medians"].is_null());
  EXPECT_TRUE(compared["completion_ratio"]["of_medians"].is_null());
}

// Catches flags of the cluster that are told to be at fault where the plan is, as it would be without
// them.
TEST_F(SimulateTest, BlamesFlagsForWhatTheyHaveCausedOnly) {
  const std::string device = folder_ / "device.json";
  std::ofstream(device)
      << R"({"format": "prepost.device", "version": "1.0", "name": "few", "limits":)"
      << R"( {"sq_wqebbs": 1024, "rq_wqes": 1024, "cq_entries": 4096, "qps": 2, "cqs": 600,)"
      << R"( "message_bytes": 1048576}, "capabilities": {"cd": true, "cq_oi": true}})";
  const std::vector<std::string> few = {"--device-profile", device, "--profile",
                                        test::ProfilePath("fractus")};
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{},
                                             {"--delay", "node=1,at=1us,for=1us"},
                                             {"--slow", "1=0.5"},
                                             {"--preempt", "rate=10,for=1us"},
                                             {"--set", "network.host_rate=40Gbit/s"}}) {
    SCOPED_TRACE(flags.empty() ? "" : flags[0]);
    std::vector<std::string> all = few;
    all.insert(all.end(), flags.begin(), flags.end());
    ExpectRefused(all, 1, "prepost: " + plan_ + ": ");
  }
  std::vector<std::string> compare = {"compare", plan_,   "--clock",
                                      "virtual", "--set", "network.host_rate=40Gbit/s"};
  compare.insert(compare.end(), few.begin(), few.end());
  test::ExpectRefused(compare, 1, "prepost: " + plan_ + ": ", folder_);
}

TEST_F(SimulateTest, RefusesWhatItCannotModel) {
  ExpectRefused({}, 2, "--profile");
  const std::vector<std::string> profile = {"--profile", test::ProfilePath("fractus")};
  const auto expect = [&](std::vector<std::string> flags, int code, const std::string& message) {
    flags.insert(flags.begin(), profile.begin(), profile.end());
    ExpectRefused(flags, code, message);
  };
  expect({"--executor", "gpu"}, 2, "--executor: unknown name 'gpu'");
  expect({"--wait", "poling"}, 2, "did you mean 'polling'?");
  expect({"--delay", "node=8,at=1s,for=1s"}, 2, "no node '8', the nodes are 0 to 7");
  expect({"--delay", "node=1,at=1s"}, 2, "a part is missing");
  expect({"--delay", "node=1,at=1,for=1s"}, 2,
         "'1' is no time, expected 0 or more and a unit: ns, us, ms or s; the form is "
         "node=3,at=2ms,f");
  expect({"--delay", "node=1,node=2,at=1s,for=1s"}, 2, "'node' is there twice");
  expect({"--delay", "node=1,at=1s,for=1s,x=3"}, 2, "'x=3' is unknown");
  expect({"--slow", "0->8=0.5"}, 2, "no node '8', the nodes are 0 to 7");
  expect({"--slow", "0->0=0.5"}, 2, "a node sends nothing to itself");
  expect({"--slow", "0->1=0"}, 2, "the factor '0' is not above 0 and at most 1");
  expect({"--slow", "0->1=nan"}, 2, "the factor 'nan' is not above 0");
  expect({"--slow", "4=1.5"}, 2, "the factor '1.5' is not above 0");
  expect({"--slow", "0-1=0.5"}, 2, "no node '0-1'");
  expect({"--slow", "0->1"}, 2, "no factor");
  expect({"--slow", "0->1=0.5", "--slow", "0->1=0.6"}, 2, "the pair 0->1 is there twice");
  expect({"--slow", "2=0.5", "--slow", "2=0.6"}, 2, "node 2 is there twice");
  expect({"--slow", "random=2,factor=0.5"}, 2, "the probability '2' is not from 0 to 1");
  expect({"--slow", "random=0.5"}, 2, "no factor");
  expect({"--slow", "random=0.5,factor=2"}, 2, "the factor '2' is not above 0");
  expect({"--slow", "0->1=1e-13", "--set", "nic.wqe=0s"}, 2,
         "prepost: --set nic.wqe=0s, --slow 0->1=1e-13: the path from node 0 to node 1");
  expect({"--set", "network.host_rate=8bit/s"}, 2,
         "prepost: --set network.host_rate=8bit/s: it goes on beyond");
  expect({"--preempt", "rate=100"}, 2, "a part is missing");
  expect({"--preempt", "rate=100,for=1"}, 2,
         "a unit: ns, us, ms or s; the form is rate=100,for=100us or rate=100,for=100us,lengths=");
  expect({"--preempt", "rate=x,for=1us"}, 2, "the rate is no number");
  expect({"--preempt", "rate=0,for=1us"}, 2, "--preempt: 'rate=0,for=1us': the rate is not from");
  expect({"--preempt", "rate=1,for=2e4s"}, 2, "20000s is too long");
  expect({"--preempt", "rate=1000,for=1s"}, 2,
         "prepost: --preempt rate=1000,for=1s: cores are away 1000 times as long");
  expect({"--preempt", "rate=1,rate=2,for=1us"}, 2, "'rate' is there twice");
  expect({"--preempt", "rate=1,for=1us,lengths=long"}, 2, "neither fixed nor exponential");
  expect({"--preempt", "rate=1,for=1us,at=3us"}, 2, "'at=3us' is unknown");
  expect({"--neighbours", "count=1"}, 2, "a part is missing");
  expect({"--neighbours", "count=1001,slice=1ms"}, 2, "'1001' is no whole number up to 1000");
  expect({"--neighbours", "count=1,slice=0s"}, 2, "a slice is 1ns to an hour");
  expect({"--neighbours", "count=1,slice=1"}, 2,
         "a unit: ns, us, ms or s; the form is count=1,slice=4ms or node=3,count=1,slice=4ms");
  expect({"--neighbours", "count=1,slice=1ms,at=3us"}, 2, "'at=3us' is unknown");
  expect({"--neighbours", "node=8,count=1,slice=1ms"}, 2, "no node '8', the nodes are 0 to 7");
  expect({"--neighbours", "node=1,count=1,slice=1ms", "--neighbours", "node=1,count=2,slice=1ms"},
         2, "node 1 is there twice");
  expect({"--neighbours", "count=1,slice=1ms", "--neighbours", "count=2,slice=1ms"}, 2,
         "all hosts are there twice");
  expect({"--groups", "0"}, 2, "--groups");
  for (const char* key : {"host.~x", "foo.01", "x.60000000", "a.b.c.d.e.f.g.h.i"}) {
    expect({"--set", std::string(key) + "=1"}, 2, "expected a value of the profile by its name");
    expect({"--sweep", std::string(key) + "=1,2"}, 2,
           "expected a value of the profile by its name");
  }
  expect({"--plot-y", "skew"}, 2, "--plot-y is for --sweep");
  expect({"--groups", "2", "--trace", "t.json", "--executor", "cpu"}, 2,
         "--trace is for one multicast alone");
  expect({"--executor", "cpu", "--mode", "inline"}, 2, "is for preposted queues");
  expect({"--executor", "offload", "--copy-first-block"}, 2, "is for CPU-driven hosts");
  test::ExpectRefused({"simulate", "--profile", test::ProfilePath("fractus"), "--nodes", "64",
                       "--message-bytes", "64MiB", "--groups", "65536"},
                      1, "the limit is 134217728 together", folder_);
  ExpectRefused({"--profile", test::ProfilePath("tcp-10g"), "--executor", "offload"}, 1,
                "over TCP");
  ExpectRefused({"--profile", folder_ / "none"}, 1, "cannot read");
  ExpectRefused({"--profile", plan_}, 1, "/format: expected \"prepost.profile\"");
}

}  // namespace
}  // namespace prepost
