// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/shm/block_stage.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace prepost {
namespace {

constexpr uint64_t kStageBytes = uint64_t{BlockStage::kPlaces} * BlockStage::kBlockBytesMax;

}  // namespace

BlockStage::BlockStage() {
  for (uint32_t place = kPlaces; place > 0; --place) free_.push_back(place - 1);
}

Result<std::unique_ptr<BlockStage>> BlockStage::Make() {
  std::unique_ptr<BlockStage> stage(new BlockStage);
  Result<HandedMemory> memory =
      MakeHandedMemory("prepost:blocks", kStageBytes, /*is_backed=*/false);
  if (!memory.ok()) return memory.status();
  stage->memory_ = *std::move(memory);
  return stage;
}

std::optional<uint32_t> BlockStage::Find(std::span<const std::byte> block) const {
  for (uint32_t place = 0; place < kPlaces; ++place) {
    const Place& it = places_[place];
    if (it.receivers > 0 && it.block.data() == block.data() && it.block.size() == block.size())
      return place;
  }
  return std::nullopt;
}

std::optional<uint32_t> BlockStage::Add(std::span<const std::byte> block) {
  PREPOST_CHECK(!block.empty() && block.size() <= kBlockBytesMax);
  if (const std::optional<uint32_t> found = Find(block)) {
    ++places_[*found].receivers;
    return found;
  }
  if (free_.empty()) return std::nullopt;
  const uint32_t number = free_.back();
  Place& place = places_[number];
  const uint64_t offset = number * kBlockBytesMax;
  // Where there is no memory for it, writing to it would be a SIGBUS.
  if (!place.is_backed && fallocate(memory_.file.get(), 0, static_cast<off_t>(offset),
                                    static_cast<off_t>(kBlockBytesMax)) != 0)
    return std::nullopt;
  free_.pop_back();
  place = {.block = block, .receivers = 1, .is_backed = true};
  std::memcpy(memory_.memory.bytes().data() + offset, block.data(), block.size());
  return number;
}

void BlockStage::Remove(uint32_t place) {
  PREPOST_CHECK(place < kPlaces && places_[place].receivers > 0);
  if (--places_[place].receivers == 0) free_.push_back(place);
}

Result<std::unique_ptr<PeerStage>> PeerStage::Take(const FileDescriptor& memory) {
  Result<Mapping> mapped =
      MapHandedMemory(memory, [](uint64_t bytes) { return bytes == kStageBytes; });
  if (!mapped.ok()) return mapped.status();
  return std::unique_ptr<PeerStage>(new PeerStage(*std::move(mapped)));
}

}  // namespace prepost
