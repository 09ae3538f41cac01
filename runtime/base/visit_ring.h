// SPDX-License-Identifier: Apache-2.0
//
// VisitRing: which of an endpoint's parts (connections, channels) have something to do, first come
// first served, each at most once. Every endpoint's Poll() visits what is in it.
#ifndef PREPOST_RUNTIME_BASE_VISIT_RING_H_
#define PREPOST_RUNTIME_BASE_VISIT_RING_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace prepost {

/// Used by one thread. Allocates only in Resize() and Grow().
class VisitRing {
 public:
  /// Parts are numbered 0 .. `parts` - 1. Empties the ring.
  void Resize(size_t parts) {
    ring_.assign(parts, 0);
    is_queued_.assign(parts, false);
    begin_ = count_ = 0;
  }
  /// As Resize() to more parts, but those that are in the ring stay.
  void Grow(size_t parts) {
    std::vector<uint32_t> queued;
    while (count_ > 0) queued.push_back(Pop());
    Resize(parts);
    for (const uint32_t part : queued) Push(part);
  }
  size_t size() const { return count_; }
  /// Adds `part` unless it is there already.
  void Push(uint32_t part) {
    if (is_queued_[part]) return;
    is_queued_[part] = true;
    ring_[(begin_ + count_++) % ring_.size()] = part;
  }
  /// Takes the first one out. Needs size() > 0.
  uint32_t Pop() {
    const uint32_t part = ring_[begin_];
    begin_ = (begin_ + 1) % ring_.size();
    --count_;
    is_queued_[part] = false;
    return part;
  }

 private:
  std::vector<uint32_t> ring_;
  std::vector<bool> is_queued_;
  size_t begin_ = 0;
  size_t count_ = 0;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_BASE_VISIT_RING_H_
