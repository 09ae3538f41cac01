// SPDX-License-Identifier: Apache-2.0
//
// Collectives other than multicasts, driven by CPUs over plain work requests on emulated NICs, one thread
// per node: outputs are what the inputs say, in every order of the NICs, with short rings, and behind the
// mlx5 device code.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backends/emulated/fabric.h"
#include "backends/local/armed_group.h"
#include "backends/mlx5/stand_in/stand_in.h"
#include "backends/nic/host/device_endpoint.h"
#include "runtime/event_fd.h"
#include "runtime/executor.h"
#include "tests/support/collective_transfer.h"
#include "tests/support/plans.h"
#include "tests/support/sample.h"

namespace prepost::collective_over_nic_test {
namespace {

using emulated::Fabric;
using emulated::SchedulerMode;
using Room = nic::DeviceEndpointConfig::Room;

struct Setting {
  SchedulerMode scheduler = SchedulerMode::kRoundRobin;
  uint64_t seed = 1;
  uint32_t ring_wqes_max = 32768;
  bool is_mlx5 = false;  ///< the mlx5 device and its stand-in in front of the NICs
};

void Play(const VerifiedPlan& plan, test::CollectiveTransfer& transfer, const Setting& setting) {
  const uint32_t nodes = plan.header().nodes;
  Fabric fabric(nodes, {.scheduler = setting.scheduler, .seed = setting.seed});
  if (setting.is_mlx5) {
    const Status made = fabric.MakeDevices(
        [](nic::NicModel& nic) { return mlx5::OpenOnStandIn(nic, mlx5::StandInOptions{}); });
    ASSERT_TRUE(made.ok()) << made.ToString();
  }
  EventFd wake = *EventFd::Make();
  const std::vector<NodeMemory> memory = transfer.StagedMemory(plan);
  std::vector<std::unique_ptr<nic::DeviceEndpoint>> endpoints;
  std::vector<nic::OpenNode> open;
  for (uint32_t i = 0; i < nodes; ++i) {
    const NodeMemory& its = memory[i];
    const std::array<Room, 4> rooms = {
        {{its.source, false}, {its.target, true}, {its.scratch, true}, {its.staging, true}}};
    auto endpoint = nic::DeviceEndpoint::Make(
        fabric.device(NodeId(i)), plan, NodeId(i),
        {.rooms = rooms, .ring_wqes_max = setting.ring_wqes_max, .wake_fd = wake.fd()});
    ASSERT_TRUE(endpoint.ok()) << endpoint.status().ToString();
    open.push_back((*endpoint)->open_node());
    endpoints.push_back(*std::move(endpoint));
  }
  ASSERT_TRUE(nic::ConnectAll(open).ok());
  std::vector<std::unique_ptr<CpuExecutor>> executors;
  for (uint32_t i = 0; i < nodes; ++i) {
    executors.push_back(std::make_unique<CpuExecutor>(plan, NodeId(i), *endpoints[i]));
    executors.back()->Prepare(memory[i]);
    executors.back()->Arm();
  }
  ASSERT_TRUE(fabric.Start(Fabric::Until::kStopped).ok());
  std::vector<Status> statuses(nodes);
  std::atomic<bool> is_ended = false;
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < nodes; ++i) {
    threads.emplace_back([&, i] {
      executors[i]->Start();
      while (statuses[i].ok() && !executors[i]->done() && !is_ended)
        statuses[i] = executors[i]->Poll(std::chrono::milliseconds(-1));
      if (statuses[i].ok()) return;
      is_ended = true;
      wake.Signal();
    });
  }
  for (std::thread& thread : threads) thread.join();
  fabric.Stop();
  for (const Status& status : statuses) ASSERT_TRUE(status.ok()) << status.ToString();
  const Status misuses = local::CheckMisuses(fabric);
  EXPECT_TRUE(misuses.ok()) << misuses.ToString();
}

constexpr SchedulerMode kModes[] = {SchedulerMode::kRoundRobin, SchedulerMode::kRandom,
                                    SchedulerMode::kAdversarial};

/// Every schedule x ready mode at small n, sampled.
void PlaySmallPlans(test::SpecLimits limits, uint32_t fewer, Setting setting) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  setting.seed = seed;
  std::vector<Spec> specs = test::SpecsOfCollectives(limits);
  std::vector<std::string> labels;
  for (Spec& spec : specs) {
    labels.push_back(
        fmt::format("{}={} ready={}", Name(spec.collective), spec.algorithm, ToString(spec.ready)));
    if (spec.combine.type == ElementType::kFloat32) spec.combine.type = ElementType::kInt32;
  }
  test::Sample sample(labels, test::IsLongRun() ? 1 : fewer * test::SampleDivisor());
  for (const Spec& spec : specs) {
    if (!sample.Takes()) continue;
    ++setting.seed;
    setting.scheduler = kModes[setting.seed % std::size(kModes)];
    SCOPED_TRACE(
        fmt::format("{}, {} seed {}", test::Label(spec), Name(setting.scheduler), setting.seed));
    const VerifiedPlan plan = test::CompileOrDie(spec);
    test::CollectiveTransfer transfer(plan.header(), random);
    Play(plan, transfer, setting);
    if (!testing::Test::HasFatalFailure()) transfer.ExpectDelivered();
    if (testing::Test::HasFailure()) return;
  }
}

// Catches messages that are sent from, or received into, another room than their key's, lengths of ranges
// that are those of their first block, and hosts that combine what has not come.
TEST(CollectiveOverNicTest, EverySmallPlanDelivers) {
  PlaySmallPlans({.nodes_max = 7, .blocks_max = 3}, 1, {});
}

// What does not fit a ring is posted later, from where the executor said at first.
TEST(CollectiveOverNicTest, ShortRingsHoldRequestsBack) {
  PlaySmallPlans({.nodes_max = 6, .blocks_max = 4}, 2, {.ring_wqes_max = 2});
}

TEST(CollectiveOverNicTest, EverySmallPlanDeliversOverMlx5) {
  PlaySmallPlans({.nodes_max = 5, .blocks_max = 2}, 2, {.is_mlx5 = true});
}

TEST(CollectiveOverNicTest, MessagesOfManyPacketsDeliver) {
  test::Random random(test::TestSeed());
  for (const char* algorithm : {"ring", "halving", "doubling", "chain"}) {
    SCOPED_TRACE(algorithm);
    const VerifiedPlan plan =
        test::CompileOrDie({.collective = CollectiveKind::kAllreduce,
                            .combine = {.op = CombineOp::kXor, .type = ElementType::kUint32},
                            .nodes = 4,
                            .message_bytes = 300'000,
                            .block_bytes = 20'000,
                            .algorithm = algorithm});
    test::CollectiveTransfer transfer(plan.header(), random);
    Play(plan, transfer, {.scheduler = SchedulerMode::kAdversarial, .seed = test::TestSeed()});
    if (!HasFatalFailure()) transfer.ExpectDelivered();
  }
}

}  // namespace
}  // namespace prepost::collective_over_nic_test
