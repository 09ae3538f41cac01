// SPDX-License-Identifier: Apache-2.0
//
// The CPU executor over plain work requests on emulated NICs, one thread per node: every plan
// leaves the oracle's bytes at every node, and what happened contains the plan's order, in every
// order of the NICs. Catches completions given to the wrong op, rings and CQs that wrap wrongly,
// and sleeps that miss their event (the test hangs).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>
#include <vector>

#include "backends/local/driven_group.h"
#include "compiler/schedules/schedule.h"
#include "tests/support/hosts.h"
#include "tests/support/op_trace.h"
#include "tests/support/oracle.h"
#include "tests/support/plans.h"
#include "tests/support/sample.h"
#include "tests/support/transfer.h"

namespace prepost::cpu_over_nic_test {
namespace {

using emulated::SchedulerMode;
using test::CompileOrDie;
using test::NicSetting;
using test::OpTrace;
using test::Transfer;

void ExpectDelivers(const VerifiedPlan& plan, const NicSetting& setting) {
  SCOPED_TRACE(testing::Message() << Name(setting.scheduler) << " seed " << setting.seed << ", "
                                  << Name(setting.wait) << ", rings of " << setting.ring_wqes_max);
  Transfer transfer(plan.header());
  OpTrace trace(plan);
  test::PlayOnNics(plan,
                   local::MulticastMemory(plan.header(), transfer.message(), transfer.buffers()),
                   setting, trace.Observer());
  if (testing::Test::HasFatalFailure()) return;
  test::Random random(setting.seed);
  const auto expected = test::Deliver(plan, transfer.message(), random);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  transfer.ExpectHolds(*expected);
  transfer.ExpectDelivered();
  trace.ExpectPlanOrder();
}

constexpr SchedulerMode kModes[] = {SchedulerMode::kRoundRobin, SchedulerMode::kRandom,
                                    SchedulerMode::kAdversarial};
constexpr WaitMode kWaits[] = {WaitMode::kInterrupt, WaitMode::kPolling, WaitMode::kHybrid};
constexpr uint32_t kRings[] = {2, 32768};

struct Case {
  Spec spec;
  WaitMode wait;
  uint32_t ring_wqes_max;
};

/// Every plan with each way of waiting in `waits` and each ring.
std::vector<Case> CasesOf(const std::vector<Spec>& specs, std::span<const WaitMode> waits) {
  std::vector<Case> cases;
  for (const Spec& spec : specs) {
    for (const WaitMode wait : waits) {
      for (const uint32_t ring : kRings) cases.push_back({spec, wait, ring});
    }
  }
  return cases;
}

std::vector<std::string> LabelsOf(const std::vector<Case>& cases) {
  std::vector<std::string> labels;
  for (const Case& it : cases)
    labels.push_back(fmt::format("wait={} ring={}", Name(it.wait), it.ring_wqes_max));
  return labels;
}

class CpuOverNicTest : public testing::TestWithParam<std::string> {
 protected:
  const std::string schedule_ = test::ScheduleInTurn(GetParam());
};

TEST_P(CpuOverNicTest, EverySmallPlanDelivers) {
  uint64_t seed = test::TestSeed();
  const std::vector<Case> cases =
      CasesOf(test::SpecsForExecutors({.nodes_max = 9, .blocks_max = 6}, {schedule_}), kWaits);
  test::Sample sample(LabelsOf(cases), test::SampleDivisor(6));
  for (const Case& it : cases) {
    if (!sample.Takes()) continue;
    SCOPED_TRACE(test::Label(it.spec));
    ++seed;
    ExpectDelivers(CompileOrDie(it.spec), {.scheduler = kModes[seed % std::size(kModes)],
                                           .seed = seed,
                                           .wait = it.wait,
                                           .ring_wqes_max = it.ring_wqes_max});
    if (HasFailure()) return;
  }
}

// Events, consumer indices and small rings of the mlx5 device. A host that sleeps although a CQE is
// there hangs.
TEST_P(CpuOverNicTest, EverySmallPlanDeliversOverMlx5) {
  uint64_t seed = test::TestSeed();
  const std::vector<Case> cases =
      CasesOf(test::SpecsForExecutors({.nodes_max = 6, .blocks_max = 4}, {schedule_}),
              std::array{WaitMode::kInterrupt});
  test::Sample sample(LabelsOf(cases), test::SampleDivisor(2));
  for (const Case& it : cases) {
    if (!sample.Takes()) continue;
    SCOPED_TRACE(test::Label(it.spec));
    ExpectDelivers(
        CompileOrDie(it.spec),
        {.seed = ++seed, .wait = it.wait, .ring_wqes_max = it.ring_wqes_max, .is_mlx5 = true});
    if (HasFailure()) return;
  }
}

// Far more blocks than the rings hold, and than their 16-bit indices count: catches lost laps.
TEST_P(CpuOverNicTest, IndicesWrap) {
  PREPOST_SKIP_IF_IN_ANOTHER_PART();
  const VerifiedPlan plan = CompileOrDie({.nodes = 3,
                                          .message_bytes = 70'000,
                                          .block_bytes = 1,
                                          .algorithm = schedule_,
                                          .ready = *ParseReady("barrier"),
                                          .send_window = *ParseSendWindow("none")});
  ExpectDelivers(plan, {.ring_wqes_max = 64});
}

TEST_P(CpuOverNicTest, MessagesOfManyPacketsDeliver) {
  for (const char* ready : {"auto", "barrier", "channel", "window=1", "retry"}) {
    const VerifiedPlan plan = CompileOrDie({.nodes = 8,
                                            .root = NodeId(3),
                                            .message_bytes = 38'766,
                                            .block_bytes = 10'000,
                                            .algorithm = schedule_,
                                            .ready = *ParseReady(ready)});
    ExpectDelivers(plan, {.scheduler = SchedulerMode::kAdversarial, .seed = test::TestSeed()});
  }
}

INSTANTIATE_TEST_SUITE_P(All, CpuOverNicTest, testing::ValuesIn(test::ScheduleParameters()),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace prepost::cpu_over_nic_test
