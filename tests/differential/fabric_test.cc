// SPDX-License-Identifier: Apache-2.0
//
// Plans over libfabric: preposted as deferred work to the sockets provider, which starts every send by
// itself, and driven by the CPU over the same and other providers. A thread per node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "backends/registry.h"
#include "tests/differential/device_play.h"
#include "tests/support/plans.h"
#include "tests/support/sample.h"
#include "tests/support/sanitizers.h"

namespace prepost::fabric_test {
namespace {

using test::Play;

/// With the thread sanitizer nothing of libfabric is tried: it does not see how its threads are ordered.
bool HasProvider(const std::string& device) {
  if (test::kHasThreadSanitizer) return false;
  return FindListed(device).ok();
}

// Libraries behind libfabric take signals when they are loaded. Catches Ctrl-C that a program no longer
// hears of.
TEST(FabricSignalsTest, BelongToTheProgram) {
  const auto handlers = [] {
    std::vector<void (*)(int)> all;
    for (int number = 1; number < 32; ++number) {
      struct sigaction action = {};
      if (sigaction(number, nullptr, &action) == 0) all.push_back(action.sa_handler);
    }
    return all;
  };
  const auto before = handlers();
  static_cast<void>(FindListed("fabric:tcp"));
  EXPECT_EQ(handlers(), before);
}

// Catches whatever the model of counters does not know of a provider: another order of work, of
// messages or of completions; and hosts that touch the transfer.
TEST(TriggeredTest, EverySmallPlan) {
  if (!HasProvider("fabric:sockets")) GTEST_SKIP() << "libfabric has no provider sockets here";
  const std::vector<Spec> specs = test::SpecsForExecutors({.nodes_max = 9, .blocks_max = 6});
  test::Sample sample(test::ScheduleLabels(specs), test::SampleDivisor(16));
  for (const Spec& spec : specs) {
    if (!sample.Takes()) continue;
    SCOPED_TRACE(test::Label(spec));
    const VerifiedPlan plan = test::CompileOrDie(spec);
    Play(plan, "fabric:sockets", std::vector(spec.nodes, true));
    if (HasFatalFailure()) return;
  }
}

// Both kinds have the same endpoints and put the same messages on them.
TEST(TriggeredTest, SomeNodesAreDriven) {
  if (!HasProvider("fabric:sockets")) GTEST_SKIP() << "libfabric has no provider sockets here";
  const VerifiedPlan plan = test::PlanWithWindowsOf1("binomial_pipeline", 5, 20, 1000);
  Play(plan, "fabric:sockets", {true, false, true, true, false});
}

// The provider shm names endpoints by their process, so that it is for processes: run_test.cc.
class FabricTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Providers, FabricTest, testing::Values("fabric:tcp", "fabric:sockets"),
                         [](const auto& it) { return std::string(it.param).substr(7); });

TEST_P(FabricTest, EverySmallPlan) {
  if (!HasProvider(GetParam())) GTEST_SKIP() << "libfabric has no such provider here";
  // Four plans at a time without sanitizers, of as many schedules.
  const std::vector<Spec> specs = test::SpecsForExecutors({.nodes_max = 6, .blocks_max = 6});
  test::Sample sample(test::ScheduleLabels(specs), test::SampleDivisor(63));
  for (const Spec& spec : specs) {
    if (!sample.Takes()) continue;
    SCOPED_TRACE(test::Label(spec));
    const VerifiedPlan plan = test::CompileOrDie(spec);
    Play(plan, GetParam(), std::vector(spec.nodes, false));
    if (HasFatalFailure()) return;
  }
}

// Catches a room of memory that the provider does not know, and blocks that lie apart and are sent or
// received elsewhere than where they are copied.
TEST_P(FabricTest, EveryCollective) {
  if (!HasProvider(GetParam())) GTEST_SKIP() << "libfabric has no such provider here";
  // Connections over tcp take long.
  test::PlayEveryCollective(GetParam(), std::string(GetParam()) == "fabric:tcp" ? 8 : 4);
}

TEST_P(FabricTest, LargerBlocks) {
  if (!HasProvider(GetParam())) GTEST_SKIP() << "libfabric has no such provider here";
  for (const uint64_t block : {4096u, 300'000u}) {
    // Connections over tcp take long.
    if (block == 4096 && std::string(GetParam()) == "fabric:tcp") continue;
    const VerifiedPlan plan = test::PlanWithWindowsOf1("binomial_pipeline", 4, 8, block);
    Play(plan, GetParam(), std::vector(4, false));
    if (HasFatalFailure()) return;
    if (std::string(GetParam()) == "fabric:sockets") Play(plan, GetParam(), std::vector(4, true));
  }
}

}  // namespace
}  // namespace prepost::fabric_test
