// SPDX-License-Identifier: Apache-2.0
//
// RolledPlan: a plan for messages of any size. What a node does repeats while the message is long,
// so that a program is a few segments, each a period of slots, whose places and blocks are linear
// in the number of blocks k. For a given k, RolledRounds says what a node does in each round; the
// compiler's Unroll() makes the flat plan of it.
//
// A node's slots name its peers, not channels, so that a program says all about its node and can be
// made and read alone. Credits, windows and `after` are implied: a send waits for its block, and
// the header's ready mode and send window are applied when the plan is unrolled or played.
#ifndef PREPOST_IR_ROLLED_ROLLED_PLAN_H_
#define PREPOST_IR_ROLLED_ROLLED_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "ir/plan.h"

namespace prepost {

/// floor((per_block * k + constant) / divisor) of k blocks.
struct LinearInBlocks {
  int64_t per_block = 0;
  int64_t constant = 0;
  int64_t divisor = 1;  ///< >= 1

  /// Needs |per_block|, |constant| and divisor within kLinearMax and k within kBlocksMax.
  int64_t At(uint32_t blocks) const;

  friend bool operator==(const LinearInBlocks&, const LinearInBlocks&) = default;
};
/// "2k - 3", "(k + 1) / 2".
std::string ToString(const LinearInBlocks& linear);

/// Limits of what a reader accepts, so that nothing overflows: see LinearInBlocks::At().
inline constexpr int64_t kLinearMax = int64_t{1} << 32;
inline constexpr uint32_t kPeriodMax = 1u << 16;  ///< slots of one segment
inline constexpr uint32_t kSegmentsMax = 1u
                                         << 20;  ///< of one node; a root of `sequential` needs n-1

/// One end of a transfer, in one slot of a period.
struct RolledTransfer {
  NodeId peer;
  LinearInBlocks offset;  ///< c: in round t the block is floor((t + c) / rounds_per_block)

  friend bool operator==(const RolledTransfer&, const RolledTransfer&) = default;
};

/// What a node does in one round of a period.
struct RolledSlot {
  std::optional<RolledTransfer> send;
  std::optional<RolledTransfer> recv;

  friend bool operator==(const RolledSlot&, const RolledSlot&) = default;
};

/// Rounds [from, to), in which round t plays slot (t + phase) mod slots.size(). A block below 0 is
/// no transfer; one above the last is the last if `clamps`, else no transfer.
struct Segment {
  LinearInBlocks from;
  LinearInBlocks to;
  LinearInBlocks phase;
  uint32_t rounds_per_block = 1;  ///< divides slots.size(): a stream that runs at part of the rate
  bool clamps = false;
  uint32_t blocks_min = 1;  ///< the segment is there for k in [blocks_min, blocks_max]
  uint32_t blocks_max = kBlocksMax;
  std::vector<RolledSlot> slots;  ///< one period, not empty

  friend bool operator==(const Segment&, const Segment&) = default;
};

/// Segments of one node, which do not overlap for any k.
struct RolledProgram {
  NodeId node;
  std::vector<Segment> segments;

  friend bool operator==(const RolledProgram&, const RolledProgram&) = default;
};

/// For every message size. `programs` has all nodes' in order, or only some (one node's file).
struct RolledPlan {
  /// Of the flat plans. What depends on the size stays as it is in an empty header: payload.bytes
  /// and .blocks, rounds, ports.
  PlanHeader header;
  /// header.ready is for k >= this; fewer blocks need no credits: barrier.
  uint32_t ready_blocks_min = 1;
  /// header.send_window is for k >= this; with fewer blocks there is none.
  uint32_t send_window_blocks_min = 1;
  LinearInBlocks rounds;  ///< at most; a flat plan has its own number
  std::vector<RolledProgram> programs;

  /// `rounds` At(blocks), within 32 bits.
  uint32_t RoundsFor(uint32_t blocks) const;
  /// The header of the flat plan for `bytes`; its rounds are RoundsFor(). Errors: as MakePayload().
  Result<PlanHeader> HeaderFor(uint64_t bytes) const;

  friend bool operator==(const RolledPlan&, const RolledPlan&) = default;
};

/// For people and goldens: a line per segment and slot, t the round and k the blocks.
std::string Dump(const RolledPlan& plan);

/// What a node sends or receives in a round.
struct RoundTransfer {
  NodeId peer;
  uint32_t block = 0;

  friend bool operator==(const RoundTransfer&, const RoundTransfer&) = default;
};

/// All that a node sends to, or receives from, one peer.
struct PeerTransfers {
  NodeId peer;
  bool outgoing = false;
  uint64_t blocks = 0;  ///< at least 1

  friend auto operator<=>(const PeerTransfers&, const PeerTransfers&) = default;
};

/// Rounds that are gone through for one file at most, so that a small one cannot ask for unbounded
/// work.
inline constexpr uint64_t kActiveRoundsMax = uint64_t{1} << 33;

/// A program for k blocks, asked round by round: O(log segments) each.
class RolledRounds {
 public:
  /// `program` is not owned. Needs 1 <= blocks <= kBlocksMax and a program that CheckRolled()
  /// accepts.
  RolledRounds(const RolledProgram& program, uint32_t blocks);

  /// From the round of the first transfer to behind that of the last; none: 0, 0.
  uint32_t begin() const { return begin_; }
  uint32_t end() const { return end_; }
  /// The first round from `round` on in which there may be a transfer; end() if there is none.
  uint32_t Next(uint32_t round) const;
  /// How many rounds Next() visits, to the end: those that lie between the first transfer of some
  /// slot and its last.
  uint64_t active() const { return active_; }
  /// Whether they can be gone through, and be a part of a plan of `rounds` rounds: segments do not
  /// overlap, no peer gets or gives more than all blocks, no transfer is behind the last round.
  /// O(segments and slots). Errors have no place.
  Status Check(uint32_t rounds) const;
  /// Whether two segments play in one round, in which case one of them is not heard.
  bool overlaps() const { return overlaps_; }
  std::optional<RoundTransfer> Outgoing(uint32_t round) const;
  std::optional<RoundTransfer> Incoming(uint32_t round) const;
  /// Where the program says what is sent (`outgoing`) or received in `round`: a JSON pointer below
  /// the program's, "/segments/1/slots/0/send"; empty where there is no segment.
  std::string PlaceOf(uint32_t round, bool outgoing) const;
  /// Transfers of all rounds, by peer, incoming first. O(segments and slots), however many rounds.
  std::vector<PeerTransfers> Totals() const;

 private:
  struct Live {
    int64_t from;
    int64_t to;
    int64_t phase;  // 0 .. period - 1
    const Segment* segment;
    std::vector<int64_t> send_offset, recv_offset;  // by slot
  };
  const Live* At(uint32_t round) const;
  size_t SlotOf(const Live& live, uint32_t round) const;
  /// The rounds first, first + period, ... of a slot's transfer.
  struct Turns {
    int64_t first = 0;
    uint64_t count = 0;
  };
  /// Rounds [from, to).
  struct Stretch {
    int64_t from;
    int64_t to;
  };
  Turns TurnsOf(const Live& live, size_t slot, int64_t offset) const;
  void FindStretches();
  std::optional<RoundTransfer> Resolve(const Live& live,
                                       const std::optional<RolledTransfer>& transfer,
                                       int64_t offset, uint32_t round) const;

  const RolledProgram* program_;
  int64_t last_block_;
  uint64_t active_ = 0;
  uint32_t begin_ = 0;
  uint32_t end_ = 0;
  bool overlaps_ = false;
  std::vector<Live> live_;          // not empty ones, by round
  std::vector<Stretch> stretches_;  // from each slot's first transfer to its last, apart, rising
};

/// The form alone: limits, nodes in range and not doubled, no transfer with itself, slots, numbers.
/// `where` in the Status is a JSON pointer. Whether the plan is right is for the verifier.
Status CheckRolled(const RolledPlan& plan);

}  // namespace prepost

#endif  // PREPOST_IR_ROLLED_ROLLED_PLAN_H_
