// SPDX-License-Identifier: Apache-2.0
#include "prepost/backends/emulated/page_arena.h"

#include <sys/mman.h>

#include <algorithm>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace prepost::emulated {
namespace {

constexpr size_t kFirstChunkBytes = size_t{256} << 10;
constexpr size_t kChunkBytesMax = size_t{64} << 20;
/// Chunks from here on are in huge pages, where the system has any to give.
constexpr size_t kHugeChunkBytes = size_t{8} << 20;

}  // namespace

void PageArena::Drop([[maybe_unused]] std::span<std::byte> taken) {
#ifdef __SANITIZE_ADDRESS__
  __asan_poison_memory_region(taken.data(), taken.size());
#endif
}

PageArena::~PageArena() {
#ifdef __SANITIZE_ADDRESS__
  for (const Mapping& chunk : chunks_) {
    __asan_unpoison_memory_region(chunk.bytes().data(), chunk.bytes().size());
  }
#endif
}

std::span<std::byte> PageArena::Take(size_t bytes) {
  const std::lock_guard lock(mutex_);
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (left_.size() < rounded) {
    // As much again as there is, so that small fabrics stay small.
    size_t chunk = kFirstChunkBytes << std::min<size_t>(chunks_.size(), 8);
    chunk = std::max(std::min(chunk, kChunkBytesMax), rounded);
    Result<Mapping> made = Mapping::Anonymous(chunk);
    if (!made.ok()) throw std::bad_alloc();
    left_ = made->bytes();
    if (chunk >= kHugeChunkBytes) madvise(left_.data(), left_.size(), MADV_HUGEPAGE);
    chunks_.push_back(*std::move(made));
  }
  const std::span<std::byte> taken = left_.first(bytes);
  left_ = left_.subspan(rounded);
  return taken;
}

}  // namespace prepost::emulated
