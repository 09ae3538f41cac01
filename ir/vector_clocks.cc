// SPDX-License-Identifier: Apache-2.0
//
// A clock is the number of its topmost block. Nothing that is shared is changed: Own() copies a
// block that has other users first. The functions that go down a level call themselves, at most
// kLevelsMax times.
#include "ir/vector_clocks.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "ir/base/status.h"

namespace prepost {

VectorClocks::VectorClocks(uint32_t entries)
    : top_(entries <= 1 ? 0 : (static_cast<uint32_t>(std::bit_width(entries - 1)) - 1) / kBits),
      blocks_(1, Block{}),
      users_(1) {
  static_assert(kLevelsMax * kBits == 32);
}

uint32_t VectorClocks::At(Clock clock, uint32_t entry) const {
  for (uint32_t level = top_; level > 0 && clock != kZero; --level)
    clock = blocks_[clock][Digit(entry, level)];
  return blocks_[clock][Digit(entry, 0)];
}

VectorClocks::Clock VectorClocks::Copy(Clock clock) {
  if (clock != kZero) ++users_[clock];
  return clock;
}

void VectorClocks::Drop(Clock clock) { DropBlock(clock, top_); }

VectorClocks::Clock VectorClocks::Raise(Clock clock, uint32_t entry, uint32_t value) {
  if (At(clock, entry) >= value) return clock;
  clock = Own(clock, top_);
  uint32_t block = clock;
  for (uint32_t level = top_; level > 0; --level) {
    const uint32_t child = Own(blocks_[block][Digit(entry, level)], level - 1);
    blocks_[block][Digit(entry, level)] = child;
    block = child;
  }
  blocks_[block][Digit(entry, 0)] = value;
  return clock;
}

VectorClocks::Clock VectorClocks::Join(Clock clock, Clock other) {
  return JoinBlock(clock, other, top_);
}

uint32_t VectorClocks::NewBlock() {
  if (free_.empty()) {
    PREPOST_CHECK(blocks_.size() < ~uint32_t{0});
    free_.push_back(static_cast<uint32_t>(blocks_.size()));
    blocks_.emplace_back();
    users_.push_back(0);
  }
  const uint32_t block = free_.back();
  free_.pop_back();
  blocks_[block] = {};
  users_[block] = 1;
  return block;
}

uint32_t VectorClocks::Own(uint32_t block, uint32_t level) {
  if (block != 0 && users_[block] == 1) return block;
  const uint32_t copy = NewBlock();
  if (block == 0) return copy;
  --users_[block];
  blocks_[copy] = blocks_[block];
  if (level > 0) {
    for (const uint32_t child : blocks_[copy]) Copy(child);
  }
  return copy;
}

void VectorClocks::DropBlock(uint32_t block, uint32_t level) {
  if (block == 0 || --users_[block] > 0) return;
  if (level > 0) {
    for (const uint32_t child : blocks_[block]) DropBlock(child, level - 1);
  }
  free_.push_back(block);
}

uint32_t VectorClocks::JoinBlock(uint32_t block, uint32_t other, uint32_t level) {
  if (other == 0 || block == other) return block;
  if (block == 0) return Copy(other);
  if (level == 0) {
    if (std::ranges::equal(blocks_[block], blocks_[other], std::greater_equal<>())) return block;
    if (std::ranges::equal(blocks_[block], blocks_[other], std::less_equal<>())) {
      DropBlock(block, level);
      return Copy(other);
    }
    block = Own(block, level);
    std::ranges::transform(blocks_[block], blocks_[other], blocks_[block].begin(),
                           [](uint32_t a, uint32_t b) { return std::max(a, b); });
    return block;
  }
  block = Own(block, level);
  for (uint32_t i = 0; i < kSize; ++i) {
    // Own() may move blocks_, and takes over what it is handed.
    const uint32_t joined = JoinBlock(blocks_[block][i], blocks_[other][i], level - 1);
    blocks_[block][i] = joined;
  }
  return block;
}

}  // namespace prepost
