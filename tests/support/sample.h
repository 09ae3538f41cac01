// SPDX-License-Identifier: Apache-2.0
//
// Sample: the part of a test's grid of cases that this run goes through. `scripts/test --long` sets
// PREPOST_TEST_LONG=1 and goes through all; other runs take a share, which PREPOST_GRID_SEED
// (`scripts/test` sets it to the number of commits) moves, so that as many commits in a row as the
// share is a part of go through the whole grid. Each grid prints what it took, and the seed.
#ifndef PREPOST_TESTS_SUPPORT_SAMPLE_H_
#define PREPOST_TESTS_SUPPORT_SAMPLE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/support/sanitizers.h"

namespace prepost::test {

inline bool IsLongRun() { return std::getenv("PREPOST_TEST_LONG") != nullptr; }

/// PREPOST_GRID_SEED from the environment, or 0.
inline uint64_t GridSeed() {
  const char* seed = std::getenv("PREPOST_GRID_SEED");
  return seed == nullptr ? 0 : std::strtoull(seed, nullptr, 0);
}

/// One case of so many is taken: all in long runs, 1 in 12 otherwise, 1 in 20 with sanitizers, whose
/// tests take four to ten times as long.
inline uint64_t SampleDivisor() { return IsLongRun() ? 1 : kIsSanitized ? 20 : 12; }

/// How many of `count` random cases a run makes.
inline uint64_t RandomCases(uint64_t count) {
  return kIsSanitized && !IsLongRun() ? (count + 7) / 8 : count;
}

/// In which of `divisor` parts a case lies. Cases that lie side by side in a grid of loops must not
/// fall into one part by their place, so the number is mixed (splitmix64).
inline bool IsInSample(uint64_t number, uint64_t divisor) {
  number += 0x9e3779b97f4a7c15;
  number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
  number = (number ^ number >> 27) * 0x94d049bb133111eb;
  return ((number ^ number >> 31) + GridSeed()) % divisor == 0;
}

/// Cases of one test, asked for one after the other.
class Sample {
 public:
  explicit Sample(uint64_t divisor = SampleDivisor()) : divisor_(divisor) {}
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;
  ~Sample() {
    if (divisor_ == 1) return;
    std::cout << "sampled: " << taken_ << " of " << cases_
              << " cases, PREPOST_GRID_SEED=" << GridSeed() << "\n";
  }

  /// Whether the next case is one of this run's.
  bool Takes() {
    const bool takes = IsInSample(cases_++, divisor_);
    taken_ += takes;
    return takes;
  }

 private:
  uint64_t divisor_;
  uint64_t cases_ = 0;
  uint64_t taken_ = 0;
};

/// Whether the running test, one instance of a parameterised test, is one of this run's.
inline bool SampleTakesThisTest() {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  const std::string name = std::string(test.test_suite_name()) + "." + test.name();
  uint64_t number = 0xcbf29ce484222325;  // FNV-1a: the same on every machine
  for (const char letter : name) number = (number ^ static_cast<uint8_t>(letter)) * 0x100000001b3;
  const uint64_t divisor = SampleDivisor();
  const bool takes = IsInSample(number, divisor);
  if (divisor != 1) {
    std::cout << "sampled: " << takes << " of 1 cases, PREPOST_GRID_SEED=" << GridSeed() << "\n";
  }
  return takes;
}

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_SAMPLE_H_
