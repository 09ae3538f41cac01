// SPDX-License-Identifier: Apache-2.0
//
// GrowingRing: a queue with access by position that keeps its memory. Queues of a NIC that hold
// little most of the time stand in such rings: nothing is allocated once they have been as full as
// they get.
#ifndef PREPOST_BACKENDS_EMULATED_GROWING_RING_H_
#define PREPOST_BACKENDS_EMULATED_GROWING_RING_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "ir/base/status.h"

namespace prepost::emulated {

/// T is cheap to copy. Adding makes references to what is in the ring invalid. At most 2^31 things.
template <typename T>
class GrowingRing {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  /// Position 0 is the oldest.
  T& operator[](size_t position) { return places_[(first_ + position) & (capacity_ - 1)]; }
  const T& operator[](size_t position) const {
    return places_[(first_ + position) & (capacity_ - 1)];
  }
  T& front() { return places_[first_]; }
  const T& front() const { return places_[first_]; }
  T& back() { return (*this)[size_ - 1]; }

  void push_back(const T& thing) {
    if (size_ == capacity_) Grow();
    ++size_;
    back() = thing;
  }
  void pop_front() {
    first_ = (first_ + 1) & (capacity_ - 1);
    if (--size_ == 0) first_ = 0;  // the place that was used last
  }
  void clear() { first_ = size_ = 0; }

 private:
  static constexpr uint32_t kCapacityMax = uint32_t{1} << 31;

  void Grow() {
    PREPOST_CHECK(capacity_ < kCapacityMax);
    const uint32_t capacity = std::max<uint32_t>(2 * capacity_, 4);
    auto places = std::make_unique<T[]>(capacity);
    for (size_t i = 0; i < size_; ++i) places[i] = (*this)[i];
    places_ = std::move(places);
    first_ = 0;
    capacity_ = capacity;
  }

  std::unique_ptr<T[]> places_;
  uint32_t capacity_ = 0;  // a power of two, or none
  uint32_t first_ = 0;
  uint32_t size_ = 0;
};

}  // namespace prepost::emulated

#endif  // PREPOST_BACKENDS_EMULATED_GROWING_RING_H_
