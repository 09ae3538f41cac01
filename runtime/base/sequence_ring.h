// SPDX-License-Identifier: Apache-2.0
//
// SequenceRing: the last of a row of things that are numbered from 0 up. The executor's ops in
// flight, an endpoint's posts and completions stand in such rings.
#ifndef PREPOST_RUNTIME_BASE_SEQUENCE_RING_H_
#define PREPOST_RUNTIME_BASE_SEQUENCE_RING_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <type_traits>
#include <utility>

namespace prepost {

/// Used by one thread. Allocates only in Resize().
template <typename T>
class SequenceRing {
 public:
  SequenceRing() = default;
  /// Its memory is of `memory`, which must outlive it.
  explicit SequenceRing(std::pmr::memory_resource& memory) : memory_(&memory) {}
  SequenceRing(SequenceRing&& other) noexcept
      : places_(std::exchange(other.places_, nullptr)),
        mask_(std::exchange(other.mask_, 0)),
        memory_(other.memory_) {}
  SequenceRing& operator=(SequenceRing&&) = delete;
  ~SequenceRing() { Drop(); }

  /// Room for `places` at once: a power of two, or as many as the whole row has. Empties it.
  void Resize(size_t places) {
    Drop();
    if (places == 0) return;
    // No more than `places` are touched.
    places_ = memory_.allocate(std::bit_ceil(places));
    mask_ = std::bit_ceil(places) - 1;
    std::uninitialized_value_construct_n(places_, places);
  }
  /// The one with `number`, which is among the last `places`.
  T& operator[](uint64_t number) { return places_[number & mask_]; }
  const T& operator[](uint64_t number) const { return places_[number & mask_]; }

 private:
  static_assert(std::is_trivially_destructible_v<T>);

  void Drop() {
    if (places_ != nullptr) memory_.deallocate(std::exchange(places_, nullptr), mask_ + 1);
  }

  T* places_ = nullptr;
  uint64_t mask_ = 0;
  std::pmr::polymorphic_allocator<T> memory_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_BASE_SEQUENCE_RING_H_
