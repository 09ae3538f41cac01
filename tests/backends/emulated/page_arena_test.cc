// SPDX-License-Identifier: Apache-2.0
#include "backends/emulated/page_arena.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <new>
#include <vector>

#include "tests/support/sanitizers.h"

namespace prepost::emulated::page_arena_test {
namespace {

TEST(PageArenaTest, PiecesAreZeroedAlignedAndApart) {
  PageArena arena;
  std::vector<std::span<std::byte>> pieces;
  for (const size_t bytes : {size_t{1}, size_t{64}, size_t{65}, size_t{300'000}, size_t{7}}) {
    const std::span<std::byte> piece = pieces.emplace_back(arena.Take(bytes));
    ASSERT_EQ(piece.size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(piece.data()) % PageArena::kAlignment, 0u);
    EXPECT_TRUE(std::ranges::all_of(piece, [](std::byte b) { return b == std::byte{0}; }));
    std::ranges::fill(piece, static_cast<std::byte>(pieces.size()));
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_TRUE(std::ranges::all_of(
        pieces[i], [&](std::byte b) { return b == static_cast<std::byte>(i + 1); }));
  }
}

// Of a large ring whose end nobody writes huge pages would take that, too.
TEST(PageArenaTest, WhatIsNotWrittenOfALargePieceTakesNoMemory) {
  constexpr size_t kPieceBytes = size_t{512} << 10;
  const auto page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  PageArena arena;
  for (size_t i = 0; i < 100; ++i) {
    const std::span<std::byte> piece = arena.Take(kPieceBytes);
    piece.front() = std::byte{1};
    const size_t behind = page_bytes - reinterpret_cast<uintptr_t>(piece.data()) % page_bytes;
    std::vector<unsigned char> pages((kPieceBytes - behind) / page_bytes);
    ASSERT_EQ(mincore(piece.data() + behind, pages.size() * page_bytes, pages.data()), 0);
    EXPECT_TRUE(std::ranges::none_of(pages, [](unsigned char page) { return (page & 1) != 0; }))
        << "piece " << i;
  }
}

TEST(PageArenaTest, ContainersStandInIt) {
  PageArena arena;
  std::pmr::vector<uint64_t> numbers(&arena);
  for (uint64_t i = 0; i < 1000; ++i) numbers.push_back(i);  // it moves several times
  const std::pmr::vector<uint64_t> others({1, 2, 3}, &arena);
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_EQ(numbers[i], i);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(numbers.data()) % PageArena::kAlignment, 0u);
  EXPECT_THROW(static_cast<void>(arena.allocate(8, 2 * PageArena::kAlignment)), std::bad_alloc);
}

#ifdef PREPOST_ADDRESS_SANITIZER
/// An access that the sanitizer sees although this file is compiled without it: memset is its own.
void Touch(std::byte* at) {
  static void* (*volatile set)(void*, int, size_t) = std::memset;
  set(at, 1, 1);
}
#endif

TEST(PageArenaTest, SanitizerFindsAccessesBesideAPiece) {
#ifndef PREPOST_ADDRESS_SANITIZER
  GTEST_SKIP() << "only the address sanitizer sees it";
#else
  PageArena arena;
  std::byte* const first = arena.Take(64).data();
  const std::span<std::byte> second = arena.Take(100);
  Touch(first + 63);
  Touch(second.data() + 99);
  EXPECT_DEATH(Touch(first + 64), "use-after-poison");
  EXPECT_DEATH(Touch(second.data() + 100), "use-after-poison");
  EXPECT_DEATH(Touch(second.data() + 5000), "use-after-poison");
  PageArena::Drop(second);
  EXPECT_DEATH(Touch(second.data()), "use-after-poison");
#endif
}

}  // namespace
}  // namespace prepost::emulated::page_arena_test
