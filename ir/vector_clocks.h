// SPDX-License-Identifier: Apache-2.0
//
// VectorClocks: many vector clocks that differ little from each other. Entries lie in blocks of 16,
// under a tree of blocks when there are more; clocks share blocks, which are counted, and a block
// that is all zero is none. So a clock that is another one with some entries raised costs a few
// blocks, however many entries there are. Internal to ir/.
#ifndef PREPOST_IR_VECTOR_CLOCKS_H_
#define PREPOST_IR_VECTOR_CLOCKS_H_

#include <array>
#include <cstdint>
#include <vector>

namespace prepost {

/// Owns all its clocks; single-threaded. A Clock is a counted reference: whoever is given one hands
/// it on, Copy()s it, or gives it back by Drop().
class VectorClocks {
 public:
  using Clock = uint32_t;
  static constexpr Clock kZero = 0;  ///< all entries are 0; needs neither Copy() nor Drop()

  /// Clocks of so many entries.
  explicit VectorClocks(uint32_t entries);

  /// O(log16 entries).
  uint32_t At(Clock clock, uint32_t entry) const;

  Clock Copy(Clock clock);
  void Drop(Clock clock);

  /// `clock`, which is handed over, with `entry` at least `value`. O(log16 entries).
  [[nodiscard]] Clock Raise(Clock clock, uint32_t entry, uint32_t value);
  /// The greater of each entry of `clock`, which is handed over, and of `other`. O(blocks that they
  /// do not share).
  [[nodiscard]] Clock Join(Clock clock, Clock other);

  /// Blocks in use: of all clocks that were not given back.
  uint32_t blocks() const { return static_cast<uint32_t>(blocks_.size() - free_.size()) - 1; }

 private:
  static constexpr uint32_t kBits = 4;
  static constexpr uint32_t kSize = 1u << kBits;
  static constexpr uint32_t kLevelsMax = 8;  // of 2^32 entries
  /// Entries, or on higher levels blocks.
  using Block = std::array<uint32_t, kSize>;

  static uint32_t Digit(uint32_t entry, uint32_t level) {
    return entry >> (kBits * level) & (kSize - 1);
  }
  uint32_t NewBlock();
  /// `block`, which is handed over, or a copy of it that is nobody else's; its children are shared.
  uint32_t Own(uint32_t block, uint32_t level);
  void DropBlock(uint32_t block, uint32_t level);
  uint32_t JoinBlock(uint32_t block, uint32_t other, uint32_t level);

  const uint32_t top_;           // the level of the topmost blocks; that of entries is 0
  std::vector<Block> blocks_;    // 0 is the block of zeros
  std::vector<uint32_t> users_;  // by block: blocks above and clocks
  std::vector<uint32_t> free_;
};

}  // namespace prepost

#endif  // PREPOST_IR_VECTOR_CLOCKS_H_
