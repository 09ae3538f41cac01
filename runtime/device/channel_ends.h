// SPDX-License-Identifier: Apache-2.0
//
// ChannelEnds: the ends of a plan's channels at one node. Devices that work by queues have one
// queue for each end: so the channel's messages go into its receives in their order, and what a
// queue completes is of that channel alone.
#ifndef PREPOST_RUNTIME_DEVICE_CHANNEL_ENDS_H_
#define PREPOST_RUNTIME_DEVICE_CHANNEL_ENDS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "ir/ids.h"
#include "ir/plan.h"
#include "runtime/executor/block_places.h"
#include "runtime/executor/executor.h"

namespace prepost {

struct ChannelEnd {
  ChannelId channel;
  NodeId peer;
  Lane lane = Lane::kBlocks;
  bool is_send = false;
  std::vector<OpId> ops;  ///< in channel order

  friend bool operator==(const ChannelEnd&, const ChannelEnd&) = default;
};

/// Of the node's program, in the order of their first ops; channels without ops have none.
std::vector<ChannelEnd> EndsOf(const Plan& plan, const Program& program);

inline constexpr MemoryRoom kMemoryRooms[] = {MemoryRoom::kInput, MemoryRoom::kOutput,
                                              MemoryRoom::kScratch, MemoryRoom::kStaging};
/// The bytes of a room; devices write to all but the input of another collective than a multicast.
std::span<const std::byte> BytesOf(const NodeMemory& memory, MemoryRoom room);

class ChannelEnds {
 public:
  /// `plan` must outlive them. `ends`: as EndsOf().
  ChannelEnds(const Plan& plan, NodeId node, std::vector<ChannelEnd> ends);
  ChannelEnds(const Plan& plan, NodeId node);

  NodeId node() const { return node_; }
  std::span<const ChannelEnd> all() const { return ends_; }
  uint32_t size() const { return static_cast<uint32_t>(ends_.size()); }
  const ChannelEnd& operator[](uint32_t end) const { return ends_[end]; }
  /// How many ops there are in all.
  uint64_t ops() const { return ops_.size(); }

  /// The end of an op, and its position there.
  struct Place {
    uint32_t end = 0;
    uint32_t position = 0;
  };
  Place PlaceOf(OpId op) const { return place_of_[op.index()]; }
  const Op& op(OpId op) const { return ops_[op.index()]; }
  /// Of the op's blocks; 0 for a credit.
  uint64_t BytesOf(OpId op) const { return PlaceInMemory(op).bytes; }
  /// In which room they lie next to each other, and where in it: of a multicast always in the
  /// input, which is the message.
  OpPlace PlaceInMemory(OpId op) const;
  /// The same as bytes of the node's memory, which has all rooms that there are, with `staging`.
  std::span<const std::byte> BytesIn(const NodeMemory& memory, OpId op) const;
  /// Whether anything lies there.
  bool Uses(MemoryRoom room) const { return places_ != nullptr || room == MemoryRoom::kInput; }

  /// "node 2 cannot send block 3 to node 4: WHY" (kRejected).
  Status Failure(OpId op, const std::string& why) const;

 private:
  const Plan& plan_;
  const NodeId node_;
  const std::vector<ChannelEnd> ends_;
  const std::span<const Op> ops_;
  std::vector<Place> place_of_;                // by op
  std::shared_ptr<const BlockPlaces> places_;  // of another collective than a multicast; else null
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_DEVICE_CHANNEL_ENDS_H_
