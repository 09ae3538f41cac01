// SPDX-License-Identifier: Apache-2.0
//
// Plans of about two million ops, whose work would take hours where a pass, the verifier or a file
// took time with the square of the ops, of one node's ops or of its channels: then the test runs
// out of its minutes. What linear work costs is measured in bench/plan_bench.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "compiler/compile.h"
#include "ir/analysis/event_times.h"
#include "ir/analysis/network_load.h"
#include "ir/analysis/plan_diff.h"
#include "ir/json/plan_json.h"
#include "ir/plan_tables.h"
#include "ir/verify/verify.h"
#include "tests/support/plans.h"
#include "tests/support/sample.h"
#include "tests/support/sanitizers.h"

namespace prepost::large_plan_test {
namespace {

struct Shape {
  std::string algorithm;
  uint32_t nodes = 0;
  uint32_t blocks = 0;
};

void PrintTo(const Shape& shape, std::ostream* out) {
  *out << shape.algorithm << " " << shape.nodes << " x " << shape.blocks;
}

class LargePlanTest : public testing::TestWithParam<Shape> {};

// Two nodes with everything on one channel; a node with as many channels as there are others; many
// of both.
INSTANTIATE_TEST_SUITE_P(
    Shapes, LargePlanTest,
    testing::Values(Shape{"chain", 2, 500'000}, Shape{"binomial_pipeline", 3, 250'000},
                    Shape{"sequential", 300'000, 1}, Shape{"binomial_tree", 300'000, 1},
                    Shape{"kary_tree=64", 2'500, 100}, Shape{"circulant", 700, 700},
                    Shape{"two_tree", 1'000, 400}, Shape{"scatter_allgather", 500, 500}));

TEST_P(LargePlanTest, GoesThroughEverything) {
  PREPOST_SKIP_IF_IN_ANOTHER_PART();
  if (test::kIsSanitized) GTEST_SKIP() << "about time, which sanitizers multiply";
  const Shape& shape = GetParam();
  for (const char* mode : {"window=1", "channel", "barrier"}) {
    SCOPED_TRACE(mode);
    const VerifiedPlan plan =
        test::CompileOrDie({.nodes = shape.nodes,
                            .message_bytes = shape.blocks,
                            .block_bytes = 1,
                            .algorithm = shape.algorithm,
                            .ready = *ParseReady(mode),
                            .send_window = {.automatic = false, .window = 1}});
    const PlanTables tables(plan);
    EXPECT_GT(MeasureLoad(tables, Network::Uniform(shape.nodes)).seconds, 0);
    EXPECT_GT(EventTimes(tables).length(), 0u);
    std::stringstream file;
    WritePlan(plan, file, PlanEncoding::kColumns);
    const Result<Plan> again = ReadPlan(file, "again");
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    EXPECT_TRUE(*again == plan);
    EXPECT_TRUE(DiffPlans(plan, *again).same());
  }
}

}  // namespace
}  // namespace prepost::large_plan_test
