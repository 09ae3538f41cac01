// SPDX-License-Identifier: Apache-2.0
//
// TimeQueue: things that are due at times, taken in the order of these, and of equal times in the
// order in which they were put in. Nothing may be put in for before the last time taken: that makes
// a radix heap possible, where putting in costs a few instructions and things of equal times, of
// which there are many in a schedule that goes by rounds, move together.
//
// Radix heap (Ahuja, Mehlhorn, Orlin, Tarjan 1990): with `last_` the last time taken, a time t
// stands in bucket 0 if t = last_, else in bucket 1 + the highest bit in which t and last_ differ.
// When bucket 0 is empty the smallest time of the lowest bucket becomes last_, and the bucket's
// things move to lower ones, in their order; so each moves 63 times at most.
#ifndef PREPOST_BACKENDS_EMULATED_TIME_QUEUE_H_
#define PREPOST_BACKENDS_EMULATED_TIME_QUEUE_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "prepost/backends/emulated/virtual_time.h"
#include "prepost/ir/status.h"

namespace prepost::emulated {

/// T is trivially copyable. Allocates only when it holds more than ever before.
template <typename T>
class TimeQueue {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  /// Needs last time taken <= at < kNever.
  void Push(Picoseconds at, const T& thing) {
    PREPOST_CHECK(at >= last_ && at < kNever);
    Put(BucketOf(at), {at, thing});
    ++size_;
    next_at_ = std::min(next_at_, at);
  }

  /// When the next thing is due; kNever: there is none.
  Picoseconds next_at() const { return next_at_; }

  struct Entry {
    Picoseconds at;
    T thing;
  };
  /// What is due at the next time; until something is put in or taken. Only when that time has come:
  /// nothing may be put in for before it any more.
  std::span<const Entry> Due() {
    if (empty()) return {};
    if (taken_ == buckets_[0].size()) Refill();
    return std::span<const Entry>(buckets_[0]).subspan(taken_);
  }

  /// Needs !empty().
  T Pop() {
    if (taken_ == buckets_[0].size()) Refill();
    const T thing = buckets_[0][taken_++].thing;
    --size_;
    if (taken_ == buckets_[0].size()) {
      buckets_[0].clear();
      taken_ = 0;
      filled_ &= ~uint64_t{1};
      next_at_ = Smallest();
    }
    return thing;
  }

 private:
  size_t BucketOf(Picoseconds at) const {
    return static_cast<size_t>(std::bit_width(static_cast<uint64_t>(at ^ last_)));
  }

  void Put(size_t bucket, const Entry& entry) {
    const uint64_t bit = uint64_t{1} << bucket;
    smallest_[bucket] = filled_ & bit ? std::min(smallest_[bucket], entry.at) : entry.at;
    filled_ |= bit;
    buckets_[bucket].push_back(entry);
  }

  Picoseconds Smallest() const {
    return filled_ == 0 ? kNever : smallest_[static_cast<size_t>(std::countr_zero(filled_))];
  }

  /// Bucket 0 is empty, not all are.
  void Refill() {
    const auto lowest = static_cast<size_t>(std::countr_zero(filled_));
    last_ = next_at_;
    for (const Entry& entry : buckets_[lowest]) Put(BucketOf(entry.at), entry);
    buckets_[lowest].clear();
    filled_ &= ~(uint64_t{1} << lowest);
  }

  std::array<std::vector<Entry>, 64> buckets_;
  std::array<Picoseconds, 64> smallest_ = {};  // of each bucket that is not empty
  uint64_t filled_ = 0;                        // bit b: bucket b is not empty
  size_t taken_ = 0;                           // from the front of bucket 0
  size_t size_ = 0;
  Picoseconds last_ = 0;
  Picoseconds next_at_ = kNever;
};

}  // namespace prepost::emulated

#endif  // PREPOST_BACKENDS_EMULATED_TIME_QUEUE_H_
