// SPDX-License-Identifier: Apache-2.0
//
// BlockStage: where a member puts blocks that peers on its machine are to have, in memory that they
// have mapped and may only read. A block is copied there once, however many get it, and each of
// them copies it out at about the same time, from a cache. That is faster than to copy it from the
// sender's own memory (memory_window.h), where the kernel looks up every page, and it is not
// permitted everywhere.
#ifndef PREPOST_RUNTIME_TRANSPORT_SHM_BLOCK_STAGE_H_
#define PREPOST_RUNTIME_TRANSPORT_SHM_BLOCK_STAGE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ir/base/status.h"
#include "runtime/base/mapping.h"
#include "runtime/transport/shm/handed_memory.h"

namespace prepost {

/// Used by one thread.
class BlockStage {
 public:
  static constexpr size_t kBlockBytesMax = size_t{256} << 10;
  /// So many blocks at once, at most. Those that were used last are used first.
  static constexpr uint32_t kPlaces = 40;

  /// Errors: as MakeHandedMemory().
  static Result<std::unique_ptr<BlockStage>> Make();

  int memory_fd() const { return memory_.file.get(); }
  uint32_t free_places() const { return static_cast<uint32_t>(free_.size()); }

  /// Where `block`, of 1 to kBlockBytesMax bytes, is, for one more receiver; until all of them have
  /// it, its memory does not change. None: it is not there and there is no room, or no memory.
  std::optional<uint32_t> Add(std::span<const std::byte> block);
  bool Has(std::span<const std::byte> block) const { return Find(block).has_value(); }
  /// One receiver has what is at `place`.
  void Remove(uint32_t place);

 private:
  /// Whose bytes are there.
  struct Place {
    std::span<const std::byte> block;
    uint32_t receivers = 0;
    bool is_backed = false;  ///< it has had memory before
  };

  BlockStage();
  std::optional<uint32_t> Find(std::span<const std::byte> block) const;

  HandedMemory memory_;
  std::array<Place, kPlaces> places_;
  std::vector<uint32_t> free_;  ///< the last one is used next
};

/// The stage of a peer.
class PeerStage {
 public:
  /// What the peer has handed over. Errors: as MapHandedMemory().
  static Result<std::unique_ptr<PeerStage>> Take(const FileDescriptor& memory);

  /// `place` < BlockStage::kPlaces: kBlockBytesMax bytes, that the peer may change.
  std::span<const std::byte> At(uint32_t place) const {
    return std::span<const std::byte>(memory_.bytes())
        .subspan(place * BlockStage::kBlockBytesMax, BlockStage::kBlockBytesMax);
  }

 private:
  explicit PeerStage(Mapping memory) : memory_(std::move(memory)) {}

  Mapping memory_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRANSPORT_SHM_BLOCK_STAGE_H_
