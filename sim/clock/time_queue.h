// SPDX-License-Identifier: Apache-2.0
//
// TimeQueue: things that are due at times, taken in the order of these, and of equal times in the
// order in which they were put in. Nothing may be put in for before the last time taken: that makes
// a radix heap possible, where putting in costs a few instructions and things of equal times, of
// which there are many in a schedule that goes by rounds, move together.
//
// Radix heap (Ahuja, Mehlhorn, Orlin, Tarjan 1990) with digits of 6 bits: with `last_` some time
// not after the next, a time t stands in the bucket of the highest digit in which t and last_
// differ, and of what t has there. When due_ is empty the smallest time of the lowest bucket
// becomes last_. If the bucket holds few things, or all of one time, they go to due_, in the order
// of the times; else they move to lower buckets, in their order.
//
// What is put in for before `due_end_`, the end of those buckets' times, joins due_ at its place.
// When that has grown long its later half goes back into buckets; when it gets short the next
// bucket that holds few follows. So what is next is known in its order some way ahead, for a caller
// that prefetches what things will need.
#ifndef PREPOST_SIM_CLOCK_TIME_QUEUE_H_
#define PREPOST_SIM_CLOCK_TIME_QUEUE_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "ir/base/status.h"
#include "sim/nics/time.h"

namespace prepost::sim {

/// T is trivially copyable. If it has a Prefetch(), that is called some time before it is due,
/// unless very many are due at its time. Keeps the memory that it has needed.
template <typename T>
class TimeQueue {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  /// Needs last time taken <= at < kNever.
  void Push(Picoseconds at, const T& thing) {
    PREPOST_CHECK(at >= taken_at_ && at < kNever);
    if (at < due_end_) {
      Join({at, thing});
    } else {
      Put({at, thing});
    }
    ++size_;
    next_at_ = std::min(next_at_, at);
  }

  /// When the next thing is due; kNever: there is none.
  Picoseconds next_at() const { return next_at_; }

  struct Entry {
    Picoseconds at;
    T thing;
  };
  /// The next things, as far as they are known, in their order. Until the next Push() or Pop().
  std::span<const Entry> ahead() const { return std::span(due_).subspan(taken_); }

  /// Needs !empty(). Nothing may be put in for before the thing any more.
  T Pop() {
    if (due_.empty()) Refill();
    taken_at_ = due_[taken_].at;
    const T thing = due_[taken_++].thing;
    --size_;
    if (due_.size() - taken_ < kAhead && filled_levels_ != 0) TopUp();
    if (taken_ < due_.size()) {
      next_at_ = due_[taken_].at;
      return thing;
    }
    due_.clear();
    taken_ = 0;
    next_at_ = filled_levels_ == 0 ? kNever : buckets_[Lowest()].smallest;
    return thing;
  }

 private:
  static constexpr size_t kDigitBits = 6;
  static constexpr size_t kDigits = size_t{1} << kDigitBits;
  static constexpr size_t kLevels = (63 + kDigitBits - 1) / kDigitBits;
  static constexpr size_t kFew = 32;    // are sorted
  static constexpr size_t kMany = 64;   // of different times are too many in due_
  static constexpr size_t kAhead = 16;  // are to be in due_, where that is easy

  static constexpr uint32_t kNone = 0xffffffff;

  /// A place for an entry that stands in a bucket. Those that are free are used again last in,
  /// first out: they are in the cache, where memory of each bucket's own would not be.
  struct Place {
    Entry entry;
    uint32_t next = kNone;
  };
  /// A list of places.
  struct Bucket {
    uint32_t first = kNone;
    uint32_t last = kNone;
    uint32_t size = 0;
    bool is_mixed = false;  ///< has more than one time
    Picoseconds smallest = 0;
  };

  /// Into a bucket. Needs last_ <= its time, and that buckets of lower times are empty but for
  /// those that last_ divides into.
  void Put(const Entry& entry) {
    const auto differs = static_cast<uint64_t>(entry.at ^ last_) | 1;
    const size_t level = (static_cast<size_t>(std::bit_width(differs)) - 1) / kDigitBits;
    const size_t digit = static_cast<uint64_t>(entry.at) >> (level * kDigitBits) & (kDigits - 1);
    Bucket& bucket = buckets_[level * kDigits + digit];
    const uint32_t place = TakePlace(entry);
    if (bucket.size++ == 0) {
      bucket.first = place;
      bucket.smallest = entry.at;
      bucket.is_mixed = false;
      filled_[level] |= uint64_t{1} << digit;
      filled_levels_ |= 1u << level;
    } else {
      places_[bucket.last].next = place;
      bucket.is_mixed |= entry.at != bucket.smallest;
      bucket.smallest = std::min(bucket.smallest, entry.at);
    }
    bucket.last = place;
  }

  uint32_t TakePlace(const Entry& entry) {
    if (free_ == kNone) {
      PREPOST_CHECK(places_.size() < kNone);
      places_.push_back({entry, kNone});
      return static_cast<uint32_t>(places_.size() - 1);
    }
    const uint32_t place = free_;
    free_ = places_[place].next;
    places_[place] = {entry, kNone};
    return place;
  }

  Entry FreePlace(uint32_t place) {
    places_[place].next = std::exchange(free_, place);
    return places_[place].entry;
  }

  /// Into due_, behind what is due at the same time.
  void Join(const Entry& entry) {
    if (due_.size() - taken_ >= kMany && due_[taken_].at != due_.back().at) {
      PutBack();
      if (entry.at >= due_end_) return Put(entry);
    }
    DropTaken();
    due_.push_back(entry);
    MoveToPlace(due_.size() - 1);
  }

  void DropTaken() {
    if (taken_ <= kMany || taken_ <= due_.size() / 2) return;
    due_.erase(due_.begin(), due_.begin() + static_cast<ptrdiff_t>(taken_));
    taken_ = 0;
  }

  /// The entry at `position` of due_, before which all are in order.
  void MoveToPlace(size_t position) {
    if (position == taken_ || due_[position - 1].at <= due_[position].at) return;
    const Entry entry = due_[position];
    for (; position > taken_ && due_[position - 1].at > entry.at; --position) {
      due_[position] = due_[position - 1];
    }
    due_[position] = entry;
  }

  /// About the later half of due_, whose times differ, into buckets. What is due at one time stays
  /// together: behind what stands in a bucket for that time there may only come what was put in
  /// later.
  void PutBack() {
    const std::span<Entry> left = std::span(due_).subspan(taken_);
    const Picoseconds middle = left[left.size() / 2].at;
    auto first = std::ranges::lower_bound(left, middle, {}, &Entry::at);
    if (first == left.begin()) first = std::ranges::upper_bound(left, middle, {}, &Entry::at);
    due_end_ = first->at;
    for (auto entry = first; entry != left.end(); ++entry) Put(*entry);
    due_.resize(taken_ + static_cast<size_t>(first - left.begin()));
  }

  /// Of a queue in which due_ is empty, but not all.
  size_t Lowest() const {
    const auto level = static_cast<size_t>(std::countr_zero(filled_levels_));
    return level * kDigits + static_cast<size_t>(std::countr_zero(filled_[level]));
  }

  /// due_ is empty, not all are.
  void Refill() {
    for (;;) {
      const size_t lowest = Lowest();
      last_ = buckets_[lowest].smallest;
      if (IsFew(buckets_[lowest]) || !buckets_[lowest].is_mixed) return TakeBucket(lowest);
      const Bucket bucket = Empty(lowest);
      for (uint32_t place = bucket.first; place != kNone;) {
        const uint32_t next = places_[place].next;
        Put(FreePlace(place));
        place = next;
      }
    }
  }

  /// Adds to due_ what can be added without a change of last_, by which things stand in buckets.
  /// Not many at once: they would be in the way of what is put in before them.
  void TopUp() {
    DropTaken();
    while (due_.size() - taken_ < kAhead && filled_levels_ != 0) {
      const size_t lowest = Lowest();
      if (!IsFew(buckets_[lowest])) return;
      TakeBucket(lowest);
    }
  }

  static bool IsFew(const Bucket& bucket) { return bucket.size <= kFew; }

  /// The lowest one, which has few things or one time, to the end of due_.
  void TakeBucket(size_t lowest) {
    const Bucket bucket = Empty(lowest);
    const bool is_few = IsFew(bucket);
    due_end_ = is_few ? EndOf(bucket.smallest, lowest / kDigits) : bucket.smallest + 1;
    for (uint32_t place = bucket.first; place != kNone;) {
      const uint32_t next = places_[place].next;
      due_.push_back(FreePlace(place));
      place = next;
      if (bucket.is_mixed) MoveToPlace(due_.size() - 1);
      if constexpr (requires(const T& thing) { thing.Prefetch(); }) {
        if (is_few) due_.back().thing.Prefetch();
      }
    }
  }

  Bucket Empty(size_t index) {
    const size_t level = index / kDigits;
    filled_[level] &= ~(uint64_t{1} << index % kDigits);
    if (filled_[level] == 0) filled_levels_ &= ~(1u << level);
    return std::exchange(buckets_[index], {});
  }

  /// Of the times that have the digits of `at` from `level` on.
  static Picoseconds EndOf(Picoseconds at, size_t level) {
    const size_t bits = level * kDigitBits;
    const uint64_t end = ((static_cast<uint64_t>(at) >> bits) + 1) << bits;
    return end > static_cast<uint64_t>(kNever) ? kNever : static_cast<Picoseconds>(end);
  }

  std::array<Bucket, kLevels * kDigits> buckets_;
  std::array<uint64_t, kLevels> filled_ =
      {};                       // by level, bit d: the bucket of digit d is not empty
  uint32_t filled_levels_ = 0;  // bit l: some bucket of the level is not empty
  std::vector<Place> places_;
  uint32_t free_ = kNone;
  std::vector<Entry> due_;    // the next ones, in order
  size_t taken_ = 0;          // from the front of due_
  Picoseconds taken_at_ = 0;  // the last one
  Picoseconds due_end_ = 0;   // what is due before stands in due_
  size_t size_ = 0;
  Picoseconds last_ = 0;
  Picoseconds next_at_ = kNever;
};

}  // namespace prepost::sim

#endif  // PREPOST_SIM_CLOCK_TIME_QUEUE_H_
