// SPDX-License-Identifier: Apache-2.0
//
// The CPU executor over each local transport, one thread per node: every plan leaves the oracle's
// bytes at every node, and what happened contains the plan's order.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "compiler/schedules/schedule.h"
#include "runtime/executor.h"
#include "tests/support/hosts.h"
#include "tests/support/local_nodes.h"
#include "tests/support/op_trace.h"
#include "tests/support/oracle.h"
#include "tests/support/plans.h"
#include "tests/support/rolled_plans.h"
#include "tests/support/rounds.h"
#include "tests/support/sample.h"

namespace prepost::cpu_executor_test {
namespace {

using test::CompileOrDie;
using test::LocalNodes;
using test::LocalWay;
using test::OpTrace;

using Executors = std::vector<std::unique_ptr<CpuExecutor>>;

Executors MakeNodes(Playable plan, LocalNodes& local, const OpObserver& observer) {
  Executors nodes;
  for (uint32_t i = 0; i < plan.header().nodes; ++i) {
    nodes.push_back(
        std::make_unique<CpuExecutor>(plan, NodeId(i), local.endpoint(NodeId(i)), observer));
    nodes[i]->Prepare(local.memory(NodeId(i)));
    nodes[i]->Arm();
  }
  return nodes;
}

/// A thread per node, to the end.
void Play(const Executors& nodes) {
  test::Hosts().Play(static_cast<uint32_t>(nodes.size()),
                     [&](NodeId node) -> CpuExecutor& { return *nodes[node.index()]; });
}

void ExpectDelivers(const VerifiedPlan& plan, const LocalNodes::Options& options) {
  test::Random random(test::TestSeed());
  LocalNodes local(plan, options);
  OpTrace trace(plan);
  const Executors nodes = MakeNodes(plan, local, trace.Observer());
  Play(nodes);
  if (testing::Test::HasFatalFailure()) return;
  const auto expected = test::Deliver(plan, local.message(), random);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  local.ExpectHolds(*expected);
  local.ExpectDelivered();
  trace.ExpectPlanOrder();
}

LocalNodes::Options OptionsOf(const LocalWay& way) {
  return {.transport = way.transport, .streams = way.streams};
}

/// One of `schedules` over one transport.
class ExecutorTest : public testing::TestWithParam<std::tuple<std::string, LocalWay>> {
 protected:
  explicit ExecutorTest(const std::vector<std::string>& schedules)
      : algorithm_(test::NameInTurn(std::get<0>(GetParam()), schedules)) {}
  const std::string& algorithm() const { return algorithm_; }
  LocalNodes::Options options() const { return OptionsOf(std::get<1>(GetParam())); }

 private:
  const std::string algorithm_;
};

class CpuExecutorTest : public ExecutorTest {
 protected:
  CpuExecutorTest() : ExecutorTest(ScheduleNames()) {}
  VerifiedPlan LargePlan() const {
    return CompileOrDie({.nodes = 8,
                         .root = NodeId(3),
                         .message_bytes = (20u << 20) + 12345,
                         .block_bytes = 3u << 20,
                         .algorithm = algorithm()});
  }
};

TEST_P(CpuExecutorTest, EverySmallPlanDeliversTheOraclesBytesInPlanOrder) {
  const std::vector<Spec> specs =
      test::SpecsForExecutors({.nodes_max = 9, .blocks_max = 6}, {algorithm()});
  test::Sample sample(specs.size());
  for (const Spec& spec : specs) {
    if (!sample.Takes()) continue;
    SCOPED_TRACE(test::Label(spec));
    ExpectDelivers(CompileOrDie(spec), options());
    if (HasFailure()) return;
  }
}

// Blocks far larger than what a socket holds or one visit copies: catches lost places in blocks
// that move in pieces.
TEST_P(CpuExecutorTest, LargeBlocksMoveInPieces) {
  PREPOST_SKIP_IF_IN_ANOTHER_PART();
  ExpectDelivers(LargePlan(), options());
}

TEST_P(CpuExecutorTest, AlsoFromFileToFile) {
  PREPOST_SKIP_IF_IN_ANOTHER_PART();
  LocalNodes::Options from_files = options();
  from_files.in_files = true;
  ExpectDelivers(LargePlan(), from_files);
}

class RoundsExecutorTest : public testing::TestWithParam<LocalWay> {};

// Schedules that nobody has thought of, also with several transfers of a node in one round.
TEST_P(RoundsExecutorTest, RandomRoundsDeliver) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  for (uint64_t i = 0; i < test::RandomCases(60) && !HasFailure(); ++i) {
    const test::RandomRounds rounds = test::MakeRandomRounds(random, 7, 5);
    const std::string ready =
        random.Pick(std::array{"auto", "barrier", "channel", "window=3", "retry"});
    SCOPED_TRACE(fmt::format("seed {} case {} ready {}\n{}", seed, i, ready, rounds.text));
    const Result<VerifiedPlan> plan =
        test::CompileRounds(rounds.text, {.block_bytes = 16}, *ParseReady(ready));
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    ExpectDelivers(*plan, OptionsOf(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, RoundsExecutorTest, test::AllWays(), test::WayName);

/// The rolled plan of `spec` leaves the message everywhere, and posts and completes what the flat
/// one does.
void ExpectRolledDelivers(const Spec& spec, const LocalNodes::Options& options) {
  const RolledPlan rolled = test::RollOrDie(spec);
  const Result<RolledPlay> play = RolledPlay::Make(rolled, *spec.message_bytes);
  ASSERT_TRUE(play.ok()) << play.status().ToString();
  LocalNodes local(*play, options);
  const Executors nodes = MakeNodes(*play, local, {});
  Play(nodes);
  if (testing::Test::HasFatalFailure()) return;
  local.ExpectDelivered();
  const VerifiedPlan flat = CompileOrDie(spec);
  for (const Program& program : flat.programs()) {
    const NodeReport report = nodes[program.node.index()]->report();
    EXPECT_EQ(report.host_posts, program.op_count);
    EXPECT_EQ(report.host_completions, program.op_count);
  }
}

class RolledExecutorTest : public ExecutorTest {
 protected:
  RolledExecutorTest() : ExecutorTest(test::AllRolledNames()) {}
};

// Blocks enough that the window moves on many times: catches an op that leaves it too early, a
// receive that is posted twice or not at all, and a window that stops.
TEST_P(RolledExecutorTest, DeliversTheMessageInEveryReadyMode) {
  test::Sample sample(6 * 2 * 3);
  for (const char* mode : {"auto", "barrier", "retry", "channel", "window=1", "window=3"}) {
    for (const uint32_t nodes : {2u, 9u}) {
      for (const uint32_t blocks : {1u, 7u, 400u}) {
        if (!sample.Takes()) continue;
        Spec spec = test::WithRacks({.nodes = nodes,
                                     .root = NodeId(nodes / 2),
                                     .message_bytes = blocks * 64 - 5,
                                     .block_bytes = 64,
                                     .algorithm = algorithm()},
                                    3);
        spec.ready = *ParseReady(mode);
        SCOPED_TRACE(test::Label(spec));
        ExpectRolledDelivers(spec, options());
        if (HasFailure()) return;
      }
    }
  }
}

// 20,000 credits and notes on a connection: catches rings and records that run over.
TEST_P(RolledExecutorTest, DeliversManyBlocks) {
  PREPOST_SKIP_IF_IN_ANOTHER_PART();
  ExpectRolledDelivers(
      test::WithRacks(
          {.nodes = 3, .message_bytes = 20'000 * 16, .block_bytes = 16, .algorithm = algorithm()},
          2),
      options());
}

std::string NameOfCase(const testing::TestParamInfo<std::tuple<std::string, LocalWay>>& param) {
  std::string name = std::get<0>(param.param);
  std::ranges::replace(name, '=', '_');
  return name + "_over_" + Name(std::get<1>(param.param));
}

INSTANTIATE_TEST_SUITE_P(
    All, RolledExecutorTest,
    testing::Combine(testing::ValuesIn(test::TurnParameters(test::AllRolledNames())),
                     test::AllWays()),
    NameOfCase);

INSTANTIATE_TEST_SUITE_P(All, CpuExecutorTest,
                         testing::Combine(testing::ValuesIn(test::ScheduleParameters()),
                                          test::AllWays()),
                         NameOfCase);

}  // namespace
}  // namespace prepost::cpu_executor_test
