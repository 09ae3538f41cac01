// SPDX-License-Identifier: Apache-2.0
//
// The offload executor against what a multicast is: every node ends with the root's bytes, whatever
// order the emulated NICs choose, and the order in which ops really happened contains the plan's. A
// WAIT that lowering forgets, an index that is off by one, or a rule of the NIC that is too lax
// shows here.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "backends/local/offload_run.h"
#include "backends/mlx5/stand_in/stand_in.h"
#include "backends/nic/program/lower.h"
#include "compiler/schedules/schedule.h"
#include "tests/support/op_trace.h"
#include "tests/support/oracle.h"
#include "tests/support/plans.h"
#include "tests/support/random.h"
#include "tests/support/rounds.h"
#include "tests/support/sample.h"
#include "tests/support/transfer.h"

namespace prepost::offload_test {
namespace {

using emulated::SchedulerMode;
using local::OffloadOptions;
using local::RunOffload;
using local::RunQueueProgram;
using test::CompileOrDie;
using test::Transfer;

constexpr uint64_t kBlockBytes = 10000;  // more than two MTUs, so that chunks interleave

void ExpectHostIdle(const RunReport& report) {
  for (const NodeReport& node : report.nodes) {
    EXPECT_EQ(node.host_posts_during, 0u) << "node " << node.node.value;
    EXPECT_EQ(node.host_event_requests_during, 0u) << "node " << node.node.value;
    EXPECT_EQ(node.host_wakeups, 1u) << "node " << node.node.value;
    EXPECT_EQ(node.host_completions, 1u) << "node " << node.node.value;
    EXPECT_GE(node.host_posts, 1u) << "node " << node.node.value;
  }
}

/// Rings of a handful of entries, so that nearly every queue is written in parts.
const nic::DeviceProfile kTinyRings = {.name = "tiny", .sq_wqebbs = 16, .rq_wqes = 16};

/// The report counts what was done, the bound is by the queues' lengths.
void ExpectRearmsWithinBound(const RunReport& report) {
  for (const NodeReport& node : report.nodes) {
    EXPECT_LE(node.rearms, node.rearms_max) << "node " << node.node.value;
  }
  for (const QueueRearms& it : report.queue_rearms) {
    EXPECT_LE(it.rearms, it.bound) << "node " << it.node.value << " " << it.queue;
  }
}

void ExpectDelivers(const VerifiedPlan& plan, OffloadOptions options) {
  SCOPED_TRACE(testing::Message() << Name(options.scheduler) << " seed " << options.seed);
  test::OpTrace order(plan);
  options.observer = order.Observer();
  Transfer transfer(plan.header());
  const Result<RunReport> report =
      RunOffload(plan, transfer.message(), transfer.buffers(), options);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  test::Random random(options.seed);
  const auto expected = test::Deliver(plan, transfer.message(), random);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  transfer.ExpectHolds(*expected);
  transfer.ExpectDelivered();
  order.ExpectPlanOrder();
  if (options.lower.profile == nic::DeviceProfile{}) {
    ExpectHostIdle(*report);
  } else {
    ExpectRearmsWithinBound(*report);
  }
}

Spec MakeSpec(const std::string& algorithm, uint32_t nodes, uint64_t bytes,
              const std::string& ready) {
  return test::WithRacks({.nodes = nodes,
                          .root = NodeId(nodes / 2),
                          .message_bytes = bytes,
                          .block_bytes = kBlockBytes,
                          .algorithm = algorithm,
                          .ready = *ParseReady(ready)},
                         3);
}

/// What stands in front of the emulated NICs. With mlx5 the same queues are made by firmware
/// commands: a field that the device writes elsewhere than the stand-in reads, a ring that is not
/// where the NIC reads, shows here.
enum class DeviceKind : uint8_t { kEmulated, kMlx5InfiniBand, kMlx5Ethernet };
const char* Name(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kEmulated:
      return "emulated";
    case DeviceKind::kMlx5InfiniBand:
      return "mlx5_infiniband";
    case DeviceKind::kMlx5Ethernet:
      return "mlx5_ethernet";
  }
  return "";
}

OffloadOptions OptionsOf(nic::LoweringMode mode, DeviceKind device) {
  OffloadOptions options{.lower = {.mode = mode}};
  if (device == DeviceKind::kEmulated) return options;
  options.make_device = [device](nic::NicModel& nic) {
    return mlx5::OpenOnStandIn(nic, {.is_ethernet = device == DeviceKind::kMlx5Ethernet});
  };
  return options;
}

class OffloadDifferential
    : public testing::TestWithParam<std::tuple<std::string, nic::LoweringMode, DeviceKind>> {
 protected:
  OffloadOptions Options(SchedulerMode scheduler = SchedulerMode::kRoundRobin, uint64_t seed = 1) {
    OffloadOptions options = OptionsOf(std::get<1>(GetParam()), std::get<2>(GetParam()));
    options.scheduler = scheduler;
    options.seed = seed;
    return options;
  }

  /// Each plan in each order of the NICs, with seeds of their own.
  void ExpectAllDeliver(const std::vector<Spec>& specs) {
    constexpr SchedulerMode kOrders[] = {SchedulerMode::kRoundRobin, SchedulerMode::kRandom,
                                         SchedulerMode::kAdversarial};
    std::vector<std::string> labels;
    for (size_t i = 0; i < specs.size(); ++i) {
      for (const SchedulerMode order : kOrders)
        labels.push_back("order=" + std::string(Name(order)));
    }
    uint64_t seed = test::TestSeed();
    test::Sample sample(labels, test::SampleDivisor() * 3 / 2);
    for (const Spec& spec : specs) {
      for (const SchedulerMode order : kOrders) {
        if (!sample.Takes()) continue;
        ++seed;
        SCOPED_TRACE(testing::Message()
                     << test::Label(spec) << ", " << Name(order) << ", seed " << seed);
        ExpectDelivers(CompileOrDie(spec), Options(order, seed));
        if (HasFailure()) return;
      }
    }
  }

  const std::string schedule_ = test::ScheduleInTurn(std::get<0>(GetParam()));
};

TEST_P(OffloadDifferential, EverySmallPlanDelivers) {
  // Making queues by commands takes most of the time, and is the same for larger plans.
  const bool is_mlx5 = std::get<2>(GetParam()) != DeviceKind::kEmulated;
  ExpectAllDeliver(is_mlx5 ? test::AllSmallSpecs({.nodes_max = 6, .blocks_max = 3}, {schedule_})
                           : test::AllSmallSpecs({}, {schedule_}));
}

// The same with ready and send window chosen by the compiler, other roots, and without bytes.
TEST_P(OffloadDifferential, EveryPlanForExecutorsDelivers) {
  ExpectAllDeliver(test::SpecsForExecutors({}, {schedule_}));
}

TEST_P(OffloadDifferential, MessagesOfManyPacketsDeliver) {
  test::Sample sample(5 * 2);
  for (const char* ready : {"auto", "barrier", "channel", "window=1", "retry"}) {
    for (const uint32_t nodes : {5u, 8u}) {
      if (!sample.Takes()) continue;
      const VerifiedPlan plan =
          CompileOrDie(MakeSpec(schedule_, nodes, 4 * kBlockBytes - 1234, ready));
      for (const auto mode : {SchedulerMode::kRandom, SchedulerMode::kAdversarial}) {
        ExpectDelivers(plan, Options(mode, test::TestSeed()));
      }
    }
  }
}

// Queues of several times their rings, re-armed while the NIC is at work. Receives that a
// barrier or a channel's one credit wants posted all at once must fit.
TEST_P(OffloadDifferential, TinyRingsDeliver) {
  test::Sample sample(7 * 4);
  for (const char* ready :
       {"auto", "barrier", "channel", "window=1", "window=3", "window=12", "retry"}) {
    const bool all_at_once =
        std::string_view("auto barrier channel").find(ready) != std::string::npos;
    for (const uint32_t nodes : {2u, 5u, 8u, 21u}) {
      if (!sample.Takes()) continue;
      Spec spec = MakeSpec(schedule_, nodes, (all_at_once ? 16 : 70) * 100 - 13, ready);
      spec.block_bytes = 100;
      SCOPED_TRACE(test::Label(spec));
      const VerifiedPlan plan = CompileOrDie(spec);
      OffloadOptions tiny = Options();
      tiny.lower.profile = kTinyRings;
      // Counters that wrap early on: 16 bits of send queues, 24 of CQs.
      tiny.first = {.epoch = 200, .sq_index = 0xfffa, .cq_index = 0xfffffb};
      const nic::QueueProgram program = *nic::Lower(plan, tiny.lower);
      EXPECT_TRUE(all_at_once || std::ranges::any_of(program.nodes, [](const auto& node) {
                    return node.rearms() >= 5;
                  }));
      for (const auto mode :
           {SchedulerMode::kRoundRobin, SchedulerMode::kRandom, SchedulerMode::kAdversarial}) {
        tiny.scheduler = mode;
        tiny.seed = test::TestSeed();
        ExpectDelivers(plan, tiny);
      }
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, OffloadDifferential,
    testing::Combine(testing::ValuesIn(test::ScheduleParameters()),
                     testing::Values(nic::LoweringMode::kInline, nic::LoweringMode::kManaged),
                     testing::Values(DeviceKind::kEmulated, DeviceKind::kMlx5InfiniBand,
                                     DeviceKind::kMlx5Ethernet)),
    [](const auto& param) {
      return std::get<0>(param.param) + "_" + std::string(Name(std::get<1>(param.param))) + "_" +
             Name(std::get<2>(param.param));
    });

// Blocks do not hold up credits, or no queue holds up another.
TEST(OffloadTest, SeveralMastersDeliver) {
  for (const nic::Masters masters : {nic::Masters::kLane, nic::Masters::kQueue}) {
    for (const bool tiny : {false, true}) {
      nic::LowerOptions lower{.mode = nic::LoweringMode::kManaged, .masters = masters};
      if (tiny) lower.profile = kTinyRings;
      const VerifiedPlan plan =
          CompileOrDie(MakeSpec("binomial_pipeline", 7, 40 * kBlockBytes, "window=1"));
      const uint64_t end = test::TestSeed() + test::RandomCases(10);
      for (uint64_t seed = test::TestSeed(); seed < end && !testing::Test::HasFailure(); ++seed) {
        ExpectDelivers(plan,
                       {.lower = lower, .scheduler = SchedulerMode::kAdversarial, .seed = seed});
      }
    }
  }
}

// Rings of receives shorter than a window, longer or shorter than those of sends: what a doorbell
// waits for must never wait, over the host's posting of more, for what that doorbell starts.
TEST(OffloadTest, AnyRingsAndWindowsDeliver) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  for (uint64_t i = 0; i < test::RandomCases(150) && !testing::Test::HasFailure(); ++i) {
    const std::array<uint32_t, 5> rings = {4, 16, 32, 64, 32768};
    const nic::DeviceProfile profile = {
        .name = "short", .sq_wqebbs = random.Pick(rings), .rq_wqes = random.Pick(rings)};
    const std::string ready = fmt::format("window={}", random.Between(1, random.Coin() ? 24 : 80));
    Spec spec = MakeSpec(random.Pick(ScheduleNames()), random.Between(2, 13),
                         random.Between(20, 150) * 100 - 13, ready);
    spec.block_bytes = 100;
    spec.send_window = *ParseSendWindow(random.Pick(std::array{"none", "1", "5"}));
    nic::LowerOptions lower{.profile = profile};
    if (random.Coin()) {
      lower.mode = nic::LoweringMode::kManaged;
      lower.masters =
          random.Pick(std::array{nic::Masters::kNode, nic::Masters::kLane, nic::Masters::kQueue});
    }
    SCOPED_TRACE(fmt::format("seed {} case {}: {}, rings {} and {}, {} masters {}", seed, i,
                             test::Label(spec), profile.sq_wqebbs, profile.rq_wqes,
                             Name(lower.mode), static_cast<int>(lower.masters)));
    ExpectDelivers(CompileOrDie(spec), {.lower = lower,
                                        .scheduler = random.Coin() ? SchedulerMode::kRoundRobin
                                                                   : SchedulerMode::kAdversarial,
                                        .seed = random.Between(1, 1000)});
  }
}

// Schedules that nobody has thought of, also with several transfers of a node in one round.
TEST(OffloadTest, RandomRoundsDeliver) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  for (uint64_t i = 0; i < test::RandomCases(100) && !testing::Test::HasFailure(); ++i) {
    const test::RandomRounds rounds = test::MakeRandomRounds(random, 8, 6);
    const std::string ready =
        random.Pick(std::array{"auto", "barrier", "channel", "window=3", "retry"});
    const std::string send_window = random.Pick(std::array{"auto", "none", "1"});
    SCOPED_TRACE(fmt::format("seed {} case {} ready {} send window {}\n{}", seed, i, ready,
                             send_window, rounds.text));
    const Result<VerifiedPlan> plan =
        test::CompileRounds(rounds.text, {.block_bytes = kBlockBytes}, *ParseReady(ready),
                            *ParseSendWindow(send_window));
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    const auto mode = random.Coin() ? nic::LoweringMode::kInline : nic::LoweringMode::kManaged;
    ExpectDelivers(*plan, {.lower = {.mode = mode}});
    ExpectDelivers(*plan, {.lower = {.mode = mode},
                           .scheduler = SchedulerMode::kAdversarial,
                           .seed = random.Between(1, 1000)});
  }
}

void ExpectSequenceDelivers(const VerifiedPlan& plan, const OffloadOptions& options) {
  constexpr uint32_t kMessages = 12;
  std::vector<std::unique_ptr<Transfer>> messages;
  std::vector<local::MessageBuffers> buffers;
  for (uint32_t i = 0; i < kMessages; ++i) {
    messages.push_back(std::make_unique<Transfer>(plan.header(), /*seed=*/i + 1));
    buffers.push_back({messages.back()->message(), messages.back()->buffers()});
  }
  const auto report = RunQueueProgram(plan, *nic::Lower(plan, options.lower), buffers, options);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  for (const auto& message : messages) message->ExpectDelivered();
}

// Indices of queues and CQs wrap on the way, in some message's middle.
TEST(OffloadTest, MessagesInSequenceShareTheQueues) {
  Spec spec = MakeSpec("binomial_pipeline", 6, 700 * 20 - 7, "window=1");
  spec.block_bytes = 20;
  const VerifiedPlan plan = CompileOrDie(spec);
  for (const auto mode : {nic::LoweringMode::kInline, nic::LoweringMode::kManaged}) {
    for (const auto device : {DeviceKind::kEmulated, DeviceKind::kMlx5InfiniBand}) {
      // Thousands of messages, for each of which threads take turns.
      if (test::kHasThreadSanitizer && !test::IsLongRun() && device != DeviceKind::kEmulated)
        continue;
      OffloadOptions options = OptionsOf(mode, device);
      options.scheduler = SchedulerMode::kAdversarial;
      options.first = {.epoch = 250, .sq_index = 0xf000, .cq_index = 0xfff000};
      ExpectSequenceDelivers(plan, options);
      options.lower.profile = kTinyRings;
      ExpectSequenceDelivers(plan, options);
    }
  }
}

TEST(OffloadTest, ManyOrdersOfOnePlan) {
  const VerifiedPlan plan =
      CompileOrDie(MakeSpec("binomial_pipeline", 8, 9 * kBlockBytes, "window=1"));
  const uint64_t end = test::TestSeed() + test::RandomCases(100);
  for (uint64_t seed = test::TestSeed(); seed < end && !testing::Test::HasFailure(); ++seed) {
    ExpectDelivers(plan,
                   {.scheduler = SchedulerMode::kAdversarial, .seed = seed, .first = {.epoch = 7}});
  }
}

TEST(OffloadTest, TheSameSeedGivesTheSameRun) {
  const VerifiedPlan plan = CompileOrDie(MakeSpec("binomial_pipeline", 5, 4 * kBlockBytes, "auto"));
  using Order = std::vector<std::tuple<NodeId, OpId, OpEvent::Kind>>;
  Order first;
  for (int run = 0; run < 2; ++run) {
    Order order;
    Transfer transfer(plan.header());
    const auto report = RunOffload(plan, transfer.message(), transfer.buffers(),
                                   {.scheduler = SchedulerMode::kAdversarial,
                                    .seed = 42,
                                    .observer = [&](const OpEvent& event) {
                                      order.emplace_back(event.node, event.op, event.kind);
                                    }});
    ASSERT_TRUE(report.ok()) << report.status().ToString();
    if (run == 0) first = order;
    EXPECT_EQ(order, first);
  }
}

TEST(OffloadTest, HostPostsAreOneDoorbellPerSendQueue) {
  const VerifiedPlan plan = CompileOrDie(MakeSpec("chain", 3, 4 * kBlockBytes, "barrier"));
  Transfer transfer(plan.header());
  const auto report = RunOffload(plan, transfer.message(), transfer.buffers());
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  // Two nodes send to one peer; every node has the loopback queue.
  std::vector<uint64_t> posts;
  for (const NodeReport& node : report->nodes) posts.push_back(node.host_posts);
  std::ranges::sort(posts);
  EXPECT_EQ(posts, (std::vector<uint64_t>{1, 2, 2}));
}

// A program whose end takes two CQEs instead of one costs its host more, and the report says so.
TEST(OffloadTest, HostFiguresAreCounted) {
  const VerifiedPlan plan = CompileOrDie(MakeSpec("chain", 3, 2 * kBlockBytes, "barrier"));
  nic::QueueProgram program = *nic::Lower(plan);
  nic::NodeProgram& last = program.nodes[2];
  last.qps.back().sends.insert(last.qps.back().sends.begin(),
                               {.opcode = nic::Opcode::kNop, .signaled = true});
  last.qps.back().sq_wqebbs *= 2;
  last.cqs[last.final_cq.index()].completions = last.cqs[last.final_cq.index()].entries = 2;
  Transfer transfer(plan.header());
  const auto report =
      RunQueueProgram(plan, program, transfer.message(), transfer.buffers(), {.validate = false});
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  transfer.ExpectDelivered();
  const NodeReport& node = report->nodes[2];
  EXPECT_EQ(node.host_completions, 2u);
  // Having found only the first, it asked for another event; it need not have slept for that one.
  EXPECT_EQ(node.host_posts_during, 0u);
  EXPECT_LE(node.host_event_requests_during, 1u);
  EXPECT_LE(node.host_wakeups, 1 + node.host_event_requests_during);
  EXPECT_EQ(report->nodes[1].host_completions, 1u);
}

}  // namespace
}  // namespace prepost::offload_test
