// SPDX-License-Identifier: Apache-2.0
//
// prepost simulate from outside, one multicast: its text, JSON that says the same, and that each
// flag reaches what it is for. What the model says is tested where it is made
// (tests/sim).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/simulate_fixture.h"

namespace prepost::simulate_test {
namespace {

using test::Command;
using test::SimulateTest;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

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

// Wherever the command is called: the shipped profiles are part of it. A file of that name wins.
TEST_F(SimulateTest, ShippedProfilesHaveNames) {
  const std::vector<std::string> in_folder = {"/usr/bin/env", "-C", folder_.path()};
  for (const char* name : {"apt", "fractus", "ndr400", "sierra", "stampede", "tcp-10g"}) {
    test::Command by_name({"simulate", plan_, "--json", "--profile", name}, in_folder);
    EXPECT_EQ(by_name.Wait(), 0) << by_name.err();
    EXPECT_EQ(Json::parse(by_name.out())["cpu"], SimulateJson({}, name)["cpu"]);
  }
  std::filesystem::create_directory(folder_ / "sierra");
  test::Command beside_folder({"simulate", plan_, "--json", "--profile", "sierra"}, in_folder);
  EXPECT_EQ(beside_folder.Wait(), 0) << "a folder is no profile: " << beside_folder.err();
  std::filesystem::copy_file(test::ProfilePath("apt"), folder_ / "fractus");
  test::Command again({"simulate", plan_, "--json", "--profile", "fractus"}, in_folder);
  EXPECT_EQ(again.Wait(), 0) << again.err();
  EXPECT_EQ(Json::parse(again.out())["profile"]["name"], "Apt");
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
      "nodes": 8, "message_bytes": 1048576, "block_bytes": 65536, "algorithm": "chain",
      "topology": "slow.json"})";
  expect({"simulate", spec, "--set", "network.host_rate=1Gbit/s"},
         "the network is that of " + spec);
  expect({"compare", spec, "--clock", "virtual", "--set", "network.host_rate=1Gbit/s"},
         "the network is that of " + spec);
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
  const double by_rate = plain["message_bytes"].get<double>() / (100e9 / 8);
  EXPECT_NEAR(node["bound_seconds"].get<double>(), 4 * by_rate + 600e-9, 1e-9);
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

// A relay's port does both at once, a sender's does not; absent, the links are those without.
TEST_F(SimulateTest, PortsThatHaveLessForBothWays) {
  const auto run = [&](std::vector<std::string> flags, const std::string& duplex) {
    if (!duplex.empty()) flags.insert(flags.end(), {"--set", "network.duplex=" + duplex});
    flags.insert(flags.end(), {"--executor", "offload"});
    return SimulateJson(flags, "sierra");
  };
  const auto completion = [](const Json& json) {
    return json["offload"]["completion_seconds"].get<double>();
  };
  const Json plain = run({}, ""), both = run({}, "40Gbit/s");
  const double ratio = completion(run({}, "25Gbit/s")) / completion(plain);
  EXPECT_GT(ratio, 1.3);
  EXPECT_LT(ratio, 1.6) << "20 / 12.5, but for the first blocks, which go one way";
  EXPECT_EQ(completion(both), completion(plain)) << "no limit but that of each way";
  EXPECT_EQ(both["offload"]["links"].back()["kind"], "node_both");
  EXPECT_NE(plain["offload"]["links"].back()["kind"], "node_both");
  // All of eight groups: each node receives seven messages and sends as many.
  EXPECT_NEAR(run({"--groups", "8"}, "20Gbit/s")["bound_seconds"].get<double>(),
              14 * plain["bound_seconds"].get<double>(), 1e-4);
  // `--slow` of a node slows both.
  EXPECT_GT(completion(run({"--slow", "3=0.5"}, "40Gbit/s")), completion(both));
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
                   "--algorithm", "binomial_pipeline", "-o", plan_});
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

// Catches a time that has the root's acknowledgements in it, and gains of one host's end and
// another's.
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

// Catches a gain with a barrier that is not the printed one, or before a side that needs none; and
// a compare that differs.
TEST_F(SimulateTest, TheGainWithTheBarrier) {
  for (const char* ready : {"window=1", "barrier"}) {
    const bool is_of_both = ready == std::string("barrier");
    test::OutputOf({"compile", "--nodes", "8", "--message-bytes", "64KiB", "--algorithm",
                    "binomial_pipeline", "--block-bytes", "8KiB", "--ready", ready, "-o", plan_});
    const Json json = SimulateJson({});
    const double barrier = json["barrier_seconds"].get<double>();
    EXPECT_GT(barrier, 10e-6);
    const auto gain = [&](const char* figure) {
      return (json["cpu"][figure].get<double>() + (is_of_both ? barrier : 0)) /
             (json["offload"][figure].get<double>() + barrier);
    };
    const Json& with = json["gain"]["with_barrier"];
    EXPECT_NEAR(with["completion"].get<double>(), gain("completion_seconds"), 1e-9);
    EXPECT_NEAR(with["known"].get<double>(), gain("known_seconds"), 1e-9);
    EXPECT_EQ(with["cpu_needs_it"], is_of_both);
    const std::string line = is_of_both ? "us before both: " : "us before preposted: ";
    EXPECT_THAT(Simulate({}), testing::ContainsRegex("\nwith the barrier, [0-9.]+" + line));
    const std::vector<std::string> compare = {"compare", plan_,       "--clock",
                                              "virtual", "--profile", test::ProfilePath("fractus")};
    EXPECT_THAT(test::OutputOf(compare),
                testing::ContainsRegex("\nwith the barrier, [0-9.]+" + line));
    std::vector<std::string> as_json = compare;
    as_json.emplace_back("--json");
    const Json compared = Json::parse(test::OutputOf(as_json))["comparisons"][0];
    EXPECT_EQ(compared["received_ratio_with_barrier"]["of_medians"], with["completion"]);
    EXPECT_EQ(compared["completion_ratio_with_barrier"]["of_medians"], with["known"]);
  }
}

// Where latency is nearly all, a bound without it made this 36,000 times the bound; and stats has
// the same bound by the same name.
TEST_F(SimulateTest, TheNetworkBoundHasLatency) {
  const std::string topology = folder_ / "sites.json";
  std::ofstream(topology) << R"({"format": "prepost.topology", "version": "1.0",
      "host_rate": "100Gbit/s", "up_rate": "100Gbit/s", "rack_latency": "1us",
      "core_latency": "30ms", "racks": [{"name": "a", "hosts": "a[1-4]"},
      {"name": "b", "hosts": "b[1-4]"}]})";
  test::OutputOf({"compile", "--topology", topology, "--message-bytes", "10KiB", "--algorithm",
                  "binomial_pipeline", "--block-bytes", "10KiB", "-o", plan_});
  const Json json = SimulateJson({"--topology", topology});
  EXPECT_NEAR(json["bound_seconds"].get<double>(), 30e-3 + 10240 / 12.5e9, 1e-9);
  for (const char* executor : {"offload", "cpu"}) {
    EXPECT_GE(json[executor]["of_bound"], 1.0) << executor;
    EXPECT_LT(json[executor]["of_bound"], 1.01) << executor;
  }
  EXPECT_THAT(Simulate({"--topology", topology}), HasSubstr("  of network bound 30.0008ms"));
  const std::vector<std::string> stats = {"stats", plan_, "--topology", topology};
  EXPECT_THAT(test::OutputOf(stats), HasSubstr("  network bound 30.0008ms, also without rounds"));
  std::vector<std::string> as_json = stats;
  as_json.emplace_back("--json");
  const Json found = Json::parse(test::OutputOf(as_json))["topology"];
  EXPECT_EQ(found["network_bound"]["seconds"], json["bound_seconds"]);
  EXPECT_GE(found["seconds_bound"], json["bound_seconds"]);
}

// --trace once printed what --causes prints.
TEST_F(SimulateTest, ATraceChangesNothingThatIsPrinted) {
  for (const std::string form : {"--per-node", "--json", "--causes"}) {
    for (const char* executor : {"cpu", "offload"}) {
      std::string with =
          Simulate({"--executor", executor, form, "--trace", folder_ / "trace.json"});
      const std::string flag = " --trace " + (folder_ / "trace.json");
      if (const size_t at = with.find(flag); at != std::string::npos) with.erase(at, flag.size());
      EXPECT_EQ(with, Simulate({"--executor", executor, form})) << form << " " << executor;
    }
  }
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

}  // namespace
}  // namespace prepost::simulate_test
