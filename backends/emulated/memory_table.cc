// SPDX-License-Identifier: Apache-2.0
#include "backends/emulated/memory_table.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace prepost::emulated {
namespace {

// The low byte of a key, as drivers set it: keys never look like small numbers or like
// kInvalidLkey.
constexpr uint32_t kKeyTag = 0x5a;

bool Allows(const nic::Access& access, Use use) {
  switch (use) {
    case Use::kLocalRead:
      return true;
    case Use::kLocalWrite:
      return access.local_write;
    case Use::kRemoteRead:
      return access.remote_read;
    case Use::kRemoteWrite:
      return access.remote_write;
    case Use::kRemoteAtomic:
      return access.remote_atomic;
  }
  return false;
}

/// Walks the pieces of one side from an offset on.
class PieceWalk {
 public:
  PieceWalk(const Side& side, uint64_t offset) : side_(side), offset_(offset) { Settle(); }

  bool at_end() const { return index_ == side_.pieces.size(); }
  /// Needs !at_end().
  uint64_t left_in_piece() const { return side_.pieces[index_].bytes - offset_; }
  std::byte* Take(uint64_t bytes) {
    const nic::DataPiece& piece = side_.pieces[index_];
    std::byte* at = side_.memory.Find(piece.lkey, piece.address + offset_, bytes, side_.use);
    offset_ += bytes;
    Settle();
    return at;
  }

 private:
  void Settle() {
    while (index_ < side_.pieces.size() && offset_ >= side_.pieces[index_].bytes) {
      offset_ -= side_.pieces[index_++].bytes;
    }
  }

  const Side& side_;
  size_t index_ = 0;
  uint64_t offset_;
};

}  // namespace

uint32_t MemoryTable::Add(std::span<const std::byte> memory, nic::Access access) {
  // Only regions that allow writing are ever written.
  Region& region = regions_.emplace_back(Region{.begin = const_cast<std::byte*>(memory.data()),
                                                .bytes = memory.size(),
                                                .access = access,
                                                .has_bytes = has_bytes_,
                                                .block_bytes = block_bytes_});
  if (block_bytes_ != 0) {
    region.tags.resize((region.bytes - 1) / block_bytes_ + 1, kNoTag);
    region.first_tag = tags_->first;
    tags_->end = std::max(tags_->end, tags_->Of(region.tags.size()));
    if (!access.local_write) std::iota(region.tags.begin(), region.tags.end(), region.first_tag);
  }
  return static_cast<uint32_t>(regions_.size()) << 8 | kKeyTag;
}

const MemoryTable::Region* MemoryTable::FindRegion(uint32_t key) const {
  const size_t position = (key >> 8) - size_t{1};
  if ((key & 0xff) != kKeyTag || position >= regions_.size()) return nullptr;
  return regions_[position].begin == nullptr ? nullptr : &regions_[position];
}

bool MemoryTable::Remove(uint32_t key) {
  const Region* region = FindRegion(key);
  if (region == nullptr) return false;
  regions_[static_cast<size_t>(region - regions_.data())] = {};
  return true;
}

std::byte* MemoryTable::Find(uint32_t key, uint64_t address, uint64_t bytes, Use use) const {
  const Region* region = FindRegion(key);
  if (region == nullptr) return nullptr;
  const uint64_t begin = reinterpret_cast<uintptr_t>(region->begin);
  if (address < begin || bytes > region->bytes || address - begin > region->bytes - bytes)
    return nullptr;
  return Allows(region->access, use) ? region->begin + (address - begin) : nullptr;
}

TagPlace MemoryTable::FindTag(const nic::DataPiece& piece, Use use) const {
  if (Find(piece.lkey, piece.address, piece.bytes, use) == nullptr) return {};
  const Region& region = *FindRegion(piece.lkey);
  if (region.block_bytes == 0) return {.is_untold = !region.has_bytes};
  const uint64_t offset = piece.address - reinterpret_cast<uintptr_t>(region.begin);
  const uint64_t length = std::min(region.block_bytes, region.bytes - offset);
  if (offset % region.block_bytes != 0 || piece.bytes != length) return {};
  const uint64_t block = offset / region.block_bytes;
  return {.tag = &region.tags[block],
          .block = block,
          .right = region.first_tag + static_cast<uint32_t>(block),
          .blocks = region.tags.size()};
}

std::optional<uint64_t> MemoryTable::MissingBlock() const {
  for (const Region& region : regions_) {
    const auto missing = std::ranges::find(region.tags, kNoTag);
    if (missing != region.tags.end()) return missing - region.tags.begin();
  }
  return std::nullopt;
}

CopyOutcome Copy(const Side& source, const Side& target, uint64_t offset, uint64_t bytes) {
  if (bytes == 0) return CopyOutcome::kDone;
  PieceWalk from(source, offset);
  PieceWalk to(target, offset);
  while (bytes != 0) {
    if (from.at_end()) return CopyOutcome::kSourceRefused;
    if (to.at_end()) return CopyOutcome::kTargetRefused;
    const uint64_t run = std::min({bytes, from.left_in_piece(), to.left_in_piece()});
    const std::byte* read = from.Take(run);
    if (read == nullptr) return CopyOutcome::kSourceRefused;
    std::byte* write = to.Take(run);
    if (write == nullptr) return CopyOutcome::kTargetRefused;
    std::memmove(write, read, run);
    bytes -= run;
  }
  return CopyOutcome::kDone;
}

}  // namespace prepost::emulated
