// SPDX-License-Identifier: Apache-2.0
#include "backends/emulated/page_arena.h"

#include <sys/mman.h>

#include <algorithm>

// gcc defines __SANITIZE_ADDRESS__, clang has the feature.
#ifdef __has_feature
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) (static_cast<void>(address))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) (static_cast<void>(address))
#endif

namespace prepost::emulated {
namespace {

constexpr size_t kFirstChunkBytes = size_t{256} << 10;
constexpr size_t kChunkBytesMax = size_t{64} << 20;
/// Chunks from here on are in huge pages, where the system has any to give.
constexpr size_t kHugeChunkBytes = size_t{8} << 20;
/// Pieces from here on have chunks of their own, in small pages: what is never written of a ring
/// that long, up to half of it, takes no memory.
constexpr size_t kLargePieceBytes = size_t{256} << 10;
/// Between two pieces: memory that nobody has.
#ifdef __SANITIZE_ADDRESS__
constexpr size_t kRedZoneBytes = PageArena::kAlignment;
#else
constexpr size_t kRedZoneBytes = 0;
#endif

}  // namespace

void PageArena::Drop(std::span<std::byte> taken) {
  ASAN_POISON_MEMORY_REGION(taken.data(), taken.size());
}

void* PageArena::do_allocate(size_t bytes, size_t alignment) {
  if (alignment > kAlignment) throw std::bad_alloc();
  return Take(bytes).data();
}

void PageArena::do_deallocate(void* memory, size_t bytes, size_t) {
  Drop({static_cast<std::byte*>(memory), bytes});
}

PageArena::~PageArena() {
  for (const Mapping& chunk : chunks_) {
    ASAN_UNPOISON_MEMORY_REGION(chunk.bytes().data(), chunk.bytes().size());
  }
}

std::span<std::byte> PageArena::Take(size_t bytes) {
  const std::lock_guard lock(mutex_);
  const bool is_large = bytes >= kLargePieceBytes;
  std::span<std::byte>& left = is_large ? left_for_large_ : left_;
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment + kRedZoneBytes;
  if (left.size() < rounded) {
    // As much again as there is, so that small fabrics stay small.
    size_t chunk = kFirstChunkBytes << std::min<size_t>(chunks_.size(), 8);
    chunk = std::max(std::min(chunk, kChunkBytesMax), rounded);
    Result<Mapping> made = Mapping::Anonymous(chunk);
    if (!made.ok()) throw std::bad_alloc();
    left = made->bytes();
    if (is_large) {
      madvise(left.data(), left.size(), MADV_NOHUGEPAGE);
    } else if (chunk >= kHugeChunkBytes) {
      madvise(left.data(), left.size(), MADV_HUGEPAGE);
    }
    ASAN_POISON_MEMORY_REGION(left.data(), left.size());
    chunks_.push_back(*std::move(made));
  }
  const std::span<std::byte> taken = left.first(bytes);
  left = left.subspan(rounded);
  ASAN_UNPOISON_MEMORY_REGION(taken.data(), taken.size());
  return taken;
}

}  // namespace prepost::emulated
