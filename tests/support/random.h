// SPDX-License-Identifier: Apache-2.0
//
// Random: the numbers of random tests, the same on every machine for the same seed. TestSeed() is
// where a test gets its seed, and prints it, so that a failure can be repeated. It moves with the
// commits: `scripts/test` sets PREPOST_TEST_SEED to their number.
#ifndef PREPOST_TESTS_SUPPORT_RANDOM_H_
#define PREPOST_TESTS_SUPPORT_RANDOM_H_

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <random>
#include <utility>

#include "ir/base/status.h"

namespace prepost::test {

/// PREPOST_TEST_SEED from the environment, or 1; printed once by each test that asks.
inline uint64_t TestSeed() {
  static std::atomic<const void*> printed = nullptr;
  const char* const text = std::getenv("PREPOST_TEST_SEED");
  const uint64_t seed = text == nullptr ? 1 : std::strtoull(text, nullptr, 0);
  const void* const test = testing::UnitTest::GetInstance()->current_test_info();
  if (printed.exchange(test) != test) std::cout << "PREPOST_TEST_SEED=" << seed << std::endl;
  return seed;
}

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  /// 0 .. count - 1. Needs count >= 1. The bias of the modulus does not matter to tests.
  uint32_t Below(size_t count) {
    PREPOST_CHECK(count > 0);
    return static_cast<uint32_t>(engine_() % count);
  }
  /// first .. last, both included.
  uint32_t Between(uint32_t first, uint32_t last) { return first + Below(last - first + 1u); }
  bool Coin() { return Below(2) == 1; }

  /// One of `items`, a vector or an array, by value.
  template <typename Container>
  auto Pick(const Container& items) {
    return items[Below(std::size(items))];
  }
  template <typename Container>
  void Shuffle(Container& items) {
    for (size_t left = items.size(); left > 1; --left) {
      std::swap(items[left - 1], items[Below(left)]);
    }
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_RANDOM_H_
