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
#include "backends/nic/program/lower.h"
#include "compiler/schedules/schedule.h"
#include "tests/support/engines.h"
#include "tests/support/plans.h"
#include "tests/support/random.h"
#include "tests/support/sample.h"
#include "tests/support/transfer.h"

namespace prepost::offload_test {
namespace {

using emulated::SchedulerMode;
using local::OffloadOptions;
using local::RunOffload;
using local::RunQueueProgram;
using test::CompileOrDie;
using test::PlayOptions;
using test::Transfer;
using test::Way;

constexpr uint64_t kBlockBytes = 10000;  // more than two MTUs, so that chunks interleave

constexpr SchedulerMode kOrders[] = {SchedulerMode::kRoundRobin, SchedulerMode::kRandom,
                                     SchedulerMode::kAdversarial};

/// Rings of a handful of entries, so that nearly every queue is written in parts.
const nic::DeviceProfile kTinyRings = {.name = "tiny", .sq_wqebbs = 16, .rq_wqes = 16};

const test::Engine& Emulated() { return test::EngineOf("emulated"); }

/// Preposted at all nodes.
void ExpectDelivers(const VerifiedPlan& plan, PlayOptions options,
                    const test::Engine& engine = Emulated()) {
  options.preposted.assign(plan.header().nodes, true);
  test::ExpectDelivers(engine, plan, options);
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

class OffloadDifferential : public testing::TestWithParam<std::tuple<std::string, Way>> {
 protected:
  static const test::Engine& engine() { return *std::get<1>(GetParam()).engine; }
  static PlayOptions Options(SchedulerMode scheduler = SchedulerMode::kRoundRobin,
                             uint64_t seed = 1) {
    return {.lower = {.mode = std::get<1>(GetParam()).mode}, .scheduler = scheduler, .seed = seed};
  }

  const std::string schedule_ = test::ScheduleInTurn(std::get<0>(GetParam()));
};

// Also send windows that multicast_test.cc has not, with each ready mode, and in each order of the
// NICs.
TEST_P(OffloadDifferential, EverySmallPlanDelivers) {
  const std::vector<Spec> specs = test::AllSmallSpecs(engine().limits, {schedule_});
  std::vector<std::string> labels;
  for (size_t i = 0; i < specs.size(); ++i) {
    for (const SchedulerMode order : kOrders) labels.push_back("order=" + std::string(Name(order)));
  }
  uint64_t seed = test::TestSeed();
  test::Sample sample(labels, test::SampleDivisor() * 3 / 2);
  for (const Spec& spec : specs) {
    for (const SchedulerMode order : kOrders) {
      if (!sample.Takes()) continue;
      SCOPED_TRACE(test::Label(spec));
      ExpectDelivers(CompileOrDie(spec), Options(order, ++seed), engine());
      if (HasFailure()) return;
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
      PlayOptions tiny = Options();
      tiny.lower.profile = kTinyRings;
      // Counters that wrap early on: 16 bits of send queues, 24 of CQs.
      tiny.first = {.epoch = 200, .sq_index = 0xfffa, .cq_index = 0xfffffb};
      const nic::QueueProgram program = *nic::Lower(plan, tiny.lower);
      EXPECT_TRUE(all_at_once || std::ranges::any_of(program.nodes, [](const auto& node) {
                    return node.rearms() >= 5;
                  }));
      for (const SchedulerMode order : kOrders) {
        tiny.scheduler = order;
        tiny.seed = test::TestSeed();
        ExpectDelivers(plan, tiny, engine());
      }
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OffloadDifferential,
                         testing::Combine(testing::ValuesIn(test::ScheduleParameters()),
                                          testing::ValuesIn(test::Ways([](const Way& way) {
                                            return way.is_preposted && way.engine->nics;
                                          }))),
                         [](const auto& it) {
                           return std::get<0>(it.param) + "_" + std::get<1>(it.param).name();
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
    for (const test::Engine& engine : test::Engines()) {
      if (!engine.nics) continue;
      // Thousands of messages, for each of which threads take turns.
      if (test::kHasThreadSanitizer && !test::IsLongRun() && *engine.nics) continue;
      OffloadOptions options{.make_device = *engine.nics, .lower = {.mode = mode}};
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
