// SPDX-License-Identifier: Apache-2.0
//
// PageArena: memory for what all NICs of a fabric work on: queues' contexts and rings, and what
// hosts keep beside them. It is given back all at once. Large arenas stand in huge pages: with a
// thousand NICs every access is to another page, and looking up pages would take longer than the
// access. Single large pieces do not: a ring is as long as a power of two, and what nobody writes
// of it shall take no memory.
#ifndef PREPOST_BACKENDS_EMULATED_PAGE_ARENA_H_
#define PREPOST_BACKENDS_EMULATED_PAGE_ARENA_H_

#include <cstddef>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "runtime/base/mapping.h"

namespace prepost::emulated {

/// Ends a thing without giving back its memory.
struct EndInArena {
  template <typename T>
  void operator()(T* thing) const {
    thing->~T();
  }
};
template <typename T>
using ArenaPointer = std::unique_ptr<T, EndInArena>;

/// Any thread. As a memory resource it takes nothing back before its end.
class PageArena final : public std::pmr::memory_resource {
 public:
  static constexpr size_t kAlignment = 64;

  /// Zeroed memory, aligned to a cache line, as long as the arena lives. Throws std::bad_alloc. The
  /// address sanitizer finds accesses beside it.
  std::span<std::byte> Take(size_t bytes);

  /// Some of its memory will not be used again: the address sanitizer finds accesses to it.
  static void Drop(std::span<std::byte> taken);
  ~PageArena() override;
  PageArena() = default;
  PageArena(const PageArena&) = delete;
  PageArena& operator=(const PageArena&) = delete;

  template <typename T, typename... Arguments>
  ArenaPointer<T> Make(Arguments&&... arguments) {
    static_assert(alignof(T) <= kAlignment);
    return ArenaPointer<T>(new (Take(sizeof(T)).data()) T(std::forward<Arguments>(arguments)...));
  }

 private:
  void* do_allocate(size_t bytes, size_t alignment) override;
  void do_deallocate(void* memory, size_t bytes, size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  std::mutex mutex_;
  std::vector<Mapping> chunks_;          // guarded by mutex_, as are the next
  std::span<std::byte> left_;            // of the last chunk
  std::span<std::byte> left_for_large_;  // of the last one for large pieces
};

}  // namespace prepost::emulated

#endif  // PREPOST_BACKENDS_EMULATED_PAGE_ARENA_H_
