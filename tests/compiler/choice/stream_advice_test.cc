// SPDX-License-Identifier: Apache-2.0
#include "compiler/choice/stream_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/choice/choice.h"
#include "compiler/compile.h"

namespace prepost::stream_advice_test {
namespace {

using testing::HasSubstr;

PlanHeader HeaderOf(uint32_t nodes, uint64_t bytes, uint64_t block_bytes, const char* algorithm) {
  return Compile({.nodes = nodes,
                  .message_bytes = bytes,
                  .block_bytes = block_bytes,
                  .algorithm = algorithm})
      .value()
      .header();
}

// Catches advice against what `--transport tcp` itself chooses.
TEST(StreamAdviceTest, NoneOfWhatIsChosenForStreams) {
  for (const uint32_t nodes : {2u, 3u, 8u, 32u}) {
    for (const uint64_t bytes : {uint64_t{1} << 20, uint64_t{16} << 20, uint64_t{64} << 20}) {
      Spec spec = OpenSpec();
      spec.nodes = nodes;
      spec.message_bytes = bytes;
      const Choice choice = Choose(spec, {.streams = StreamParameters()}).value();
      const VerifiedPlan plan = Compile(Resolve(spec, choice)).value();
      EXPECT_EQ(AdviceForStreams(plan.header()), std::nullopt) << nodes << " " << bytes;
    }
  }
}

// Many small blocks in two trees are right for NICs.
TEST(StreamAdviceTest, SaysWhatWouldBeBetterThanAPlanForNics) {
  const auto advice = AdviceForStreams(HeaderOf(8, uint64_t{16} << 20, 41984, "two_tree"));
  ASSERT_TRUE(advice);
  EXPECT_THAT(*advice,
              HasSubstr("--transport tcp chooses: --algorithm chain --block-bytes 262144"));
  EXPECT_THAT(*advice, HasSubstr("by the model"));
}

TEST(StreamAdviceTest, NoneWhereTheModelSaysNothing) {
  EXPECT_EQ(AdviceForStreams(HeaderOf(8, 1000, 10, "chain")), std::nullopt);
  EXPECT_EQ(AdviceForStreams(HeaderOf(1, uint64_t{16} << 20, 1 << 20, "chain")), std::nullopt);
}

}  // namespace
}  // namespace prepost::stream_advice_test
