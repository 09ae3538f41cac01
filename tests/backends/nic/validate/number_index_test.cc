// SPDX-License-Identifier: Apache-2.0
#include "backends/nic/validate/number_index.h"

#include <gtest/gtest.h>

#include <vector>

namespace prepost::nic::number_index_test {
namespace {

struct Object {
  uint32_t number = 0;
};

// Numbers in a row, in a row but out of order, close together, and far apart: each is kept in its
// own way.
TEST(NumberIndexTest, FindsWhereEachNumberIsAndNoOther) {
  const std::vector<std::vector<Object>> lists = {{},
                                                  {{7}},
                                                  {{7}, {8}, {9}},
                                                  {{9}, {7}, {8}},
                                                  {{7}, {9}, {20}},
                                                  {{7}, {0xfffffffe}, {1u << 20}}};
  for (const std::vector<Object>& objects : lists) {
    NumberIndex index;
    ASSERT_TRUE(index.Build(objects));
    for (uint32_t i = 0; i < objects.size(); ++i) EXPECT_EQ(index.Find(objects[i].number), i);
    for (const uint32_t other : {0u, 6u, 10u, 1000u, 0xffffffffu}) {
      EXPECT_EQ(index.Find(other), NumberIndex::kNone) << other;
    }
  }
}

TEST(NumberIndexTest, RefusesANumberThatOccursTwice) {
  NumberIndex index;
  EXPECT_FALSE(index.Build(std::vector<Object>{{7}, {8}, {7}}));
}

}  // namespace
}  // namespace prepost::nic::number_index_test
