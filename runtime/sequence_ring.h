// SPDX-License-Identifier: Apache-2.0
//
// SequenceRing: the last of a row of things that are numbered from 0 up. The executor's ops in
// flight, an endpoint's posts and completions stand in such rings.
#ifndef PREPOST_RUNTIME_SEQUENCE_RING_H_
#define PREPOST_RUNTIME_SEQUENCE_RING_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

namespace prepost {

/// Used by one thread. Allocates only in Resize().
template <typename T>
class SequenceRing {
 public:
  SequenceRing() = default;
  /// Its memory is of `memory`, which must outlive it.
  explicit SequenceRing(std::pmr::memory_resource& memory) : places_(&memory) {}

  /// Room for `places` at once: a power of two, or as many as the whole row has. Empties it.
  void Resize(size_t places) {
    places_.assign(places, T());
    mask_ = std::bit_ceil(places) - 1;
  }
  /// The one with `number`, which is among the last `places`.
  T& operator[](uint64_t number) { return places_[number & mask_]; }
  const T& operator[](uint64_t number) const { return places_[number & mask_]; }

 private:
  std::pmr::vector<T> places_;
  uint64_t mask_ = 0;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_SEQUENCE_RING_H_
