// SPDX-License-Identifier: Apache-2.0
//
// Transfers with their rounds, written down as a plan without credits or windows. Ops stand in the
// plan's one global order of messages: by round, then (from, to, block), so that an op's id gives
// its place in that order at every node; but a node's combines stand last in their round, as what
// it sends in that round is what it had before. Channels are numbered by (from, to).
//
// TransferWriter writes node by node, for a schedule (compiler/schedules/schedule_player.h).
// Whoever knows all transfers before the plan has it from PlanTransfers: a GOAL text
// (exchange/goal_reader.h), a file of rounds (compiler/rounds/), a schedule of another collective
// than a multicast.
#ifndef PREPOST_IR_PLANNED_TRANSFERS_H_
#define PREPOST_IR_PLANNED_TRANSFERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/status.h"
#include "ir/collective.h"
#include "ir/plan.h"

namespace prepost {

/// Blocks on their way from one node to another.
struct PlannedTransfer {
  uint32_t round = 0;
  uint32_t from = 0;
  uint32_t to = 0;
  uint32_t block = 0;
  uint32_t count = 1;
  bool combines = false;  ///< the receiver combines them with what it has

  friend bool operator==(const PlannedTransfer&, const PlannedTransfer&) = default;
};

/// Blocks of all transfers together that a text may ask for, beside the first of each: they are
/// gone through one by one, and a short text can name many. Enough for an allreduce by halving
/// among 2048 nodes.
inline constexpr uint64_t kRangeBlocksMax = uint64_t{1} << 23;

/// More parts than a plan may have blocks, in `name`. `node`: what the text calls a node.
Status CheckParts(CollectiveKind kind, uint32_t nodes, const char* node, const std::string& name);

struct RoundPorts {
  uint32_t ports = 1;  ///< the most messages that a node sends, or receives, in a round
  /// The first transfer, in the order given, by which there are so many; none with one port.
  std::optional<uint32_t> busiest;
};
/// Cost: sorting the transfers by their rounds, unless they are sorted.
RoundPorts PortsOf(std::span<const PlannedTransfer> transfers);

/// The channels of blocks that are met, each once.
class ChannelList {
 public:
  void Add(const Channel& channel);
  /// By (from, to).
  std::vector<Channel> Take() &&;

 private:
  void Compact();

  std::vector<Channel> channels_;
  size_t compact_at_ = 4096;
};

/// Writes one program after the other.
class TransferWriter {
 public:
  /// `header.rounds` is found here; ready mode and send window become those of no rules.
  /// `channels` are by (from, to). `transfers` are expected.
  TransferWriter(PlanHeader header, std::vector<Channel> channels, size_t transfers);

  void BeginProgram(uint32_t node);
  /// The node's end of `transfer`. A channel that is not listed is put behind the others. Needs
  /// nodes in range, and `after` sorted.
  OpId Add(const PlannedTransfer& transfer, std::span<const OpId> after = {});
  Plan Build() && { return std::move(builder_).Build(); }

 private:
  PlanBuilder builder_;
  uint32_t node_ = 0;
  const std::vector<Channel> channels_;
  std::vector<uint32_t> channel_begin_;  // node -> the first channel from it
  std::map<Channel, ChannelId> unlisted_;
};

/// The transfers, by index, of which the sender of `transfer` must have completed its end before it
/// sends; each comes before `transfer` in the plan's order. Good until the next call.
using WaitsOfTransfer = std::function<std::span<const uint32_t>(uint32_t transfer)>;

struct TransferPlan {
  Plan plan;  ///< not verified; ready barrier, no credits, no send window
  std::vector<uint32_t> transfer_of_op;  ///< of each of plan.ops()
};

/// `header` as TransferWriter has it. Needs nodes in range, and fewer than 2^31 transfers. Cost:
/// sorting the transfers, unless they are sorted.
TransferPlan PlanTransfers(PlanHeader header, std::span<const PlannedTransfer> transfers,
                           const WaitsOfTransfer& waits_of);

/// The same for what one end of `transfer` waits for besides: its send, or the combine of what
/// comes.
using WaitsOfEnd = std::function<std::span<const uint32_t>(uint32_t transfer, bool is_send)>;

/// The same; each op waits for what the order of ids asks for: a send for the last receives of its
/// blocks before it, a combine for these and, unless the message is empty, for the sends since; and
/// for what `waits_of` gives, if there is one. Receives have no scratch buffers yet. Needs blocks
/// in range.
TransferPlan PlanInOrder(PlanHeader header, std::span<const PlannedTransfer> transfers,
                         const WaitsOfEnd& waits_of = {});

}  // namespace prepost

#endif  // PREPOST_IR_PLANNED_TRANSFERS_H_
