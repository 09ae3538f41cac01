// SPDX-License-Identifier: Apache-2.0
//
// What the CPU executor plays over transports alone: rolled plans, and from file to file.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "compiler/schedules/schedule.h"
#include "tests/support/engines.h"
#include "tests/support/local_nodes.h"
#include "tests/support/plans.h"
#include "tests/support/rolled_plans.h"
#include "tests/support/sample.h"

namespace prepost::cpu_executor_test {
namespace {

using test::CompileOrDie;
using test::LocalNodes;

/// One of `schedules` over one transport.
class ExecutorTest : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  explicit ExecutorTest(const std::vector<std::string>& schedules)
      : algorithm_(test::NameInTurn(std::get<0>(GetParam()), schedules)) {}
  const std::string& algorithm() const { return algorithm_; }
  LocalNodes::Options options() const {
    const test::Engine& engine = test::EngineOf(std::get<1>(GetParam()));
    return {.transport = *engine.transport,
            .streams = engine.streams,
            .seal = engine.seal,
            .shares_memory = engine.shares_memory};
  }

 private:
  const std::string algorithm_;
};

class FilesTest : public ExecutorTest {
 protected:
  FilesTest() : ExecutorTest(ScheduleNames()) {}
};

// Catches lost places in blocks that move in pieces, and copies that are not the files' own bytes.
TEST_P(FilesTest, LargeBlocksMoveFromFileToFile) {
  PREPOST_SKIP_IF_IN_ANOTHER_PART();
  const VerifiedPlan plan = CompileOrDie({.nodes = 8,
                                          .root = NodeId(3),
                                          .message_bytes = (20u << 20) + 12345,
                                          .block_bytes = 3u << 20,
                                          .algorithm = algorithm()});
  LocalNodes::Options from_files = options();
  from_files.in_files = true;
  LocalNodes local(plan, from_files);
  const Result<RunReport> report = test::PlayLocal(plan, local);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  local.ExpectDelivered();
}

/// The rolled plan of `spec` leaves the message everywhere, and posts and completes what the flat
/// one does.
void ExpectRolledDelivers(const Spec& spec, const LocalNodes::Options& options) {
  const RolledPlan rolled = test::RollOrDie(spec);
  const Result<RolledPlay> play = RolledPlay::Make(rolled, *spec.message_bytes);
  ASSERT_TRUE(play.ok()) << play.status().ToString();
  LocalNodes local(*play, options);
  const Result<RunReport> report = test::PlayLocal(*play, local);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  local.ExpectDelivered();
  const VerifiedPlan flat = CompileOrDie(spec);
  for (const Program& program : flat.programs()) {
    const NodeReport& node = report->nodes[program.node.index()];
    EXPECT_EQ(node.host_posts, program.op_count);
    EXPECT_EQ(node.host_completions, program.op_count);
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

/// Each of `schedules` over each transport.
auto Cases(const std::vector<std::string>& schedules) {
  return testing::Combine(testing::ValuesIn(test::TurnParameters(schedules)),
                          testing::ValuesIn(test::EnginesWhere([](const test::Engine& engine) {
                            return engine.transport.has_value();
                          })));
}
std::string NameOfCase(const testing::TestParamInfo<std::tuple<std::string, std::string>>& it) {
  std::string name = std::get<0>(it.param) + "_over_" + std::get<1>(it.param);
  std::ranges::replace(name, '=', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, RolledExecutorTest, Cases(test::AllRolledNames()), NameOfCase);
INSTANTIATE_TEST_SUITE_P(All, FilesTest, Cases(ScheduleNames()), NameOfCase);

}  // namespace
}  // namespace prepost::cpu_executor_test
