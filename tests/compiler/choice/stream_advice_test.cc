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

// Catches messages that a tree carries several times over a slow port, and short ones that wait for
// a plan.
TEST(EagerMaxTest, TreesAreForFastNetworks) {
  constexpr uint64_t kMost = uint64_t{64} << 10;
  std::vector<StreamCandidate> candidates;
  for (const std::string& name : StreamAlgorithms(8))
    candidates.push_back(MakeStreamCandidate(name, 8).value());
  EXPECT_EQ(EagerMax(candidates, 8, kMost, {}), kMost);
  const uint64_t slow = EagerMax(candidates, 8, kMost, {.rate = 50e6});
  EXPECT_LT(slow, kMost);
  EXPECT_GE(slow, kMost / 4);
}

}  // namespace
}  // namespace prepost::stream_advice_test
