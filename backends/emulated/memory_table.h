// SPDX-License-Identifier: Apache-2.0
//
// MemoryTable: the registered memory of one emulated NIC, and the copying of payload between two of
// them. Every byte that moves is checked against a key's range and access (rule R9). In virtual
// time it holds no bytes, but of a multicast a tag per block that says what is there; a payload is
// such a tag. Of another collective, whose blocks change, it holds addresses alone.
#ifndef PREPOST_BACKENDS_EMULATED_MEMORY_TABLE_H_
#define PREPOST_BACKENDS_EMULATED_MEMORY_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backends/nic/device.h"
#include "backends/nic/program/decode.h"

namespace prepost::emulated {

/// What an access wants of a key.
enum class Use : uint8_t { kLocalRead, kLocalWrite, kRemoteRead, kRemoteWrite, kRemoteAtomic };

/// The tag of a block that has not been written yet.
inline constexpr uint32_t kNoTag = 0;

/// The tag of a payload from memory without tags.
inline constexpr uint32_t kUntold = 0xfffffffe;

/// The tags of a message's blocks, one after the other: other messages have others.
struct TagRange {
  uint32_t first = kNoTag + 1;
  uint32_t end = kNoTag + 1;  ///< behind those of all messages so far

  void BeginMessage() { first = end; }
  uint32_t Of(uint64_t block) const { return first + static_cast<uint32_t>(block); }
};

/// Where a block's tag is, and which block of the region it is.
struct TagPlace {
  uint32_t* tag = nullptr;  ///< null: there is none
  uint64_t block = 0;
  uint32_t right = kNoTag;  ///< the tag that belongs there
  uint64_t blocks = 0;      ///< of the region
  bool is_untold = false;   ///< there is no tag, as the region has none
};

class MemoryTable {
 public:
  /// What is added from now on has a tag per block of `block_bytes`, and its bytes are not touched.
  /// Where local writes are not allowed all blocks are there from the beginning. `tags` are those
  /// of the message; not owned.
  void HoldTags(uint64_t block_bytes, TagRange& tags) {
    block_bytes_ = block_bytes;
    tags_ = &tags;
  }
  /// What is added from now on has neither bytes that are touched nor tags.
  void HoldAddresses() {
    block_bytes_ = 0;
    tags_ = nullptr;
    has_bytes_ = false;
  }
  uint32_t Add(std::span<const std::byte> memory, nic::Access access);
  /// False when there is no such key.
  bool Remove(uint32_t key);
  /// The memory at [address, address + bytes), or null when `key` does not cover it for this use.
  std::byte* Find(uint32_t key, uint64_t address, uint64_t bytes, Use use) const;
  /// The tag of the memory at `piece`, which must be exactly one block if there are tags; the rest
  /// as Find().
  TagPlace FindTag(const nic::DataPiece& piece, Use use) const;
  /// The first block of any region that has no tag.
  std::optional<uint64_t> MissingBlock() const;

 private:
  struct Region {
    std::byte* begin = nullptr;  // null: removed
    uint64_t bytes = 0;
    nic::Access access;
    bool has_bytes = true;
    uint64_t block_bytes = 0;                 // 0: no tags
    uint32_t first_tag = kNoTag;              // the right one of block 0
    mutable std::vector<uint32_t> tags = {};  // by block
  };
  const Region* FindRegion(uint32_t key) const;

  bool has_bytes_ = true;  // of regions to be added, as the next
  uint64_t block_bytes_ = 0;
  TagRange* tags_ = nullptr;
  std::vector<Region> regions_;  // key = (position + 1) << 8 | kKeyTag
};

/// One side of a copy: pieces of memory behind a table.
struct Side {
  const MemoryTable& memory;
  std::span<const nic::DataPiece> pieces;
  Use use;
};

enum class CopyOutcome : uint8_t { kDone, kSourceRefused, kTargetRefused };

/// Copies bytes [offset, offset + bytes) of the payload that `source` gathers to where `target`
/// scatters it. Both sides must be that long.
CopyOutcome Copy(const Side& source, const Side& target, uint64_t offset, uint64_t bytes);

}  // namespace prepost::emulated

#endif  // PREPOST_BACKENDS_EMULATED_MEMORY_TABLE_H_
