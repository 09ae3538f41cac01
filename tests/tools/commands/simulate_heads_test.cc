// SPDX-License-Identifier: Apache-2.0
//
// What prepost simulate, and compare --clock virtual, say of a run before its figures: what is
// other than in the profile, and what changes nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/simulate_fixture.h"

namespace prepost::simulate_heads_test {
namespace {

using test::Command;
using test::SimulateTest;
using ::testing::HasSubstr;
using Json = nlohmann::json;

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
  EXPECT_THAT(compared, HasSubstr(": 3 nodes, root 2; 1048576 bytes in "));
  EXPECT_THAT(
      compared,
      HasSubstr("; ready barrier, send window none\nqueues managed by one master per lane"));
  EXPECT_THAT(compared, HasSubstr(", but --order 2,0,1\n"));
}

// Catches a way of waiting by which hosts of preposted queues know later, and that is not printed.
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

}  // namespace
}  // namespace prepost::simulate_heads_test
