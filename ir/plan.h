// SPDX-License-Identifier: Apache-2.0
//
// Plan: one partially ordered program of sends and receives per node, and what the programs are
// about: a collective, in which what is received may be combined with what a node has. It is the
// contract between the compiler, the executors, the NIC lowering and the drawings; it says what is
// to happen and nothing about queues, addresses or hosts.
//
// A Plan may be wrong (a file can say anything): only Verify() (verify.h) decides. Accessors check
// their own indices only. All arrays are flat; an op's `after` list is a slice of one array (CSR).
// A Plan is a value: copy, compare, move.
#ifndef PREPOST_IR_PLAN_H_
#define PREPOST_IR_PLAN_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "ir/base/status.h"
#include "ir/collective.h"
#include "ir/combine.h"
#include "ir/ids.h"

namespace prepost {

/// The block of a credit: none. In JSON: null.
inline constexpr uint32_t kNoBlock = 0xffffffff;

/// What a channel carries. In files and on wires it is its number.
enum class Lane : uint8_t {
  kBlocks = 0,
  kCredits = 1  ///< of blocks in the opposite direction
};
constexpr uint32_t NumberOf(Lane lane) { return static_cast<uint32_t>(lane); }
/// The lane of a number; none of one that is no lane's.
constexpr std::optional<Lane> LaneOf(uint64_t number) {
  return number > 1 ? std::nullopt : std::optional(static_cast<Lane>(number));
}

/// Limits on what a reader accepts, so that a file cannot ask for unbounded work. Nodes and blocks
/// also fit 32 bits.
inline constexpr uint32_t kNodesMax = 1u << 20;
inline constexpr uint32_t kBlocksMax = 1u << 24;  ///< the immediate of a block has 24 bits for it
inline constexpr uint64_t kMessageBytesMax = uint64_t{1} << 62;

/// kCombine is a receive, after which own := own op received.
enum class OpKind : uint8_t { kSend, kRecv, kCombine };

/// What receives into no scratch buffer has; there are fewer.
inline constexpr uint16_t kNoScratch = 0xffff;

/// One send or receive at one node. `block == kNoBlock` is a credit: zero bytes, on a channel of
/// credits, from receiver to sender.
struct Op {
  ChannelId channel;
  uint32_t block = kNoBlock;
  uint32_t count = 1;  ///< consecutive blocks, from `block` on, in one message
  /// Step in the ideal one-port schedule; bounds and drawings only, never correctness.
  uint32_t round = 0;
  uint32_t grants = 0;  ///< credit sends: how many further receives of the reverse channel of
                        ///< blocks are posted; else 0
  /// Slice of Plan's after array: [after_begin, after_begin + after_count).
  uint32_t after_begin = 0;
  uint32_t after_count = 0;
  /// Where receives put what has no other place: block `block + i` into the node's scratch buffer
  /// `scratch + i`.
  uint16_t scratch = kNoScratch;
  OpKind kind = OpKind::kSend;

  bool is_send() const { return kind == OpKind::kSend; }
  bool is_combine() const { return kind == OpKind::kCombine; }
  bool is_credit() const { return block == kNoBlock; }
  /// Whether it may wait for other ops: all but plain receives do.
  bool may_wait() const { return kind != OpKind::kRecv; }
};
static_assert(std::is_trivially_copyable_v<Op> && sizeof(Op) == 32);

/// Ordered, reliable, one-way. The i-th send on it matches the i-th receive on it, both in id
/// order. Its ends and its lane are its name, which no other channel of the plan has. Fields behind
/// them are attributes, which say how it is used: <=> compares names, == attributes as well.
struct Channel {
  NodeId from;
  NodeId to;
  Lane lane = Lane::kBlocks;
  uint32_t fabric = 0;  ///< over which network, where nodes share several

  bool carries_credits() const { return lane == Lane::kCredits; }

  friend auto operator<=>(const Channel& a, const Channel& b) {
    return std::tie(a.from, a.to, a.lane) <=> std::tie(b.from, b.to, b.lane);
  }
  friend bool operator==(const Channel&, const Channel&) = default;
};

/// One node's ops: Plan::ops()[op_begin .. op_begin + op_count); OpId is the position within.
struct Program {
  NodeId node;
  uint32_t op_begin = 0;
  uint32_t op_count = 0;
};

/// What a collective moves, cut into blocks: "message" in files. Of a part's blocks, block b covers
/// its bytes [b * block_bytes, min((b + 1) * block_bytes, bytes)). Parts may have sizes of their
/// own: each has as many blocks as the largest, of which the last ones may be empty.
struct Payload {
  uint64_t bytes = 0;  ///< of a part, of the largest
  uint64_t block_bytes = 1;
  uint32_t blocks = 1;  ///< parts * max(1, ceil(bytes / block_bytes)); the verifier checks it
  uint32_t parts = 1;   ///< PartsOf()
  std::vector<uint64_t> part_bytes = {};  ///< of each part, unless all have `bytes`: then empty

  friend bool operator==(const Payload&, const Payload&) = default;

  bool is_uneven() const { return !part_bytes.empty(); }
  /// Bytes of a part. Needs part < parts.
  uint64_t PartSize(uint32_t part) const { return is_uneven() ? part_bytes[part] : bytes; }
  /// Of all parts together; needs what can be counted (CheckMemory()).
  uint64_t AllBytes() const;
  /// Bytes of the largest block.
  uint64_t LargestBlock() const { return std::min(bytes, block_bytes); }

  /// Bytes of block b, 0 for the one block of an empty part. Needs b < blocks.
  uint64_t BlockSize(uint32_t b) const;
  /// Bytes of `count` blocks from `first` on; 0 of kNoBlock.
  uint64_t RangeSize(uint32_t first, uint32_t count) const;
  /// Where block b begins in its part; an empty one behind a part's end is at that end.
  uint64_t BlockOffset(uint32_t b) const {
    const uint64_t begin = (parts == 1 ? b : b % (blocks / parts)) * block_bytes;
    return is_uneven() ? std::min(begin, PartSize(b / (blocks / parts))) : begin;
  }
};

/// How a sender knows that its target has posted the receive (RDMC's ready_for_block).
enum class ReadyMode : uint8_t {
  kBarrier,  ///< all receives are posted before any send anywhere; no credits
  kChannel,  ///< one credit per channel grants all of its receives
  kWindow,   ///< one credit per block; at most `window` ungranted-and-open receives per node
  kRetry     ///< no credits; a send that finds no receive is retried
};

struct Ready {
  ReadyMode mode = ReadyMode::kBarrier;
  uint32_t window = 0;  ///< kWindow: >= 1; else 0

  /// Whether plans of this mode carry credits.
  bool has_credits() const { return mode == ReadyMode::kChannel || mode == ReadyMode::kWindow; }

  friend bool operator==(const Ready&, const Ready&) = default;
};

/// Everything about a plan that is not its channels and ops.
struct PlanHeader {
  std::string generator;
  Collective collective;
  std::string algorithm;
  uint32_t nodes = 1;
  Payload payload;
  Combine combine;       ///< of reduce, allreduce, reduce_scatter, barrier
  uint32_t scratch = 0;  ///< buffers of block_bytes at each node, for what has no other place there
  Ready ready;
  std::optional<uint32_t> send_window;  ///< none: unlimited
  uint32_t rounds = 0;
  uint32_t ports = 1;  ///< sends, and receives, that a node may have in one round

  Roles roles() const { return {collective, nodes, payload.blocks}; }

  friend bool operator==(const PlanHeader&, const PlanHeader&) = default;
};

class Plan {
 public:
  const PlanHeader& header() const { return header_; }
  /// The plan with another header.
  Plan WithHeader(PlanHeader header) const;

  std::span<const Channel> channels() const { return channels_; }
  std::span<const Program> programs() const { return programs_; }
  /// All ops of all programs, program after program.
  std::span<const Op> ops() const { return ops_; }
  /// The ops of one program; OpId is the index into it.
  std::span<const Op> ops(const Program& program) const {
    return std::span(ops_).subspan(program.op_begin, program.op_count);
  }
  /// Ops of the same node that must have completed before `op` starts.
  std::span<const OpId> after(const Op& op) const {
    return std::span(after_).subspan(op.after_begin, op.after_count);
  }
  size_t after_count() const { return after_.size(); }

  /// Same header, channels, programs, ops and after lists (wherever those lie in the array).
  friend bool operator==(const Plan& a, const Plan& b);

 private:
  friend class PlanBuilder;
  PlanHeader header_;
  std::vector<Channel> channels_;
  std::vector<Program> programs_;
  std::vector<Op> ops_;
  std::vector<OpId> after_;
};
static_assert(std::is_nothrow_move_constructible_v<Plan>);  // so that vectors of plans move them

/// Makes a Plan program by program, op by op. It copies its arguments and checks nothing, so that
/// tests and readers can build wrong plans too; only sizes that do not fit 32 bits are refused
/// (CHECK; readers bound their input before).
class PlanBuilder {
 public:
  explicit PlanBuilder(PlanHeader header);

  PlanHeader& header() { return plan_.header_; }
  void Reserve(size_t ops, size_t afters);
  ChannelId AddChannel(Channel channel);
  /// Ops added from now on belong to `node`.
  void BeginProgram(NodeId node);
  /// Changes the node of the program that was begun last.
  void SetNode(NodeId node);
  /// `op.after_begin` and `op.after_count` are set here. Needs a program to have begun.
  OpId AddOp(Op op, std::span<const OpId> after = {});
  Plan Build() &&;

 private:
  Plan plan_;
};

/// The words of the plan file for an enumerator, e.g. "send", "window".
const char* Name(OpKind kind);
const char* Name(ReadyMode mode);
/// "blocks", "credits".
const char* Name(Lane lane);
/// "window=1", "barrier", ...
std::string ToString(const Ready& ready);

/// With parts * max(1, ceil(bytes / block_bytes)) blocks, if they are at most kBlocksMax. Errors:
/// at /bytes, /block_bytes.
Result<Payload> MakePayload(uint64_t bytes, uint64_t block_bytes, uint64_t parts = 1);
/// The same of parts with sizes of their own, one at least; of equal ones it is that of their size.
/// Errors: also at /part_bytes/P.
Result<Payload> MakePayload(std::vector<uint64_t> part_bytes, uint64_t block_bytes);

/// Whether the memory of a collective other than a multicast can be counted: all inputs, all
/// outputs of a node and its scratch buffers are kMessageBytesMax each at most; a barrier carries
/// nothing. Errors: at /bytes, /scratch.
Status CheckMemory(const Collective& collective, uint32_t nodes, const Payload& payload,
                   uint64_t scratch);

/// Whether it has nothing but what plans of multicasts between their members have: no helpers, no
/// ranges, no scratch, one fabric.
bool IsPlainMulticast(const PlanHeader& header);
bool IsPlainMulticast(const Plan& plan);
/// For whoever takes nothing else. Errors (kRejected): what the plan has besides.
Status ExpectPlainMulticast(const Plan& plan);

/// One line per op, for people and goldens: "  op 3 send 2>5:1 round 4 after 0,2"; credits as
/// "credit 5>2 grants 1". Works on wrong plans too.
std::string Dump(const Plan& plan);

/// "node 2 op 3 (send 2>5:1)" for messages; `node` and `op` may be out of range.
std::string Describe(const Plan& plan, const Program& program, OpId op);
/// The same of an op that is in no plan; `block` is kNoBlock for a credit.
std::string Describe(NodeId node, uint64_t op, OpKind kind, const Channel& channel, uint32_t block);

}  // namespace prepost

#endif  // PREPOST_IR_PLAN_H_
