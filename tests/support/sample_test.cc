// SPDX-License-Identifier: Apache-2.0
#include "tests/support/sample.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

namespace prepost::test::sample_test {
namespace {

class SampleTest : public testing::Test {
 protected:
  void SetUp() override {
    if (IsLongRun()) GTEST_SKIP() << "a long run takes all";
  }
  void TearDown() override { SetSeed(own_); }

  static void SetSeed(uint64_t seed) {
    setenv("PREPOST_GRID_SEED", std::to_string(seed).c_str(), 1);
  }

  /// What a run with this seed takes.
  std::vector<size_t> Taken(uint64_t seed, const std::vector<std::string>& labels,
                            uint64_t divisor) {
    SetSeed(seed);
    testing::internal::CaptureStdout();  // it is no sample of this run
    Sample sample(labels, divisor);
    printed_ = testing::internal::GetCapturedStdout();
    std::vector<size_t> taken;
    for (size_t i = 0; i < labels.size(); ++i) {
      if (sample.Takes()) taken.push_back(i);
    }
    return taken;
  }

  const uint64_t own_ = GridSeed();
  std::string printed_;
};

// Catches an instance with no case, and cases that no run takes, also of few and where schedules
// take turns: then each must be taken with each third.
TEST_F(SampleTest, EachRunTakesSomeAndAllTakeAll) {
  for (const size_t cases : std::initializer_list<size_t>{1, 2, 6, 11, 12, 13, 400}) {
    for (uint64_t turn = 0; turn < kTurns; ++turn) {
      const uint64_t stride = kIsSanitized ? kTurns : 1;
      std::set<size_t> all;
      for (uint64_t run = 0; run < 12; ++run) {
        const auto taken = Taken(turn + run * stride, std::vector<std::string>(cases), 12);
        ASSERT_FALSE(taken.empty()) << cases << " cases, run " << run;
        all.insert(taken.begin(), taken.end());
      }
      EXPECT_EQ(all.size(), cases);
    }
  }
}

// Ten labels, four cases at a time: three runs. Catches labels that cluster, and a word on commits
// that is not so.
TEST_F(SampleTest, LabelsAreAsDifferentAsTheyCanBe) {
  std::vector<std::string> labels;
  for (size_t i = 0; i < 300; ++i) labels.push_back("schedule=" + std::to_string(i / 30));
  Taken(0, labels, 75);
  unsigned commits = 0;
  const size_t word = printed_.find("; each schedule of 10 within ");
  ASSERT_EQ(std::sscanf(printed_.c_str() + std::min(word, printed_.size()),
                        "; each schedule of 10 within %u", &commits),
            1)
      << printed_;
  if (!kIsSanitized) {
    EXPECT_EQ(commits, 3u);
  }
  EXPECT_LE(commits, 30u);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::set<std::string> there;
    for (uint64_t run = seed; run < seed + commits; ++run) {
      for (const size_t i : Taken(run, labels, 75)) there.insert(labels[i]);
    }
    EXPECT_EQ(there.size(), 10u) << "from " << seed;
  }
}

TEST_F(SampleTest, AsksForAsManyAsItWasToldOf) {
  EXPECT_NONFATAL_FAILURE(
      {
        testing::internal::CaptureStdout();
        Sample sample(7, 2);
        testing::internal::GetCapturedStdout();
        for (int i = 0; i < 6; ++i) sample.Takes();
      },
      "a sample of 7 cases was asked for 6");
}

// Fourteen names in slots of five, or all: catches a name that has no turn.
TEST_F(SampleTest, AllNamesHaveTheirTurn) {
  std::vector<std::string> names;
  for (int i = 0; i < 14; ++i) names.push_back("name" + std::to_string(i));
  std::set<std::string> there;
  for (uint64_t seed = 100; seed < 100 + kTurns; ++seed) {
    SetSeed(seed);
    const std::vector<std::string> turns = Turns(names), parameters = TurnParameters(names);
    ASSERT_EQ(turns.size(), kIsSanitized ? 5u : 14u);
    ASSERT_EQ(parameters.size(), turns.size());
    for (size_t i = 0; i < turns.size(); ++i) {
      testing::internal::CaptureStdout();
      EXPECT_EQ(NameInTurn(parameters[i], names), turns[i]);
      testing::internal::GetCapturedStdout();
    }
    there.insert(turns.begin(), turns.end());
  }
  EXPECT_EQ(there.size(), names.size());
}

}  // namespace
}  // namespace prepost::test::sample_test
