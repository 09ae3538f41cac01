// SPDX-License-Identifier: Apache-2.0
//
// One group in which some members are preposted and others CPU-driven over the same kind of device.
// Both make the same queue pairs and put the same messages on them, so a peer cannot tell which its
// neighbour is; a difference in pairing, immediates, credits or order shows here.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "backends/emulated/fabric.h"
#include "backends/nic/host/armed_node.h"
#include "backends/nic/host/device_endpoint.h"
#include "backends/nic/program/lower.h"
#include "compiler/schedules/schedule.h"
#include "runtime/executor.h"
#include "tests/support/plans.h"
#include "tests/support/random.h"
#include "tests/support/transfer.h"

namespace prepost::mixed_members_test {
namespace {

using emulated::Fabric;
using emulated::SchedulerMode;

constexpr std::chrono::milliseconds kLook{0};

/// One node of the group, played in one of the two ways.
class Member {
 public:
  Member(Fabric& fabric, const VerifiedPlan& plan, const nic::NodeProgram& program,
         bool is_preposted, std::span<const std::byte> memory, std::span<std::byte> target)
      : is_root_(program.node == plan.header().collective.root) {
    nic::Device& device = fabric.device(program.node);
    if (is_preposted) {
      Result<nic::ArmedNode> made =
          nic::ArmedNode::Make(device, program,
                               {.messages = {memory},
                                .writable = !is_root_,
                                .rnr_retry = nic::RnrRetryOf(plan.header())});
      EXPECT_TRUE(made.ok()) << made.status().ToString();
      armed_.emplace(*std::move(made));
      return;
    }
    auto made = nic::DeviceEndpoint::Make(device, plan, program.node,
                                          {.message = memory, .writable = !is_root_});
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    endpoint_ = *std::move(made);
    executor_ = std::make_unique<CpuExecutor>(plan, program.node, *endpoint_);
    executor_->Prepare({.source = memory, .target = target});
  }

  nic::OpenNode open_node() const { return armed_ ? armed_->open_node() : endpoint_->open_node(); }
  Status Arm() {
    if (armed_) return armed_->Arm();
    executor_->Arm();
    return {};
  }
  void Start() { armed_ ? armed_->Start() : executor_->Start(); }
  Status Look() {
    if (is_done_) return {};
    if (!armed_) {
      PREPOST_RETURN_IF_ERROR(executor_->Poll(kLook));
      is_done_ = executor_->done();
      return {};
    }
    const Result<bool> done = armed_->Poll(kLook, /*wake_fd=*/-1);
    if (!done.ok()) return done.status();
    is_done_ = *done;
    return is_done_ ? armed_->CheckAll() : Status();
  }
  bool is_done() const { return is_done_; }

 private:
  bool is_root_;
  bool is_done_ = false;
  std::optional<nic::ArmedNode> armed_;
  std::unique_ptr<nic::DeviceEndpoint> endpoint_;
  std::unique_ptr<CpuExecutor> executor_;
};

void ExpectDelivers(const VerifiedPlan& plan, const nic::LowerOptions& lower, uint64_t seed) {
  SCOPED_TRACE(testing::Message() << Name(lower.mode) << " seed " << seed);
  const nic::QueueProgram program = *nic::Lower(plan, lower);
  test::Random random(seed);
  test::Transfer transfer(plan.header());
  Fabric fabric(plan.header().nodes, {.scheduler = SchedulerMode::kAdversarial, .seed = seed});
  std::vector<std::unique_ptr<Member>> members;
  std::vector<nic::OpenNode> open;
  for (const nic::NodeProgram& node : program.nodes) {
    const std::span<std::byte> buffer = transfer.buffers()[node.node.index()];
    const bool is_root = node.node == plan.header().collective.root;
    members.push_back(std::make_unique<Member>(
        fabric, plan, node, /*is_preposted=*/random.Below(2) == 0,
        is_root ? transfer.message() : std::span<const std::byte>(buffer), buffer));
    if (testing::Test::HasFailure()) return;
    open.push_back(members.back()->open_node());
  }
  ASSERT_TRUE(nic::ConnectAll(open).ok());
  for (const auto& member : members) ASSERT_TRUE(member->Arm().ok());
  for (const auto& member : members) member->Start();
  for (uint64_t steps = UINT64_MAX; steps != fabric.engine().steps();) {
    steps = fabric.engine().steps();
    fabric.RunUntilIdle();
    for (const auto& member : members) {
      const Status status = member->Look();
      ASSERT_TRUE(status.ok()) << status.ToString();
    }
  }
  for (size_t i = 0; i < members.size(); ++i) {
    EXPECT_TRUE(members[i]->is_done()) << "node " << i << " stands still";
  }
  transfer.ExpectDelivered();
  EXPECT_TRUE(fabric.engine().misuses().empty());
}

class MixedMembers : public testing::TestWithParam<std::tuple<std::string, nic::LoweringMode>> {};

TEST_P(MixedMembers, DeliverTheSameBytes) {
  const std::string schedule = test::ScheduleInTurn(std::get<0>(GetParam()));
  const nic::LoweringMode mode = std::get<1>(GetParam());
  uint64_t seed = test::TestSeed();
  for (const char* ready : {"auto", "barrier", "channel", "window=1", "window=3", "retry"}) {
    for (const uint32_t nodes : {1u, 2u, 3u, 6u, 8u, 13u}) {
      for (const uint32_t blocks : {1u, 5u, 16u}) {
        const VerifiedPlan plan =
            test::CompileOrDie(test::WithRacks({.nodes = nodes,
                                                .root = NodeId(nodes / 2),
                                                .message_bytes = blocks * 100 - 13,
                                                .block_bytes = 100,
                                                .algorithm = schedule,
                                                .ready = *ParseReady(ready)},
                                               4));
        SCOPED_TRACE(testing::Message()
                     << ready << ", " << nodes << " nodes, " << blocks << " blocks");
        nic::LowerOptions lower{.mode = mode};
        ExpectDelivers(plan, lower, ++seed);
        lower.profile = {.sq_wqebbs = 16, .rq_wqes = 16};
        ExpectDelivers(plan, lower, ++seed);
        if (HasFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, MixedMembers,
                         testing::Combine(testing::ValuesIn(test::ScheduleParameters()),
                                          testing::Values(nic::LoweringMode::kInline,
                                                          nic::LoweringMode::kManaged)),
                         [](const auto& param) {
                           return std::get<0>(param.param) + "_" +
                                  std::string(Name(std::get<1>(param.param)));
                         });

}  // namespace
}  // namespace prepost::mixed_members_test
