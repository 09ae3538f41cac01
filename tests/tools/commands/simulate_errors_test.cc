// SPDX-License-Identifier: Apache-2.0
//
// What prepost simulate refuses, and whom it blames.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/simulate_fixture.h"

namespace prepost::simulate_errors_test {
namespace {

using test::SimulateTest;

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
  expect({"--set", "host.completion=1"},
         "--set host.completion=1: expected a time with its unit, such as 1us");
  expect({"--set", "host.copy_rate=1e9"}, "expected a rate with its unit, such as 1Gbit/s");
  expect({"--sweep", "host.poll=1,2"}, "expected a time with its unit");
  expect({"--set", "host.completoin=1"}, "unknown key, did you mean 'completion'?");
  SimulateJson({"--set", "host.completion=0", "--set", "host.cores=2"});
  const auto cpu = [&](const std::string& segment) {
    return SimulateJson({"--set", "tcp.segment_bytes=" + segment}, "tcp-10g")["cpu"];
  };
  EXPECT_EQ(cpu("256KiB"), cpu("262144"));
  EXPECT_NE(cpu("256KiB"), cpu("16KiB"));
}

// Catches flags of the cluster that are reported to be at fault where the plan is, as it would be
// without them.
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
  expect({"--delay", "node=8,at=1s,for=1s"}, 1, "no node '8', the nodes are 0 to 7");
  expect({"--delay", "node=1,at=1s"}, 2, "a part is missing");
  expect({"--delay", "node=1,at=1,for=1s"}, 2,
         "'1' is no time, expected 0 or more and a unit: ns, us, ms or s; the form is "
         "node=3,at=2ms,f");
  expect({"--delay", "node=1,node=2,at=1s,for=1s"}, 2, "'node' is there twice");
  expect({"--delay", "node=1,at=1s,for=1s,x=3"}, 2, "'x=3' is unknown");
  expect({"--slow", "0->8=0.5"}, 1, "no node '8', the nodes are 0 to 7");
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
  expect({"--neighbours", "node=8,count=1,slice=1ms"}, 1, "no node '8', the nodes are 0 to 7");
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
         "--trace is for one plan alone");
  expect({"--executor", "cpu", "--mode", "inline"}, 2, "is for preposted queues");
  expect({"--executor", "offload", "--copy-first-block"}, 2, "is for CPU-driven hosts");
  test::ExpectRefused(
      {"simulate", "--profile", test::ProfilePath("fractus"), "--nodes", "64", "--message-bytes",
       "64MiB", "--algorithm", "chain", "--block-bytes", "1MiB", "--groups", "65536"},
      1, "the limit is 134217728 together", folder_);
  ExpectRefused({"--profile", test::ProfilePath("tcp-10g"), "--executor", "offload"}, 1,
                "over TCP");
  ExpectRefused({"--profile", folder_ / "none"}, 1, "cannot read");
  ExpectRefused({"--profile", plan_}, 1, "/format: expected \"prepost.profile\"");
}

}  // namespace
}  // namespace prepost::simulate_errors_test
