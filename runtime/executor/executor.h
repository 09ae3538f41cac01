// SPDX-License-Identifier: Apache-2.0
//
// CpuExecutor: plays one node's program of a plan over an Endpoint. A send starts when the ops of
// its `after` have completed and the sends before it on its channel have started; a receive is
// posted when the program is armed or, where credits grant it, right before its credit. What has
// come for a combine is combined when the ops of its `after` have completed and the combines before
// it on its channel have. The executor reacts to completions and holds no order of its own.
#ifndef PREPOST_RUNTIME_EXECUTOR_EXECUTOR_H_
#define PREPOST_RUNTIME_EXECUTOR_EXECUTOR_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "ir/plan.h"
#include "runtime/base/sequence_ring.h"
#include "runtime/executor/block_places.h"
#include "runtime/executor/combine_blocks.h"
#include "runtime/executor/endpoint.h"
#include "runtime/executor/op_event.h"
#include "runtime/executor/playable.h"
#include "runtime/trace/report.h"

namespace prepost {

/// Where a node's blocks lie. Of a multicast, each at its offset in the message: what sends read
/// and what receives write; at the root `target` is empty, elsewhere both are the same memory. Of
/// another collective: the node's input and its output, of NodeBytesOf(); they may be the same
/// memory where both have the same parts and nothing of it is exchanged (BlockPlaces::exchanges()).
struct NodeMemory {
  std::span<const std::byte> source;
  std::span<std::byte> target;
  /// Of another collective: buffers, and what combines (the built-in operation, or the caller's).
  std::span<std::byte> scratch = {};
  CombineFunction combine = {};
  /// What copies blocks; empty: their bytes are copied.
  CopyFunction copy = {};
  /// Where blocks that lie apart are sent from and received, BlockPlaces::staging_bytes() of it;
  /// empty: memory that is allocated for each such op, which a NIC could not reach.
  std::span<std::byte> staging = {};
  /// Where its blocks lie, if that is known already; must outlive the executor. Null: it finds out.
  const BlockPlaces* places = nullptr;
};

/// Used by one thread: Prepare(), Arm(), then, when every node has armed, Start() and Poll() until
/// done() or an error.
class alignas(64) CpuExecutor {
 public:
  /// What `plan` names must outlive the executor, as must `endpoint`. `observer` may be empty; with
  /// it, the endpoint is asked about arrivals and wake-ups. What is kept of ops stands in `memory`.
  CpuExecutor(Playable plan, NodeId node, Endpoint& endpoint, OpObserver observer = {},
              std::pmr::memory_resource& memory = *std::pmr::new_delete_resource());

  /// Takes the first ops, as many as the look-ahead allows. All memory that is ever needed: linear
  /// in the look-ahead, which is all ops of a flat plan, and in the plan's channels.
  void Prepare(const NodeMemory& memory);
  /// Posts the receives that no credit grants, as far as they have been taken: with `ready` barrier
  /// and retry all, else those of the credits.
  void Arm();
  /// Starts the sends that wait for nothing.
  void Start();
  /// Waits for completions for up to `timeout` (negative: for ever) and starts what they make
  /// ready. Allocates nothing, takes no lock and makes no system call of its own. Errors: the
  /// endpoint's.
  Status Poll(std::chrono::milliseconds timeout);

  /// What is known of an op that is posted and not complete.
  struct PostedOp {
    ChannelId channel;
    uint32_t block = kNoBlock;
    uint64_t bytes = 0;  ///< of its blocks; 0 of a credit
    OpKind kind = OpKind::kSend;

    bool is_send() const { return kind == OpKind::kSend; }
    bool is_credit() const { return block == kNoBlock; }
  };
  PostedOp posted(OpId op) const {
    const Slot& slot = slots_[NumberOf(op)];
    return {.channel = slot.channel,
            .block = slot.block,
            .bytes = slot.is_credit() ? 0 : BytesOf(slot, op),
            .kind = slot.kind};
  }
  /// Every op has completed, and every peer has been notified.
  bool done() const { return all_completed() && endpoint_.quiet(); }
  /// The last Poll() was ended by the endpoint's wake-up source.
  bool woken() const { return woken_; }
  /// Counts so far; times are the caller's.
  NodeReport report() const;
  /// Rises whenever bytes have moved or ops have completed.
  uint64_t progress() const { return endpoint_.counters().bytes_moved + completions_; }
  /// For a run that stands still: up to `ops_max` open ops and what each waits for, as "op 4 (send
  /// 1>3:2) for ...; ...".
  std::string Waiting(size_t ops_max) const;

 private:
  static constexpr uint32_t kNone = 0xffffffff;
  enum class State : uint8_t { kWaiting, kStarted, kArrived, kCompleted };  ///< kArrived: a combine

  /// An op that has been taken and may be open.
  struct Slot {
    ChannelId channel;
    uint32_t block = kNoBlock;
    uint32_t grants = 0;
    uint32_t pending = 0;  ///< of a send or combine: open ops of `after`
    OpId successor;        ///< the first send that names it in its `after`, if has_successor
    /// In links_: the last of the others, whose next is the first of them. kNone: there are none.
    uint32_t last_link = kNone;
    OpId next;  ///< another op of its channel that has been taken, if has_next
    bool has_successor = false;
    bool has_next = false;
    OpKind kind = OpKind::kSend;
    State state = State::kWaiting;

    bool is_send() const { return kind == OpKind::kSend; }
    bool is_combine() const { return kind == OpKind::kCombine; }
    bool is_credit() const { return block == kNoBlock; }
  };
  static_assert(sizeof(Slot) == 32);  // two in a cache line: there are millions of them
  /// An entry of a ring of successors, or of the list of unused ones.
  struct Link {
    OpId op;
    uint32_t next = kNone;
  };
  /// The row of one channel's ops at this node.
  struct alignas(64) ChannelState {
    uint64_t last = 0;  ///< taken last, if is_used
    uint32_t granted_by =
        kNone;  ///< of a channel whose receives credits grant: that of the credits
    bool is_used = false;
    // On a channel of sends, which start one after the other; of combines, which combine so.
    bool has_unstarted = false;
    uint64_t unstarted = 0;  ///< the first that is taken and not started, if has_unstarted
    uint32_t early = 0;      ///< others after whose `after` all has completed
    // On a channel of credits: the receives that they grant.
    bool has_unposted = false;
    uint64_t granted = 0;
    uint64_t posted = 0;
    uint64_t unposted = 0;  ///< the first that is taken and not posted, if has_unposted
  };

  bool all_completed() const { return is_exhausted_ && begin_ == end_; }
  /// The number of an op that is in the window.
  uint64_t NumberOf(OpId id) const { return begin_ + (id.value - static_cast<uint32_t>(begin_)); }
  static OpId IdOf(uint64_t op) { return OpId(static_cast<uint32_t>(op)); }
  bool IsGranted(const Slot& slot) const {
    return !slot.is_send() && !slot.is_credit() && has_credits_;
  }

  void LinkGrants();
  void Take();
  void TakeOp();
  void AddSuccessor(Slot& before, uint64_t op);
  void JoinChannel(uint64_t op);
  void Release(uint64_t op);
  bool TakesTurn(uint64_t op);
  void StartNext(const Slot& started);
  void StartReady();
  void StartSend(uint64_t op);
  void PostRecv(uint64_t op);
  // Of collectives other than multicasts.
  uint64_t BytesOf(const Slot& slot, OpId op) const {
    return places_ != nullptr ? places_->PlaceOf(op.value).bytes : payload_.BlockSize(slot.block);
  }
  void CopyOwn();
  void Copy(std::byte* to, const std::byte* from, uint64_t bytes) const;
  std::byte* At(const BlockPlace& place) const;
  std::byte* Staged(OpId op);
  std::span<const std::byte> Gathered(OpId op);
  std::span<std::byte> Landing(OpId op);
  void Arrive(uint64_t op);
  void CombineOp(uint64_t op);
  void NextCombine(const Slot& combined);
  /// The channel that counts the grants of a receive.
  ChannelState& CreditsOf(const Slot& slot) {
    const uint32_t credits = channels_[slot.channel.index()].granted_by;
    PREPOST_CHECK(credits != kNone);
    return channels_[credits];
  }
  void PostGranted(ChannelState& credits);
  void Complete(OpId op);
  void Observe(uint64_t op, OpEvent::Kind kind) const {
    if (is_observed_) observer_({.node = node_, .op = IdOf(op), .kind = kind});
  }
  bool IsSuccessor(const Slot& before, OpId op) const;
  std::string WaitsFor(uint64_t op) const;

  // What is used for each completion comes first, and what is used together stands in a cache line:
  // thousands of executors may take turns.
  Endpoint& endpoint_;
  /// Ops are numbered as they come out of the stream. Those in [begin_, end_) are the window:
  /// before it all have completed.
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
  SequenceRing<Slot> slots_;
  std::pmr::vector<ChannelState>
      channels_;  ///< by channel; where they are stands in the first cache line
  uint64_t completions_ = 0;
  uint32_t ready_begin_ = 0;
  uint32_t ready_end_ = 0;
  SequenceRing<OpId> ready_;  ///< sends to start; each is here once
  const bool has_credits_;
  const bool is_observed_;
  bool is_exhausted_ = false;  ///< the stream
  bool started_ = false;
  bool woken_ = false;

  // Blocks and posts need these.
  const Payload payload_;
  const uint64_t element_bytes_;  ///< of what is combined
  NodeMemory memory_;
  uint64_t bytes_received_ = 0;

  uint64_t posts_ = 0;
  uint64_t posts_before_start_ = 0;
  std::pmr::vector<Link> links_;
  uint32_t unused_links_ = kNone;
  bool is_armed_ = false;
  const NodeId node_;
  /// Where blocks lie, of another collective than a multicast; null: each at its offset.
  const BlockPlaces* places_ = nullptr;
  std::unique_ptr<const BlockPlaces> own_places_;  ///< what places_ is, if it was not given
  /// Of ops whose blocks do not lie next to each other, while they are under way, without
  /// NodeMemory::staging.
  std::map<OpId, std::unique_ptr<std::byte[]>> staged_;
  const OpObserver observer_;
  const Playable plan_;
  const std::unique_ptr<OpStream> stream_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_EXECUTOR_EXECUTOR_H_
