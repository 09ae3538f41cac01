// SPDX-License-Identifier: Apache-2.0
#include "compiler/choice/choice_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "compiler/choice/choice.h"

namespace prepost::choice_rules_test {
namespace {

using ::testing::HasSubstr;

Result<ChoiceRules> Read(const std::string& rules) {
  std::istringstream in(R"({"format": "prepost.choice_rules", "version": "1.0", "rules": [)" +
                        rules + "]}");
  return ReadChoiceRules(in, "r.json");
}

std::string ErrorOf(const std::string& rules) { return Read(rules).status().ToString(); }

Spec Automatic(uint32_t nodes, uint64_t bytes) {
  return {.nodes = nodes,
          .message_bytes = bytes,
          .choose_block_bytes = true,
          .algorithm = kAutoAlgorithm};
}

// A later rule that wins, a bound that is not included, what is fixed being overruled.
TEST(ChoiceRulesTest, TheFirstMatchPinsWhatIsOpen) {
  const Result<ChoiceRules> rules = Read(R"({"nodes": [4, 8], "algorithm": "chain"},
      {"nodes": [4, 9], "bytes": [100, 200], "algorithm": "circulant", "block_bytes": 50},
      {"block_bytes": 7})");
  ASSERT_TRUE(rules.ok()) << rules.status().ToString();
  Spec spec = Automatic(8, 150);
  EXPECT_EQ(rules->Apply(&spec), 0u);
  EXPECT_EQ(spec.algorithm, "chain");
  EXPECT_TRUE(spec.choose_block_bytes);
  spec = Automatic(9, 200);
  EXPECT_EQ(rules->Apply(&spec), 1u);
  EXPECT_EQ(spec.algorithm, "circulant");
  EXPECT_EQ(spec.block_bytes, 50u);
  EXPECT_FALSE(spec.choose_block_bytes);
  spec = Automatic(9, 201);
  EXPECT_EQ(rules->Apply(&spec), 2u);
  EXPECT_EQ(spec.algorithm, kAutoAlgorithm);
  spec = Automatic(9, 201);
  spec.choose_block_bytes = false;
  EXPECT_EQ(rules->Apply(&spec), std::nullopt);
  EXPECT_EQ(spec.block_bytes, Spec().block_bytes);
}

TEST(ChoiceRulesTest, ChooseFollowsThem) {
  ChoiceOptions options;
  options.rules = *Read(R"({"nodes": [4, 8], "algorithm": "chain", "block_bytes": 65536})");
  const Choice choice = *Choose(Automatic(8, 1 << 20), options);
  EXPECT_EQ(choice.winner().algorithm, "chain");
  EXPECT_EQ(choice.winner().block_bytes, 65536u);
  EXPECT_THAT(choice.reason, HasSubstr("r.json: /rules/0 says algorithm chain, block_bytes 65536"));
  // One that the spec cannot follow.
  options.rules = *Read(R"({"block_bytes": 1})");
  EXPECT_THAT(
      Choose(Automatic(8, uint64_t{1} << 40), options).status().ToString(),
      HasSubstr(
          "r.json: /rules/0/block_bytes: message of 1099511627776 bytes in blocks of 1 makes"));
}

TEST(ChoiceRulesTest, RefusesInOneLineWithThePlace) {
  EXPECT_THAT(ErrorOf(R"({"algorithm": "chian"})"),
              HasSubstr("/rules/0/algorithm: unknown algorithm 'chian', did you mean 'chain'?"));
  EXPECT_THAT(ErrorOf(R"({"nodes": [1, 2]})"),
              HasSubstr("/rules/0: a rule pins algorithm, block_bytes or both, this one neither"));
  EXPECT_THAT(ErrorOf(R"({"nodes": [3, 2], "algorithm": "chain"})"),
              HasSubstr("/rules/0: nodes: the range [3, 2] is empty"));
  EXPECT_THAT(ErrorOf(R"({"bytes": [3], "algorithm": "chain"})"),
              HasSubstr("/rules/0/bytes: expected at least 2 elements, found 1"));
  EXPECT_THAT(ErrorOf(R"({"bytes": [], "algorithm": "chain"})"), HasSubstr("2 elements, found 0"));
  EXPECT_THAT(ErrorOf(R"({"bytes": [3, 4, 5], "algorithm": "chain"})"), HasSubstr("third number"));
  EXPECT_THAT(ErrorOf(R"({"block_bytes": 0})"),
              HasSubstr("/rules/0/block_bytes: expected 1 or more, found 0"));
  EXPECT_THAT(ErrorOf(R"({"size": 1, "algorithm": "chain"})"), HasSubstr("size"));
  EXPECT_THAT(ErrorOf(R"({"algorithm": "chain"}, {"nodes": [2, 3], "algorithm": "circulant"})"),
              HasSubstr("/rules/1: this rule can never match"));
}

// Two that cover the third only together; and a gap of one byte, which is enough to match.
TEST(ChoiceRulesTest, FindsWhatEarlierRulesTakeTogether) {
  const std::string first = R"({"nodes": [2, 5], "bytes": [0, 100], "algorithm": "chain"},)";
  EXPECT_THAT(ErrorOf(first + R"({"nodes": [4, 9], "bytes": [0, 200], "algorithm": "chain"},
                                 {"nodes": [3, 9], "bytes": [10, 100], "block_bytes": 1})"),
              HasSubstr("/rules/2: this rule can never match"));
  EXPECT_TRUE(Read(first + R"({"nodes": [6, 9], "bytes": [0, 200], "algorithm": "chain"},
                              {"nodes": [3, 9], "bytes": [10, 101], "block_bytes": 1})")
                  .ok());
}

TEST(ChoiceRulesTest, TheExampleIsRight) {
  std::ifstream in(PREPOST_SOURCE_DIR "/examples/rules/small.json");
  const Result<ChoiceRules> rules = ReadChoiceRules(in, "small.json");
  ASSERT_TRUE(rules.ok()) << rules.status().ToString();
  EXPECT_EQ(rules->rules.size(), 3u);
}

}  // namespace
}  // namespace prepost::choice_rules_test
