// SPDX-License-Identifier: Apache-2.0
//
// TimeQueue: things that are due at times, taken in the order of these, and of equal times in the
// order in which they were put in. Nothing may be put in for before the last time taken: that makes
// a radix heap possible, where putting in costs a few instructions and things of equal times, of
// which there are many in a schedule that goes by rounds, move together.
//
// Radix heap (Ahuja, Mehlhorn, Orlin, Tarjan 1990) with digits of 6 bits: with `last_` the last time
// taken, a time t stands in due_ if t = last_, else in the bucket of the highest digit in which t and
// last_ differ, and of what t has there. When due_ is empty the smallest time of the lowest bucket
// becomes last_, and the bucket's things move to lower ones, in their order; so each moves 11 times at
// most. A bucket in which all things have one time, which is often one thing, moves as a whole.
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

/// T is trivially copyable. If it has a Foresee(), that is called some time before it is due. Keeps the memory that it has needed.
template <typename T>
class TimeQueue {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  /// Needs last time taken <= at < kNever.
  void Push(Picoseconds at, const T& thing) {
    PREPOST_CHECK(at >= last_ && at < kNever);
    Put({at, thing});
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
    if (due_.empty()) Refill();
    return std::span<const Entry>(due_).subspan(taken_);
  }

  /// A thing that is due next, or soon; null: there is none.
  const T* Soon() const {
    if (!due_.empty()) return &due_[taken_].thing;
    return filled_levels_ == 0 ? nullptr : &buckets_[Lowest()].entries.front().thing;
  }

  /// Needs !empty().
  T Pop() {
    if (due_.empty()) Refill();
    const T thing = due_[taken_++].thing;
    --size_;
    if (taken_ == due_.size()) {
      due_.clear();
      taken_ = 0;
      next_at_ = filled_levels_ == 0 ? kNever : buckets_[Lowest()].smallest;
    }
    return thing;
  }

 private:
  static constexpr size_t kDigitBits = 6;
  static constexpr size_t kDigits = size_t{1} << kDigitBits;
  static constexpr size_t kLevels = (63 + kDigitBits - 1) / kDigitBits;

  struct Bucket {
    std::vector<Entry> entries;
    Picoseconds smallest = 0;
    bool is_mixed = false;  ///< has more than one time
  };

  void Put(const Entry& entry) {
    const auto differs = static_cast<uint64_t>(entry.at ^ last_);
    if (differs == 0) return due_.push_back(entry);
    const size_t level = (static_cast<size_t>(std::bit_width(differs)) - 1) / kDigitBits;
    const size_t digit = static_cast<uint64_t>(entry.at) >> (level * kDigitBits) & (kDigits - 1);
    Bucket& bucket = buckets_[level * kDigits + digit];
    if (bucket.entries.empty()) {
      bucket.smallest = entry.at;
      bucket.is_mixed = false;
      filled_[level] |= uint64_t{1} << digit;
      filled_levels_ |= 1u << level;
    } else if (entry.at != bucket.smallest) {
      bucket.smallest = std::min(bucket.smallest, entry.at);
      bucket.is_mixed = true;
    }
    bucket.entries.push_back(entry);
  }

  /// Of a queue in which due_ is empty, but not all.
  size_t Lowest() const {
    const auto level = static_cast<size_t>(std::countr_zero(filled_levels_));
    return level * kDigits + static_cast<size_t>(std::countr_zero(filled_[level]));
  }

  /// due_ is empty, not all are.
  void Refill() {
    const size_t lowest = Lowest();
    const size_t level = lowest / kDigits;
    filled_[level] &= filled_[level] - 1;
    if (filled_[level] == 0) filled_levels_ &= filled_levels_ - 1;
    Bucket& bucket = buckets_[lowest];
    last_ = next_at_;
    if (!bucket.is_mixed) return due_.swap(bucket.entries);
    for (const Entry& entry : bucket.entries) {
      Put(entry);
      if constexpr (requires { entry.thing.Foresee(); }) entry.thing.Foresee();
    }
    bucket.entries.clear();
  }

  std::array<Bucket, kLevels * kDigits> buckets_;
  std::array<uint64_t, kLevels> filled_ =
      {};                       // by level, bit d: the bucket of digit d is not empty
  uint32_t filled_levels_ = 0;  // bit l: some bucket of the level is not empty
  std::vector<Entry> due_;      // at last_
  size_t taken_ = 0;            // from the front of due_
  size_t size_ = 0;
  Picoseconds last_ = 0;
  Picoseconds next_at_ = kNever;
};

}  // namespace prepost::emulated

#endif  // PREPOST_BACKENDS_EMULATED_TIME_QUEUE_H_
