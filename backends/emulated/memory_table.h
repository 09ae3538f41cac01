// SPDX-License-Identifier: Apache-2.0
//
// MemoryTable: the registered memory of one emulated NIC, and the copying of payload between two of
// them. Every byte that moves is checked against a key's range and access (rule R9).
#ifndef PREPOST_BACKENDS_EMULATED_MEMORY_TABLE_H_
#define PREPOST_BACKENDS_EMULATED_MEMORY_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "prepost/backends/nic/decode.h"
#include "prepost/backends/nic/device.h"

namespace prepost::emulated {

/// What an access wants of a key.
enum class Use : uint8_t { kLocalRead, kLocalWrite, kRemoteRead, kRemoteWrite };

class MemoryTable {
 public:
  uint32_t Add(std::span<const std::byte> memory, nic::Access access);
  /// False when there is no such key.
  bool Remove(uint32_t key);
  /// The memory at [address, address + bytes), or null when `key` does not cover it for this use.
  std::byte* Find(uint32_t key, uint64_t address, uint64_t bytes, Use use) const;

 private:
  struct Region {
    std::byte* begin = nullptr;  // null: removed
    uint64_t bytes = 0;
    nic::Access access;
  };
  const Region* FindRegion(uint32_t key) const;

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
