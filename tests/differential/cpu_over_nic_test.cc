// SPDX-License-Identifier: Apache-2.0
//
// The CPU executor over plain work requests on emulated NICs, one thread per node: every plan
// leaves the oracle's bytes at every node, and what happened contains the plan's order, in every
// order of the NICs. Catches completions given to the wrong op, rings and CQs that wrap wrongly,
// and sleeps that miss their event (the test hangs).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "backends/local/armed_group.h"
#include "backends/local/driven_group.h"
#include "backends/mlx5/stand_in/stand_in.h"
#include "compiler/schedules/schedule.h"
#include "runtime/event_fd.h"
#include "runtime/wait_policy.h"
#include "tests/support/op_trace.h"
#include "tests/support/oracle.h"
#include "tests/support/plans.h"
#include "tests/support/sample.h"
#include "tests/support/transfer.h"

namespace prepost::cpu_over_nic_test {
namespace {

using emulated::Fabric;
using emulated::SchedulerMode;
using local::DrivenGroup;
using test::CompileOrDie;
using test::OpTrace;
using test::Transfer;

struct Setting {
  SchedulerMode scheduler = SchedulerMode::kRoundRobin;
  uint64_t seed = 1;
  WaitMode wait = WaitMode::kInterrupt;
  uint32_t ring_wqes_max = 32768;
  bool is_mlx5 = false;  ///< the mlx5 device and its stand-in in front of the NICs
};

/// The hosts of a group; one that fails ends the others.
class Hosts {
 public:
  DrivenGroup Make(Fabric& fabric, const VerifiedPlan& plan, const Transfer& transfer,
                   const Setting& setting, OpTrace& trace) {
    return *DrivenGroup::Make(
        fabric, plan, local::MulticastMemory(plan.header(), transfer.message(), transfer.buffers()),
        {.ring_wqes_max = setting.ring_wqes_max,
         .wake_fd = wake_.fd(),
         .observer = trace.Observer()});
  }

  /// Plays with a thread per node; the NICs are already at work when the hosts start.
  void PlayAll(Fabric& fabric, DrivenGroup& group, WaitMode wait) {
    ASSERT_TRUE(fabric.Start(Fabric::Until::kStopped).ok());
    std::vector<Status> statuses(group.size());
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < group.size(); ++i) {
      threads.emplace_back([&, i] {
        statuses[i] = Play(group.executor(NodeId(i)), wait);
        if (!statuses[i].ok()) End();
      });
    }
    for (std::thread& thread : threads) thread.join();
    fabric.Stop();
    for (const Status& status : statuses) ASSERT_TRUE(status.ok()) << status.ToString();
    const Status misuses = local::CheckMisuses(fabric);
    EXPECT_TRUE(misuses.ok()) << misuses.ToString();
  }

 private:
  Status Play(CpuExecutor& executor, WaitMode wait) const {
    WaitPacer pacer({.mode = wait, .idle_max = std::chrono::milliseconds(1)});
    executor.Start();
    while (!executor.done() && !ended_) {
      PREPOST_RETURN_IF_ERROR(executor.Poll(pacer.Timeout(executor.progress())));
    }
    return {};
  }

  void End() {
    ended_ = true;
    wake_.Signal();
  }

  std::atomic<bool> ended_ = false;
  EventFd wake_ = *EventFd::Make();
};

void ExpectDelivers(const VerifiedPlan& plan, const Setting& setting) {
  SCOPED_TRACE(testing::Message() << Name(setting.scheduler) << " seed " << setting.seed << ", "
                                  << Name(setting.wait) << ", rings of " << setting.ring_wqes_max);
  Transfer transfer(plan.header());
  OpTrace trace(plan);
  Fabric fabric(plan.header().nodes, {.scheduler = setting.scheduler, .seed = setting.seed});
  if (setting.is_mlx5) {
    const Status made = fabric.MakeDevices(
        [](nic::NicModel& nic) { return mlx5::OpenOnStandIn(nic, mlx5::StandInOptions{}); });
    ASSERT_TRUE(made.ok()) << made.ToString();
  }
  Hosts hosts;
  DrivenGroup group = hosts.Make(fabric, plan, transfer, setting, trace);
  hosts.PlayAll(fabric, group, setting.wait);
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
  test::Sample sample(LabelsOf(cases), test::IsLongRun() ? 1 : 6 * test::SampleDivisor());
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
  test::Sample sample(LabelsOf(cases), test::IsLongRun() ? 1 : 2 * test::SampleDivisor());
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
