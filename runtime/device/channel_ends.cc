// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/channel_ends.h"

#include <fmt/format.h>

#include <unordered_map>
#include <utility>

#include "runtime/executor/program.h"

namespace prepost {

std::vector<ChannelEnd> EndsOf(const Plan& plan, const Program& program) {
  std::vector<ChannelEnd> ends;
  std::unordered_map<ChannelId, size_t> end_of;
  const std::span<const Op> ops = plan.ops(program);
  for (size_t i = 0; i < ops.size(); ++i) {
    const auto [at, is_new] = end_of.try_emplace(ops[i].channel, ends.size());
    if (is_new) {
      const Channel& channel = plan.channels()[ops[i].channel.index()];
      ends.push_back({.channel = ops[i].channel,
                      .peer = ops[i].is_send() ? channel.to : channel.from,
                      .lane = channel.lane,
                      .is_send = ops[i].is_send()});
    }
    ends[at->second].ops.push_back(OpId::FromIndex(i));
  }
  return ends;
}

std::span<const std::byte> BytesOf(const NodeMemory& memory, MemoryRoom room) {
  switch (room) {
    case MemoryRoom::kInput:
      return memory.source;
    case MemoryRoom::kOutput:
      return memory.target;
    case MemoryRoom::kScratch:
      return memory.scratch;
    case MemoryRoom::kStaging:
      return memory.staging;
  }
  PREPOST_CHECK(false);
  return {};
}

ChannelEnds::ChannelEnds(const Plan& plan, NodeId node, std::vector<ChannelEnd> ends)
    : plan_(plan),
      node_(node),
      ends_(std::move(ends)),
      ops_(plan.ops(ProgramOf(plan, node))),
      place_of_(ops_.size()) {
  for (uint32_t end = 0; end < ends_.size(); ++end) {
    const std::vector<OpId>& ops = ends_[end].ops;
    for (uint32_t i = 0; i < ops.size(); ++i) place_of_[ops[i].index()] = {end, i};
  }
  if (plan.header().collective.kind != CollectiveKind::kMulticast)
    places_ = std::make_shared<const BlockPlaces>(plan.header(), node, ops_);
}

ChannelEnds::ChannelEnds(const Plan& plan, NodeId node)
    : ChannelEnds(plan, node, EndsOf(plan, ProgramOf(plan, node))) {}

OpPlace ChannelEnds::PlaceInMemory(OpId op) const {
  const Op& it = ops_[op.index()];
  if (it.is_credit()) return {};
  if (places_ != nullptr) return places_->PlaceOf(op.value);
  const Payload& whole = plan_.header().payload;
  return {.bytes = whole.BlockSize(it.block),
          .at = {MemoryRoom::kInput, whole.BlockOffset(it.block)}};
}

std::span<const std::byte> ChannelEnds::BytesIn(const NodeMemory& memory, OpId op) const {
  const OpPlace place = PlaceInMemory(op);
  if (place.bytes == 0) return {};
  const std::span<const std::byte> room = prepost::BytesOf(memory, place.at.room);
  PREPOST_CHECK(place.at.offset <= room.size() && place.bytes <= room.size() - place.at.offset);
  return room.subspan(place.at.offset, place.bytes);
}

Status ChannelEnds::Failure(OpId op, const std::string& why) const {
  const Op& it = ops_[op.index()];
  const ChannelEnd& end = ends_[place_of_[op.index()].end];
  return Rejected(fmt::format("node {} cannot {} {} {} node {}: {}", node_.value,
                              end.is_send ? "send" : "receive",
                              it.is_credit() ? "a credit" : fmt::format("block {}", it.block),
                              end.is_send ? "to" : "from", end.peer.value, why));
}

}  // namespace prepost
