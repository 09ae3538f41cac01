// SPDX-License-Identifier: Apache-2.0
//
// What outputs of a collective must be, and which are equal: two answers that know nothing of each
// other, by the plan's expressions and by who wants which parts.
#include "runtime/files/collective_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tests/support/plans.h"
#include "tests/support/random.h"
#include "tests/support/sample.h"

namespace prepost::collective_sums_test {
namespace {

/// Elements of bfloat16: NaNs with any payload, infinities and zeros of both signs, one in eight;
/// the others are any.
std::vector<std::byte> SpecialInputs(uint64_t bytes, test::Random& random) {
  constexpr uint16_t kSpecial[] = {0x7fc0, 0xffc0, 0x7f80, 0xff80, 0x0000, 0x8000};
  std::vector<std::byte> inputs(bytes);
  for (size_t at = 0; at < bytes; at += sizeof(uint16_t)) {
    auto element = static_cast<uint16_t>(random.Below(1 << 16));
    if (random.Below(8) == 0) {
      const uint16_t special = kSpecial[random.Below(std::size(kSpecial))];
      const bool is_nan = (special & 0x7fff) > 0x7f80;
      element = is_nan ? static_cast<uint16_t>(special | (element & 0x3f)) : special;
    }
    std::memcpy(&inputs[at], &element, std::min(sizeof(element), bytes - at));
  }
  return inputs;
}

// Of floats with NaN, infinities and both zeros among them, so that swapped operands show. Catches
// outputs that a group of machines would compare although they differ, and such as it would not
// although they must be equal.
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
    spec.message_bytes = *spec.message_bytes * 64;  // so that no two parts are equal by chance
    spec.block_bytes *= 64;
    if (!spec.combine.is_none()) spec.combine.type = ElementType::kBfloat16;
    const VerifiedPlan plan = test::CompileOrDie(spec);
    const PlanHeader& header = plan.header();
    const std::vector<std::byte> inputs = SpecialInputs(InputBytesOf(header), random);
    const auto sums = ExpectedSums(plan, [&](uint64_t offset, std::span<std::byte> out) {
      std::ranges::copy(std::span(inputs).subspan(offset, out.size()), out.begin());
      return Status();
    });
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
