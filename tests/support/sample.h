// SPDX-License-Identifier: Apache-2.0
//
// Sample: the part of a test's grid of cases that this run goes through. `scripts/test --long` sets
// PREPOST_TEST_LONG=1 and goes through all, with sanitizers through a tenth. Other runs take one
// of more parts, never none: PREPOST_GRID_SEED, which `scripts/test` sets to the number of commits,
// says which, so that as many commits in a row as there are parts go through the whole grid. Which
// cases are a part depends on the test's name and its parameters. Each sample prints what it took,
// and after how many commits what is covered; `scripts/test --coverage` collects that.
//
// With sanitizers the instances of a test are slots, in which schedules take turns (Turns).
#ifndef PREPOST_TESTS_SUPPORT_SAMPLE_H_
#define PREPOST_TESTS_SUPPORT_SAMPLE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/sanitizers.h"

namespace prepost::test {

bool IsLongRun();

/// PREPOST_GRID_SEED from the environment, or 0.
uint64_t GridSeed();

/// Long runs take all cases but with sanitizers, whose tests take four to ten times as long.
inline bool TakesAllCases() { return IsLongRun() && !kIsSanitized; }

/// One case of so many is taken: 1 in 12, with sanitizers in 20, and a `fewer`-th of that where a
/// case is dear; in long runs all, with sanitizers 1 in 10.
inline uint64_t SampleDivisor(uint64_t fewer = 1) {
  if (IsLongRun()) return TakesAllCases() ? 1 : 10;
  return fewer * (kIsSanitized ? 20 : 12);
}

/// How many cases a sweep has: `all` in long runs, with sanitizers a tenth of them; `few` in
/// others.
inline uint32_t SweepCases(uint32_t all, uint32_t few) {
  if (!IsLongRun()) return few;
  return TakesAllCases() ? all : (all + 9) / 10;
}

/// How many of `count` random cases a run makes.
inline uint64_t RandomCases(uint64_t count) {
  return kIsSanitized && !IsLongRun() ? (count + 7) / 8 : count;
}

/// After how many commits the schedules in slots come again: a third of them is there at a time.
inline constexpr uint64_t kTurns = 3;

/// This run's of `names` where they take turns, a third each, with sanitizers; elsewhere all.
std::vector<std::string> Turns(const std::vector<std::string>& names);

/// What instances of a test are named by: `names`, or "slot_0", .. where these take turns, as CTest
/// keeps the names of tests from one run to the next.
std::vector<std::string> TurnParameters(const std::vector<std::string>& names);

/// The name behind one of TurnParameters(names) in this run, which is printed where it is a slot's.
std::string NameInTurn(const std::string& parameter, const std::vector<std::string>& names);

/// Cases of one test, asked for one after the other.
class Sample {
 public:
  /// `divisor`: as many parts, unless there are fewer cases.
  explicit Sample(uint64_t cases, uint64_t divisor = SampleDivisor())
      : Sample(std::vector<std::string>(cases), divisor) {}
  /// A label for each case, "wait=polling ring=2": each part has as many different ones as it can,
  /// and what is printed says after how many commits each wait and each ring has been there.
  explicit Sample(const std::vector<std::string>& labels, uint64_t divisor = SampleDivisor());
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;
  /// All cases must have been asked for, unless the test has failed.
  ~Sample();

  /// Whether the next case is one of this run's.
  bool Takes();

 private:
  std::vector<bool> is_taken_;
  size_t asked_ = 0;
};

/// Whether the running test, one instance of a parameterised test, is one of this run's: asked by
/// PREPOST_SKIP_IF_IN_ANOTHER_PART(), so that no test passes without a case.
[[nodiscard]] bool SampleTakesThisTest();

}  // namespace prepost::test

/// At the beginning of a parameterised test each of whose instances is one case.
#define PREPOST_SKIP_IF_IN_ANOTHER_PART() \
  if (!::prepost::test::SampleTakesThisTest()) GTEST_SKIP() << "in another run's part"

#endif  // PREPOST_TESTS_SUPPORT_SAMPLE_H_
