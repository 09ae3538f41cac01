// SPDX-License-Identifier: Apache-2.0
//
// HostRunTest: CPU-driven transfers in virtual time on a network on which nothing but bytes takes
// time, and a block takes a microsecond, for tests of what hosts add to that.
#ifndef PREPOST_TESTS_SUPPORT_HOST_RUN_FIXTURE_H_
#define PREPOST_TESTS_SUPPORT_HOST_RUN_FIXTURE_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "sim/runs/cpu_driven.h"
#include "tests/support/networks.h"
#include "tests/support/plans.h"

namespace prepost::sim {

class HostRunTest : public testing::Test {
 protected:
  static constexpr uint64_t kBlockBytes = 1000;
  /// Of kBlockBytes at the rate of MakeNetwork().
  static constexpr Picoseconds kBlockTime = 1000 * kPicosecondsPerNanosecond;

  /// 1 byte per ns and no latency.
  static Network MakeNetwork(uint32_t nodes) { return test::OneRack(nodes, 1e9); }

  /// With window=1 and send_window=1 unless `ready` and `send_window` say otherwise.
  static VerifiedPlan PlanFor(const std::string& algorithm, uint32_t nodes, uint32_t blocks,
                              const std::string& ready = "window=1",
                              const std::string& send_window = "1") {
    return test::CompileOrDie(test::WithRacks({.nodes = nodes,
                                               .message_bytes = blocks * kBlockBytes,
                                               .block_bytes = kBlockBytes,
                                               .algorithm = algorithm,
                                               .ready = *ParseReady(ready),
                                               .send_window = *ParseSendWindow(send_window)},
                                              1 + nodes % 5));
  }

  static CpuDrivenResult RunPlan(const VerifiedPlan& plan, const CpuDrivenOptions& options = {}) {
    const Group group{.plan = &plan};
    auto run = RunCpuDriven({&group, 1}, MakeNetwork(plan.header().nodes), options);
    EXPECT_TRUE(run.ok()) << run.status().ToString();
    return run.ok() ? *std::move(run) : CpuDrivenResult{};
  }
  /// Until the last host is through; -1: it could not be run.
  static Picoseconds TimeOfRun(const VerifiedPlan& plan, const CpuDrivenOptions& options = {}) {
    const CpuDrivenResult run = RunPlan(plan, options);
    return run.groups.empty() ? -1 : run.groups[0].completion;
  }
};

}  // namespace prepost::sim

#endif  // PREPOST_TESTS_SUPPORT_HOST_RUN_FIXTURE_H_
