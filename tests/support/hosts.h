// SPDX-License-Identifier: Apache-2.0
//
// Hosts: the threads that play a plan's CPU executors in one process, one per node; of a group of nodes
// on emulated NICs also what makes it.
#ifndef PREPOST_TESTS_SUPPORT_HOSTS_H_
#define PREPOST_TESTS_SUPPORT_HOSTS_H_

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "backends/emulated/fabric.h"
#include "backends/local/armed_group.h"
#include "backends/local/driven_group.h"
#include "backends/mlx5/stand_in/stand_in.h"
#include "runtime/event_fd.h"
#include "runtime/executor.h"
#include "runtime/wait_policy.h"

namespace prepost::test {

/// One that fails ends the others, if their endpoints have wake_fd(). For one play.
class Hosts {
 public:
  int wake_fd() const { return wake_.fd(); }

  /// Starts so many armed executors, one on each thread, and polls each until it is done.
  void Play(uint32_t nodes, const std::function<CpuExecutor&(NodeId)>& executor,
            WaitMode wait = WaitMode::kInterrupt) {
    std::vector<Status> statuses(nodes);
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < nodes; ++i) {
      threads.emplace_back([&, i] {
        statuses[i] = PlayOne(executor(NodeId(i)), wait);
        if (!statuses[i].ok()) End();
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Status& status : statuses) ASSERT_TRUE(status.ok()) << status.ToString();
  }

  /// The group's executors; its NICs are already at work when they start.
  void PlayOn(emulated::Fabric& fabric, local::DrivenGroup& group,
              WaitMode wait = WaitMode::kInterrupt) {
    ASSERT_TRUE(fabric.Start(emulated::Fabric::Until::kStopped).ok());
    Play(
        static_cast<uint32_t>(group.size()),
        [&](NodeId node) -> CpuExecutor& { return group.executor(node); }, wait);
    fabric.Stop();
    if (testing::Test::HasFatalFailure()) return;
    const Status misuses = local::CheckMisuses(fabric);
    EXPECT_TRUE(misuses.ok()) << misuses.ToString();
  }

 private:
  Status PlayOne(CpuExecutor& executor, WaitMode wait) const {
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

/// How a plan is played on emulated NICs.
struct NicSetting {
  emulated::SchedulerMode scheduler = emulated::SchedulerMode::kRoundRobin;
  uint64_t seed = 1;
  WaitMode wait = WaitMode::kInterrupt;
  uint32_t ring_wqes_max = 32768;
  bool is_mlx5 = false;  ///< the mlx5 device and its stand-in in front of the NICs
};

/// Plays `plan` from and to `memory`, by node, on NICs of its own, a thread per node.
inline void PlayOnNics(const VerifiedPlan& plan, std::span<const NodeMemory> memory,
                       const NicSetting& setting, OpObserver observer = {}) {
  emulated::Fabric fabric(plan.header().nodes,
                          {.scheduler = setting.scheduler, .seed = setting.seed});
  if (setting.is_mlx5) {
    const Status made = fabric.MakeDevices(
        [](nic::NicModel& nic) { return mlx5::OpenOnStandIn(nic, mlx5::StandInOptions{}); });
    ASSERT_TRUE(made.ok()) << made.ToString();
  }
  Hosts hosts;
  Result<local::DrivenGroup> group =
      local::DrivenGroup::Make(fabric, plan, memory,
                               {.ring_wqes_max = setting.ring_wqes_max,
                                .wake_fd = hosts.wake_fd(),
                                .observer = std::move(observer)});
  ASSERT_TRUE(group.ok()) << group.status().ToString();
  hosts.PlayOn(fabric, *group, setting.wait);
}

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_HOSTS_H_
