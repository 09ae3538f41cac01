// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/sequence_ring.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <new>
#include <utility>

namespace prepost::sequence_ring_test {
namespace {

/// Counts what is out.
class CountedMemory final : public std::pmr::memory_resource {
 public:
  size_t bytes() const { return bytes_; }

 private:
  void* do_allocate(size_t bytes, size_t alignment) override {
    bytes_ += bytes;
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* memory, size_t bytes, size_t alignment) override {
    bytes_ -= bytes;
    std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  size_t bytes_ = 0;
};

struct Thing {
  uint64_t value = 7;
};

// Numbers go on for ever; places come again. Of a row that has an end there may be fewer.
TEST(SequenceRingTest, HasThePlacesOfTheLastNumbers) {
  SequenceRing<Thing> ring;
  ring.Resize(8);
  const uint64_t first = (uint64_t{1} << 32) - 3;
  for (uint64_t number = first; number < first + 100; ++number) ring[number].value = number;
  for (uint64_t number = first + 92; number < first + 100; ++number) {
    EXPECT_EQ(ring[number].value, number);
  }
  ring.Resize(5);
  for (uint64_t number = 0; number < 5; ++number) EXPECT_EQ(std::as_const(ring)[number].value, 7u);
  ring.Resize(0);
}

// Catches memory that is lost, given back twice, or not in the amount in which it was taken.
TEST(SequenceRingTest, GivesItsMemoryBackOnce) {
  CountedMemory memory;
  {
    SequenceRing<Thing> ring(memory);
    ring.Resize(5);
    ring.Resize(300);
    ring[299].value = 1;
    SequenceRing<Thing> moved(std::move(ring));
    EXPECT_EQ(moved[299].value, 1u);
    EXPECT_NE(memory.bytes(), 0u);
    moved.Resize(0);
    EXPECT_EQ(memory.bytes(), 0u);
    moved.Resize(1);
  }
  EXPECT_EQ(memory.bytes(), 0u);
}

}  // namespace
}  // namespace prepost::sequence_ring_test
