// SPDX-License-Identifier: Apache-2.0
//
// GrowingRing: a queue with access by position that keeps its memory. Queues of a NIC that hold
// little most of the time stand in such rings: nothing is allocated once they have been as full as
// they get.
#ifndef PREPOST_BACKENDS_EMULATED_GROWING_RING_H_
#define PREPOST_BACKENDS_EMULATED_GROWING_RING_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace prepost::emulated {

/// T is cheap to copy. Adding makes references to what is in the ring invalid.
template <typename T>
class GrowingRing {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  /// Position 0 is the oldest.
  T& operator[](size_t position) { return places_[(first_ + position) & (places_.size() - 1)]; }
  const T& operator[](size_t position) const {
    return places_[(first_ + position) & (places_.size() - 1)];
  }
  T& front() { return places_[first_]; }
  const T& front() const { return places_[first_]; }
  T& back() { return (*this)[size_ - 1]; }

  void push_back(const T& thing) {
    if (size_ == places_.size()) Grow();
    ++size_;
    back() = thing;
  }
  void pop_front() {
    first_ = (first_ + 1) & (places_.size() - 1);
    if (--size_ == 0) first_ = 0;  // the place that was used last
  }
  void clear() { first_ = size_ = 0; }

 private:
  void Grow() {
    std::rotate(places_.begin(), places_.begin() + static_cast<ptrdiff_t>(first_), places_.end());
    first_ = 0;
    places_.resize(std::max<size_t>(2 * places_.size(), 4));
  }

  std::vector<T> places_;  // as many as a power of two, or none
  size_t first_ = 0;
  size_t size_ = 0;
};

}  // namespace prepost::emulated

#endif  // PREPOST_BACKENDS_EMULATED_GROWING_RING_H_
