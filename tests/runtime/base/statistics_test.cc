// SPDX-License-Identifier: Apache-2.0
//
// The four numbers of a summary, at the edges where ranks are off by one.
#include "runtime/base/statistics.h"

#include <gtest/gtest.h>

#include <numeric>

namespace prepost::statistics_test {
namespace {

std::vector<double> UpTo(size_t count) {
  std::vector<double> samples(count);
  std::iota(samples.rbegin(), samples.rend(), 1.0);  // falling: sorting is the summary's business
  return samples;
}

TEST(StatisticsTest, NothingAndOne) {
  EXPECT_EQ(Summarise({}), Summary{});
  EXPECT_EQ(Summarise({7}), (Summary{.count = 1, .min = 7, .median = 7, .p99 = 7, .max = 7}));
}

TEST(StatisticsTest, MedianOfEvenAndOddNumbers) {
  EXPECT_EQ(Summarise(UpTo(4)).median, 2.5);
  EXPECT_EQ(Summarise(UpTo(5)).median, 3);
}

// The nearest rank: one more sample than 99 in a hundred moves it off the maximum.
TEST(StatisticsTest, P99IsTheNearestRank) {
  EXPECT_EQ(Summarise(UpTo(99)).p99, 99);
  EXPECT_EQ(Summarise(UpTo(100)).p99, 99);
  EXPECT_EQ(Summarise(UpTo(101)).p99, 100);
  EXPECT_EQ(Summarise(UpTo(200)).p99, 198);
}

}  // namespace
}  // namespace prepost::statistics_test
