// SPDX-License-Identifier: Apache-2.0
//
// What outputs of a collective must be, and which are equal: two answers that know nothing of each other,
// by the plan's expressions and by who wants which parts.
#include "runtime/files/collective_sums.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/plans.h"
#include "tests/support/random.h"
#include "tests/support/sample.h"

namespace prepost::collective_sums_test {
namespace {

// Of floats with NaN, infinities and both zeros among them, so that swapped operands show. Catches outputs
// that a group of machines would compare although they differ, and such as it would not although they must
// be equal.
TEST(CollectiveSumsTest, OutputsAreEqualExactlyWhereTheyWantTheSame) {
  test::Random random(test::TestSeed());
  std::vector<Spec> specs = test::SpecsOfCollectives({.nodes_max = 8, .blocks_max = 2});
  std::vector<std::string> labels;
  for (const Spec& spec : specs)
    labels.push_back(std::string(Name(spec.collective)) + "=" + spec.algorithm);
  test::Sample sample(labels);
  for (Spec& spec : specs) {
    if (!sample.Takes()) continue;
    if (spec.collective == CollectiveKind::kBarrier) continue;  // of no bytes
    SCOPED_TRACE(test::Label(spec));
    spec.message_bytes = *spec.message_bytes * 16;
    spec.block_bytes *= 16;
    if (!spec.combine.is_none()) spec.combine.type = ElementType::kBfloat16;
    const VerifiedPlan plan = test::CompileOrDie(spec);
    const PlanHeader& header = plan.header();
    std::vector<std::byte> inputs(InputBytesOf(header));
    for (std::byte& byte : inputs) byte = static_cast<std::byte>(random.Below(256));
    const auto sums = ExpectedSums(plan, inputs);
    ASSERT_TRUE(sums.ok()) << sums.status().ToString();
    const std::vector<NodeId> firsts = FirstsOfEqualOutputs(header);
    ASSERT_EQ(firsts.size(), header.nodes);
    std::map<std::string, NodeId> seen;
    for (uint32_t node = 0; node < header.nodes; ++node) {
      const auto& sum = (*sums)[node];
      const NodeId first =
          sum ? seen.try_emplace(sum->ToString(), NodeId(node)).first->second : NodeId(node);
      EXPECT_EQ(firsts[node], first) << "node " << node;
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace prepost::collective_sums_test
