// SPDX-License-Identifier: Apache-2.0
//
// VectorClocks against plain vectors.
#include "ir/vector_clocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/support/random.h"

namespace prepost::vector_clocks_test {
namespace {

struct Pair {
  VectorClocks::Clock clock = VectorClocks::kZero;
  std::vector<uint32_t> plain;
};

void ExpectSame(const VectorClocks& clocks, const Pair& pair) {
  for (uint32_t entry = 0; entry < pair.plain.size(); ++entry)
    ASSERT_EQ(clocks.At(pair.clock, entry), pair.plain[entry]) << entry;
}

/// Of `entries` entries, eight clocks that are raised, joined and copied over each other. Catches a
/// block that is changed though others share it, and one that is given back too late or too early.
void Play(uint32_t entries, test::Random& random) {
  VectorClocks clocks(entries);
  std::vector<Pair> pairs(8, Pair{.plain = std::vector<uint32_t>(entries)});
  const auto any = [&]() -> Pair& { return pairs[random.Below(8)]; };
  for (int step = 0; step < 2000; ++step) {
    Pair& a = any();
    const Pair& b = any();
    switch (random.Below(4)) {
      case 0:
      case 1: {
        const auto entry = static_cast<uint32_t>(random.Below(entries));
        const auto value = static_cast<uint32_t>(random.Below(100));
        a.clock = clocks.Raise(a.clock, entry, value);
        a.plain[entry] = std::max(a.plain[entry], value);
        break;
      }
      case 2:
        a.clock = clocks.Join(a.clock, b.clock);
        std::ranges::transform(a.plain, b.plain, a.plain.begin(),
                               [](uint32_t x, uint32_t y) { return std::max(x, y); });
        break;
      default: {
        const VectorClocks::Clock copy =
            random.Below(4) == 0 ? VectorClocks::kZero : clocks.Copy(b.clock);
        if (copy == VectorClocks::kZero) {
          a.plain.assign(entries, 0);
        } else {
          a.plain = b.plain;
        }
        clocks.Drop(a.clock);
        a.clock = copy;
      }
    }
    ASSERT_NO_FATAL_FAILURE(ExpectSame(clocks, a)) << "step " << step;
  }
  for (Pair& pair : pairs) {
    ASSERT_NO_FATAL_FAILURE(ExpectSame(clocks, pair));
    clocks.Drop(pair.clock);
  }
  EXPECT_EQ(clocks.blocks(), 0u);
}

TEST(VectorClocksTest, AgreeWithPlainVectors) {
  test::Random random(test::TestSeed());
  SCOPED_TRACE(test::TestSeed());
  for (const uint32_t entries : {1u, 2u, 15u, 16u, 17u, 255u, 256u, 257u, 4096u, 4097u}) {
    SCOPED_TRACE(entries);
    ASSERT_NO_FATAL_FAILURE(Play(entries, random));
  }
}

// Catches clocks that are copied whole: 10^6 entries, 10^5 clocks, each with one more entry raised.
TEST(VectorClocksTest, ClocksShareWhatTheyHaveInCommon) {
  constexpr uint32_t kEntries = 1'000'000, kClocks = 100'000;
  VectorClocks clocks(kEntries);
  std::vector<VectorClocks::Clock> all = {clocks.Raise(VectorClocks::kZero, 0, 1)};
  for (uint32_t i = 1; i < kClocks; ++i)
    all.push_back(clocks.Raise(clocks.Copy(all.back()), i * 10, i + 1));
  EXPECT_LE(clocks.blocks(), kClocks * 5);
  EXPECT_EQ(clocks.At(all[500], 5000), 501u);
  EXPECT_EQ(clocks.At(all[499], 5000), 0u);
}

}  // namespace
}  // namespace prepost::vector_clocks_test
