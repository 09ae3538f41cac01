// SPDX-License-Identifier: Apache-2.0
//
// TimeQueue and Clock: things come in the order of their times, equal ones as they were put
// in.
#include "sim/clock/time_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "sim/clock/clock.h"
#include "tests/support/random.h"

namespace prepost::sim::time_queue_test {
namespace {

// Against a sorted list, where things are put in while others are taken out: few and many, near
// ones and far ones, many at one time. What is known to be ahead is what comes.
TEST(TimeQueueTest, TakesInOrderOfTimesAndOfPuttingIn) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  for (int round = 0; round < 50; ++round) {
    TimeQueue<int> queue;
    std::multimap<Picoseconds, int> expected;  // keeps the order of equal keys
    Picoseconds now = random.Below(1000);
    int next = 0;
    const uint64_t near = uint64_t{1} << random.Below(20);
    const uint64_t pushes_percent = 45 + random.Below(30);
    for (int i = 0; i < 2000; ++i) {
      if (expected.empty() || random.Below(100) < pushes_percent) {
        const Picoseconds delay = random.Below(8) != 0
                                      ? static_cast<Picoseconds>(random.Below(near))
                                      : Picoseconds{1} << random.Below(62) >> random.Below(8);
        if (delay > kNever - 1 - now) continue;
        queue.Push(now + delay, next);
        expected.emplace(now + delay, next++);
      } else {
        now = expected.begin()->first;
        ASSERT_EQ(queue.next_at(), now) << "seed " << seed << " round " << round;
        auto coming = expected.begin();
        for (size_t ahead = 0; ahead < std::min<size_t>(10, queue.ahead().size());
             ++ahead, ++coming) {
          ASSERT_EQ(queue.ahead()[ahead].thing, coming->second)
              << "seed " << seed << " ahead " << ahead;
        }
        ASSERT_EQ(queue.Pop(), expected.begin()->second) << "seed " << seed << " round " << round;
        expected.erase(expected.begin());
      }
      ASSERT_EQ(queue.size(), expected.size());
      ASSERT_EQ(queue.next_at(), expected.empty() ? kNever : expected.begin()->first);
    }
  }
}

// Catches a cut through things of one time when there are too many to keep in order: those before
// it would come behind those after it.
TEST(TimeQueueTest, KeepsTheOrderOfVeryManyAtOneTime) {
  struct Step {
    Picoseconds at;
    int count;
  };
  struct Case {
    Step before;  // the first Pop()
    std::vector<Step> after;
  };
  for (const auto& [before, after] :
       {Case{{64, 1}, {{70, 10}, {80, 60}, {75, 40}}}, Case{{1'000'000, 1000}, {{500, 20}}}}) {
    TimeQueue<int> queue;
    queue.Push(1, -1);
    std::multimap<Picoseconds, int> expected;
    const auto push = [&](const Step& step) {
      for (int i = 0; i < step.count; ++i) {
        const auto next = static_cast<int>(expected.size());
        queue.Push(step.at, next);
        expected.emplace(step.at, next);
      }
    };
    push(before);
    ASSERT_EQ(queue.Pop(), -1);
    for (const Step& step : after) push(step);
    for (const auto& [at, thing] : expected) {
      ASSERT_EQ(queue.next_at(), at);
      ASSERT_EQ(queue.Pop(), thing);
    }
  }
}

// At the end of time, and what would be beyond it.
TEST(TimeQueueTest, HoldsTheLastTimes) {
  TimeQueue<int> queue;
  queue.Push(kNever - 1, 3);
  queue.Push(kNever / 2 + 1, 2);
  queue.Push(0, 1);
  for (const int expected : {1, 2, 3}) EXPECT_EQ(queue.Pop(), expected);
  queue.Push(kNever - 1, 4);
  EXPECT_EQ(queue.Pop(), 4);
  EXPECT_DEATH(queue.Push(kNever, 5), "");
  EXPECT_DEATH(queue.Push(kNever - 2, 5), "");
  EXPECT_DEATH(queue.Push(-1, 5), "");
}

TEST(TimeQueueTest, TimesAreAddedUpToTheEnd) {
  static_assert(After(5, 6) == 11);
  static_assert(After(kNever - 1, 0) == kNever - 1);
  static_assert(After(kNever - 1, 1) == kNever);
  static_assert(After(kNever, 0) == kNever);
  static_assert(After(0, kNever) == kNever);
  static_assert(After(kNever, kNever) == kNever);
  EXPECT_EQ(ToPicoseconds(1.6), 2);
  EXPECT_EQ(ToPicoseconds(0x1p63), kNever);
  EXPECT_EQ(ToPicoseconds(1e300), kNever);
  EXPECT_EQ(ToPicoseconds(0x1p62), Picoseconds{1} << 62);
}

class Recorder final : public TimeHandler {
 public:
  explicit Recorder(Clock& clock) : clock_(clock) {}
  void OnTime(const TimedEvent& event) override {
    seen_.emplace_back(clock_.now(), event.value);
    if (event.what == 0) return;
    clock_.Schedule(clock_.now() + event.what, *this, {.value = event.value + 1});
  }
  const std::vector<std::pair<Picoseconds, uint64_t>>& seen() const { return seen_; }

 private:
  Clock& clock_;
  std::vector<std::pair<Picoseconds, uint64_t>> seen_;
};

TEST(ClockTest, GoesFromEventToEvent) {
  Clock clock;
  Recorder recorder(clock);
  clock.Schedule(500, recorder, {.value = 1});
  clock.Schedule(20, recorder, {.value = 2, .what = 480});
  clock.Schedule(500, recorder, {.value = 4});
  EXPECT_FALSE(clock.RunDue());
  while (clock.next_at() != kNever) {
    clock.AdvanceTo(clock.next_at());
    while (clock.RunDue()) continue;
  }
  using Seen = std::vector<std::pair<Picoseconds, uint64_t>>;
  EXPECT_EQ(recorder.seen(), (Seen{{20, 2}, {500, 1}, {500, 4}, {500, 3}}));
  EXPECT_EQ(clock.now(), 500);
  EXPECT_FALSE(clock.has_missed());
  EXPECT_FALSE(clock.Schedule(kNever, recorder, {}));
  EXPECT_TRUE(clock.has_missed());
  EXPECT_EQ(clock.next_at(), kNever);
}

}  // namespace
}  // namespace prepost::sim::time_queue_test
