// SPDX-License-Identifier: Apache-2.0
//
// tests/schema/exchange_test.py reads what is written here with NetworkX.
#include "ir/exchange/graphml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/golden.h"
#include "tests/support/plans.h"

namespace prepost::graphml_test {
namespace {

std::string Graphml(const Plan& plan) {
  std::ostringstream out;
  WriteGraphml(plan, out);
  return out.str();
}

TEST(GraphmlTest, Golden) {
  test::ExpectGolden("exchange/chain-3.graphml",
                     Graphml(test::CompileOrDie({.nodes = 3,
                                                 .message_bytes = 25,
                                                 .block_bytes = 10,
                                                 .algorithm = "chain",
                                                 .ready = *ParseReady("channel")})));
}

// A file may name its algorithm anything.
TEST(GraphmlTest, TextIsEscaped) {
  Plan plan = test::PlanOf(2, 1);
  {
    PlanHeader header = plan.header();
    header.algorithm = "a<b&c";
    plan = plan.WithHeader(std::move(header));
  }
  EXPECT_THAT(Graphml(plan), ::testing::HasSubstr(">a&lt;b&amp;c</data>"));
}

}  // namespace
}  // namespace prepost::graphml_test
