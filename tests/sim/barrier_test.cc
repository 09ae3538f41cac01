// SPDX-License-Identifier: Apache-2.0
//
// What the start barrier is modelled to take.
#include <gtest/gtest.h>

#include "runtime/group/gate_tree.h"
#include "sim/simulation.h"
#include "tests/support/plans.h"

namespace prepost::sim::barrier_test {
namespace {

constexpr double kCall = 1e-6;
constexpr double kLatency = 20e-6;

double BarrierOf(uint32_t nodes) {
  const VerifiedPlan plan = test::PlanOf(nodes, 1, "chain");
  Profile profile;
  profile.control = ControlProfile{.system_call = kCall, .latency = kLatency};
  Simulation it = {
      .groups = RotatedGroups(plan, 1), .profile = profile, .network = Network::Uniform(nodes)};
  return *BarrierSeconds(it) - 2 * it.network.Latency(NodeId(0), NodeId(1));
}

// All are the leader's children: it receives and sends a message of each, one after the other.
TEST(BarrierTest, OfFewIsAStar) {
  EXPECT_NEAR(BarrierOf(2), 2 * kLatency + 6 * kCall, 1e-12);
  EXPECT_NEAR(BarrierOf(8), 2 * kLatency + 18 * kCall, 1e-12);
  EXPECT_NEAR(BarrierOf(17), 2 * kLatency + 36 * kCall, 1e-12);
}

// One more is a level more, and then the time grows with the levels: catches a leader that hears of
// all.
TEST(BarrierTest, OfManyIsATree) {
  const double least = 2 * kLatency, level = least + (2 * GateTree::kFanOut + 4) * kCall;
  EXPECT_GT(BarrierOf(18), BarrierOf(17) + least);
  EXPECT_NEAR(BarrierOf(273), 2 * level, 1e-12);  // two full levels
  EXPECT_LT(BarrierOf(1000), 3 * level + 1e-12);
  EXPECT_GT(BarrierOf(1000), 2 * level + least);
}

}  // namespace
}  // namespace prepost::sim::barrier_test
