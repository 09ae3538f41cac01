// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/block_places.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace prepost {
namespace {

/// Whether blocks lie next to each other, at the places that `place_of` says; where the first is.
template <typename PlaceOf>
std::optional<BlockPlace> StraightPlace(std::span<const BlockWork> works, PlaceOf place_of) {
  std::optional<BlockPlace> first;
  uint64_t bytes = 0;
  for (const BlockWork& work : works) {
    if (work.bytes == 0) continue;
    const BlockPlace& place = work.*place_of;
    if (!first) first = place;
    if (place != BlockPlace{first->room, first->offset + bytes}) return std::nullopt;
    bytes += work.bytes;
  }
  return first.value_or(BlockPlace{});
}

}  // namespace

RowPlaces::RowPlaces(const PartRow& row, const Payload& payload)
    : row_(row),
      payload_(&payload),
      blocks_per_part_(std::max(1u, payload.blocks / std::max(1u, payload.parts))) {
  if (!payload.is_uneven()) return;
  begins_.push_back(0);
  for (uint32_t i = 0; i < row.count; ++i)
    begins_.push_back(begins_.back() + payload.PartSize(row.At(i)));
}

uint64_t RowPlaces::OffsetOf(uint32_t block) const {
  const uint32_t place = row_.PlaceOf(block / blocks_per_part_);
  return (begins_.empty() ? place * payload_->bytes : begins_[place]) +
         payload_->BlockOffset(block);
}

uint64_t RowPlaces::bytes() const {
  return begins_.empty() ? row_.count * payload_->bytes : begins_.back();
}

BlockPlaces::BlockPlaces(const PlanHeader& header, NodeId node, std::span<const Op> ops) {
  const Payload& payload = header.payload;
  const Roles roles = header.roles();
  const PartRow input = roles.Contributed(node), output = roles.Wanted(node);
  const RowPlaces in_input(input, payload), in_output(output, payload);
  std::vector<std::optional<BlockPlace>> now(payload.blocks);  // block -> where it lies
  std::vector<bool> is_received(payload.blocks), is_sent(payload.blocks);
  const auto place_in_output = [&](uint32_t block) {
    return BlockPlace{MemoryRoom::kOutput, in_output.OffsetOf(block)};
  };
  begin_.push_back(0);
  for (const Op& op : ops) {
    for (uint32_t i = 0; !op.is_credit() && i < op.count; ++i) {
      const uint32_t block = op.block + i;
      BlockWork& work = work_.emplace_back();
      work.bytes = payload.BlockSize(block);
      std::optional<BlockPlace>& place = now[block];
      if (!place && input.Has(roles.PartOf(block)))
        place = {MemoryRoom::kInput, in_input.OffsetOf(block)};
      if (op.is_send() || op.is_combine()) work.reads = place.value_or(BlockPlace{});
      if (op.is_send()) is_sent[block] = true;
      exchanges_ |= op.is_combine() && !is_received[block] && is_sent[block];
      if (op.is_send()) continue;
      const BlockPlace buffer{MemoryRoom::kScratch,
                              (op.scratch + uint64_t{i}) * payload.block_bytes};
      const bool is_wanted = output.Has(roles.PartOf(block));
      const bool is_first = !is_received[block];
      is_received[block] = true;
      work.writes = is_wanted ? place_in_output(block) : is_first ? buffer : *place;
      work.lands = op.is_combine() ? buffer : work.writes;
      place = work.writes;
    }
    EndOp(op);
  }
  work_.shrink_to_fit();
  if (header.collective.kind == CollectiveKind::kMulticast) return;
  for (uint32_t i = 0; i < output.count; ++i) {
    if (!input.Has(output.At(i))) continue;
    for (uint32_t j = 0; j < roles.blocks_per_part(); ++j) {
      const uint32_t block = output.At(i) * roles.blocks_per_part() + j;
      if (is_received[block]) continue;
      copies_.push_back({.bytes = payload.BlockSize(block),
                         .input_offset = in_input.OffsetOf(block),
                         .output_offset = in_output.OffsetOf(block)});
    }
  }
}

BlockPlaces::BlockPlaces(const PlanHeader& header, NodeId node, std::span<const Op> ops,
                         const UnevenParts& parts) {
  const uint32_t members = header.roles().members();
  PREPOST_CHECK(header.payload.blocks == header.payload.parts);
  begin_.push_back(0);
  for (const Op& op : ops) {
    if (!op.is_credit()) {
      PREPOST_CHECK(op.count == 1);
      const UnevenParts::Part& part =
          op.is_send() ? parts.sent[op.block % members] : parts.received[op.block / members];
      const BlockPlace place{op.is_send() ? MemoryRoom::kInput : MemoryRoom::kOutput, part.offset};
      work_.push_back({.bytes = part.bytes, .reads = place, .lands = place, .writes = place});
    }
    EndOp(op);
  }
  copies_.push_back({.bytes = parts.sent[node.index()].bytes,
                     .input_offset = parts.sent[node.index()].offset,
                     .output_offset = parts.received[node.index()].offset});
}

/// All blocks of the op are in work_.
void BlockPlaces::EndOp(const Op& op) {
  const std::span<const BlockWork> works = std::span(work_).subspan(begin_.back());
  OpPlace& place = op_places_.emplace_back();
  for (const BlockWork& work : works) place.bytes += work.bytes;
  const std::optional<BlockPlace> straight =
      StraightPlace(works, op.is_send() ? &BlockWork::reads : &BlockWork::lands);
  place.at = straight.value_or(BlockPlace{MemoryRoom::kStaging, staging_bytes_});
  // What cannot be counted, nobody has memory for.
  if (!straight && __builtin_add_overflow(staging_bytes_, place.bytes, &staging_bytes_))
    staging_bytes_ = std::numeric_limits<uint64_t>::max();
  if (straight && !op.is_combine()) work_.resize(begin_.back());
  begin_.push_back(work_.size());
}

NodeBytes NodeBytesOf(const PlanHeader& header, NodeId node) {
  const Roles roles = header.roles();
  const bool has_output = roles.IsTarget(node);
  const Payload& payload = header.payload;
  return {.input = RowPlaces(roles.Contributed(node), payload).bytes(),
          .output = has_output ? RowPlaces(roles.Wanted(node), payload).bytes() : 0,
          .scratch = header.scratch * header.payload.block_bytes};
}

}  // namespace prepost
