// SPDX-License-Identifier: Apache-2.0
//
// Lowering of one node, in these walks over its ops and entries:
//   1. queues: one QP per (peer, lane) that some op uses, its receives in channel order (the i-th
//      gives CQE i), and loopback QPs: the masters, of which the last gives the final completion;
//   2. sends: for each send, in id order, its WAITs, one per op in `after`, then the send itself
//      (inline: on its own queue; managed: WAITs and a SEND_EN on the master, the send on its
//      queue). A WAIT still names the op that it waits for. WAIT is "producer counter has passed",
//      so one on the same queue for the same source with an equal or later completion makes a later
//      one redundant. SEND_ENs for one queue with no WAIT between them become one;
//   3. the end: a WAIT for the last completion of every queue and direction, and one signaled NOP,
//      the host's single completion;
//   4. rings: what does not fit is written half a ring at a time;
//   5. signals: which WQEs make a CQE: sends that some `after` names, the last WQE of every send
//      queue and of every part of it. Only now indices can be computed, since they count the
//      signaled WQEs before them;
//   6. completion queues, one per QP and direction that completes anything, and the WAITs' indices.
//
// Example, chain 0>1>2>3 with 2 blocks, node 1: QP 1<>0 receives blocks 0 and 1. Inline, the send
// queue of QP 1<>2 is
//   WAIT receives 0>1, CQE 0 / SEND_IMM block 0 / WAIT receives 0>1, CQE 1 /
//   SEND_IMM block 1 (signaled)
// and that of the loopback QP: WAIT receives 0>1, CQE 1 / WAIT sends 1>2, CQE 0 / NOP
// (signaled). Managed, the send queue of QP 1<>2 is SEND_IMM block 0 / SEND_IMM block 1 (signaled),
// and the master
//   WAIT receives 0>1, CQE 0 / SEND_EN QP 1<>2 up to 1 / WAIT receives 0>1, CQE 1 /
//   SEND_EN QP 1<>2 up to 2 / WAIT sends 1>2, CQE 0 / NOP (signaled).
#include "backends/nic/program/node_lowering.h"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/nic/program/pairing.h"

namespace prepost::nic {
namespace {

constexpr QpId kNoQp{0xffffffff};

/// Where an op's completion shows: CQE `index` of `cq`.
struct Completion {
  CqId cq;
  uint32_t index = 0;
};

/// The ring of a queue of `entries`, of which a device holds `at_once`. One written in parts is
/// smaller than what indices can tell apart: all of its entries are ahead of the consumer at once.
uint32_t RingOf(size_t entries, uint32_t at_once) {
  if (entries > at_once) return std::bit_floor(at_once);
  return std::bit_ceil(static_cast<uint32_t>(std::max<size_t>(entries, 1)));
}

class NodeLowering {
 public:
  NodeLowering(const Plan& plan, const Program& program, const LowerOptions& options)
      : plan_(plan),
        program_(program),
        options_(options),
        ops_(plan.ops(program)),
        qp_of_(ops_.size()),
        ordinals_(ops_.size()),
        completions_(ops_.size()) {
    out_.node = program.node;
  }

  NodeProgram Run() {
    MakeQueuePairs();
    MakeMasters();
    MakeReceives();
    MakeSends();
    MakeFinal();
    MakeRings();
    MakeSignals();
    MakeCompletionQueues();
    NumberCompletions();
    ResolveWaits();
    for (QueuePair& qp : out_.qps) qp.sends.shrink_to_fit();  // large programs are kept for long
    return std::move(out_);
  }

 private:
  /// What is known of a data queue while its entries are made.
  struct Queue {
    QpId master = kNoQp;
    QpId credits = kNoQp;  ///< of a queue of blocks: the same peer's queue of credits
    QpId blocks = kNoQp;   ///< of a queue of credits: the same peer's queue of blocks
    uint32_t sends = 0;    ///< that it will have
    uint32_t granted = 0;  ///< receives granted by the credits so far
    OpId last_send = kNoOp;
    OpId last_receive = kNoOp;
    size_t last_enable = 0;  ///< position on the master, plus one
  };

  bool is_managed() const { return options_.mode == LoweringMode::kManaged; }
  QueuePair& qp(QpId id) { return out_.qps[id.index()]; }
  QpId final_qp() const { return QpId::FromIndex(out_.qps.size() - 1); }

  void MakeQueuePairs() {
    const Pairing pairing = PairUp(plan_, program_);
    queues_.resize(pairing.pairs.size());
    for (size_t i = 0; i < pairing.pairs.size(); ++i) {
      const Pair& pair = pairing.pairs[i];
      QueuePair& made = out_.qps.emplace_back();
      made.peer = pair.peer;
      made.lane = pair.lane;
      made.managed = is_managed();
      made.sends.reserve(is_managed() ? pair.sends : 2 * size_t{pair.sends});
      made.receives.reserve(pair.receives);
      queues_[i].sends = pair.sends;
      // Pairs are sorted by peer and lane: the credits of a peer follow its blocks.
      if (pair.lane != Lane::kCredits || i == 0 || pairing.pairs[i - 1].peer != pair.peer) continue;
      queues_[i].blocks = QpId::FromIndex(i - 1);
      queues_[i - 1].credits = QpId::FromIndex(i);
    }
    for (size_t i = 0; i < ops_.size(); ++i) qp_of_[i] = QpId(pairing.of_ops[i]);
  }

  QpId AddLoopback() {
    QueuePair& loopback = out_.qps.emplace_back();
    loopback.peer = out_.node;
    loopback.loopback = true;
    return final_qp();
  }

  void MakeMasters() {
    if (!is_managed() || options_.masters == Masters::kNode) {
      const QpId master = AddLoopback();
      for (Queue& queue : queues_) queue.master = master;
    } else {
      std::unordered_map<uint32_t, QpId> of_lane;
      for (size_t i = 0; i < queues_.size(); ++i) {
        if (queues_[i].sends == 0) continue;
        const bool per_lane = options_.masters == Masters::kLane;
        const auto [known, fresh] = of_lane.try_emplace(
            per_lane ? NumberOf(out_.qps[i].lane) : static_cast<uint32_t>(i), kNoQp);
        if (fresh) known->second = AddLoopback();
        queues_[i].master = known->second;
      }
      AddLoopback();  // for the end
    }
    last_wait_.assign(out_.qps.size(), 0);
  }

  void MakeReceives() {
    const Payload& payload = plan_.header().payload;
    for (size_t i = 0; i < ops_.size(); ++i) {
      const Op& op = ops_[i];
      if (op.is_send()) continue;
      std::vector<ReceiveEntry>& receives = qp(qp_of_[i]).receives;
      ordinals_[i] = static_cast<uint32_t>(receives.size());
      ReceiveEntry entry{.block = op.block, .op = OpId::FromIndex(i)};
      if (!op.is_credit()) {
        entry.offset = payload.BlockOffset(op.block);
        entry.bytes = static_cast<uint32_t>(payload.BlockSize(op.block));
      }
      queues_[qp_of_[i].index()].last_receive = entry.op;
      receives.push_back(entry);
    }
  }

  /// On queue `on`, for the completion of `before`; until indices are known the entry holds the op.
  void AddWait(QpId on, OpId before, OpId op) {
    const bool is_send = ops_[before.index()].is_send();
    const uint64_t source = uint64_t{qp_of_[before.index()].value} << 1 | (is_send ? 1 : 0);
    const uint32_t ordinal = ordinals_[before.index()];
    const auto [passed, fresh] = passed_.try_emplace(uint64_t{on.value} << 33 | source, ordinal);
    if (!fresh && passed->second >= ordinal) return;
    passed->second = ordinal;
    qp(on).sends.push_back({.opcode = Opcode::kWait, .cqe_index = before.value, .op = op});
    last_wait_[on.index()] = qp(on).sends.size();
  }

  void AddEnable(QpId data, OpId op) {
    Queue& queue = queues_[data.index()];
    std::vector<SendEntry>& master = qp(queue.master).sends;
    const auto count = static_cast<uint32_t>(qp(data).sends.size());
    if (queue.last_enable > last_wait_[queue.master.index()]) {
      SendEntry& last = master[queue.last_enable - 1];
      if (SamePart(queue, last.count, count) && NeedSameRearms(data, last.count, count)) {
        last.count = count;
        last.op = op;
        return;
      }
    }
    master.push_back({.opcode = Opcode::kSendEnable, .qp = data, .count = count, .op = op});
    queue.last_enable = master.size();
  }

  /// A queue that is written in parts may be enabled up to the end of one only once that is
  /// written, so no SEND_EN spans two.
  bool SamePart(const Queue& queue, uint32_t a, uint32_t b) const {
    const uint32_t ring = RingOf(queue.sends, options_.profile.sq_at_once());
    if (queue.sends <= ring) return true;
    return (a - 1) / (ring / 2) == (b - 1) / (ring / 2);
  }

  /// A send may be enabled only when the receives that it needs are posted. If those of the sends
  /// before `b` are there earlier than those of `b`, one SEND_EN for all could hold back the sends
  /// that bring about the completions for which the host waits to post more.
  bool NeedSameRearms(QpId data, uint32_t a, uint32_t b) {
    return RearmsNeeded(qp(data).sends[a - 1]) == RearmsNeeded(qp(data).sends[b - 1]);
  }
  /// How often receives are posted after the first time until there are those that `send` needs.
  uint32_t RearmsNeeded(const SendEntry& send) {
    if (send.count == 0) return 0;
    const size_t receives = qp(send.qp).receives.size();
    const uint32_t ring = RingOf(receives, options_.profile.rq_at_once());
    if (receives <= ring || send.count <= ring) return 0;
    return (send.count - ring + ring / 2 - 1) / (ring / 2);
  }

  void MakeSends() {
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (!ops_[i].is_send()) continue;
      const OpId id = OpId::FromIndex(i);
      const QpId data = qp_of_[i];
      Queue& queue = queues_[data.index()];
      const QpId control = is_managed() ? queue.master : data;
      ordinals_[i] = queue.last_send == kNoOp ? 0 : ordinals_[queue.last_send.index()] + 1;
      for (OpId before : plan_.after(ops_[i])) AddWait(control, before, id);
      queue.last_send = id;
      qp(data).sends.push_back(MakeSend(id));
      if (is_managed()) AddEnable(data, id);
    }
  }

  SendEntry MakeSend(OpId id) {
    const Op& op = ops_[id.index()];
    Queue& queue = queues_[qp_of_[id.index()].index()];
    const Payload& payload = plan_.header().payload;
    SendEntry entry{.opcode = Opcode::kSend, .op = id};
    if (op.is_credit()) {
      entry.qp = queue.blocks;
      entry.count = queue.granted += op.grants;
      return entry;
    }
    entry.opcode = Opcode::kSendImm;
    entry.block = op.block;
    entry.offset = payload.BlockOffset(op.block);
    entry.bytes = static_cast<uint32_t>(payload.BlockSize(op.block));
    if (queue.credits != kNoQp) {
      entry.qp = queue.credits;
      entry.count = CreditsAhead(queue, ordinals_[id.index()]);
    }
    return entry;
  }

  /// Receives for credits that must be posted before send `ordinal` of a queue of blocks may start:
  /// once that is delivered, the peer may send the credit that is a window ahead. A ring that is
  /// posted by halves holds no more than half a ring ahead of the send's own credit, the last one
  /// that is sure to come before the send; what comes beyond that is retried.
  uint32_t CreditsAhead(const Queue& queue, uint32_t ordinal) {
    const auto total = static_cast<uint32_t>(qp(queue.credits).receives.size());
    const Ready& ready = plan_.header().ready;
    if (ready.mode != ReadyMode::kWindow) return total;
    const uint32_t ring = RingOf(total, options_.profile.rq_at_once());
    const uint32_t ahead = total <= ring ? ready.window : std::min(ready.window, ring / 2);
    return static_cast<uint32_t>(std::min<uint64_t>(total, uint64_t{ordinal} + ahead + 1));
  }

  void MakeFinal() {
    const QpId last = final_qp();
    for (const Queue& queue : queues_) {
      if (queue.last_send != kNoOp) AddWait(last, queue.last_send, kNoOp);
      if (queue.last_receive != kNoOp) AddWait(last, queue.last_receive, kNoOp);
    }
    for (size_t i = queues_.size(); i < last.index(); ++i) {  // the other masters' ends
      qp(last).sends.push_back(
          {.opcode = Opcode::kWait, .cqe_index = kNoOp.value, .qp = QpId::FromIndex(i)});
    }
    qp(last).sends.push_back({.opcode = Opcode::kNop});
  }

  void MakeRings() {
    const DeviceProfile& profile = options_.profile;
    for (QueuePair& it : out_.qps) {
      it.sq_wqebbs = RingOf(it.sends.size(), profile.sq_at_once());
      if (it.receives.empty()) continue;
      it.rq_wqes = RingOf(it.receives.size(), profile.rq_at_once());
    }
  }

  void MakeSignals() {
    std::vector<bool> named(ops_.size(), false);
    for (const Op& op : ops_) {
      for (OpId before : plan_.after(op)) named[before.index()] = true;
    }
    for (QueuePair& it : out_.qps) {
      for (SendEntry& entry : it.sends) {
        if (IsSend(entry.opcode) && named[entry.op.index()]) entry.signaled = true;
      }
      if (!it.sends.empty()) it.sends.back().signaled = true;
      if (!it.sends_in_parts()) continue;
      const size_t part = it.sq_wqebbs / 2;
      for (size_t end = part; end <= it.sends.size(); end += part) {
        it.sends[end - 1].signaled = true;
      }
    }
  }

  CqId AddCq(CompletionQueue cq) {
    out_.cqs.push_back(cq);
    return CqId::FromIndex(out_.cqs.size() - 1);
  }

  /// As long as its queue's ring: when a queue breaks, every WQE in it gives a CQE, signaled or
  /// not, and the first of them, which says why, must not be overwritten. The CQEs of what was in
  /// the ring before were read by the host when it was re-armed.
  CqId AddCq(CompletionQueue::Role role, QpId id, size_t completions, uint32_t ring) {
    return AddCq({.role = role,
                  .qp = id,
                  .completions = static_cast<uint32_t>(completions),
                  .entries = ring});
  }

  void MakeCompletionQueues() {
    using Role = CompletionQueue::Role;
    const CqId idle = AddCq({.role = Role::kIdle});
    for (size_t i = 0; i < out_.qps.size(); ++i) {
      QueuePair& it = out_.qps[i];
      const QpId id = QpId::FromIndex(i);
      it.send_cq = it.recv_cq = idle;
      const auto signals =
          static_cast<size_t>(std::ranges::count(it.sends, true, &SendEntry::signaled));
      const Role role = id == final_qp() ? Role::kFinal : Role::kSends;
      if (signals != 0) it.send_cq = AddCq(role, id, signals, it.sq_wqebbs);
      if (!it.receives.empty()) {
        it.recv_cq = AddCq(Role::kReceives, id, it.receives.size(), it.rq_wqes);
      }
    }
    out_.final_cq = qp(final_qp()).send_cq;
  }

  void NumberCompletions() {
    for (const QueuePair& it : out_.qps) {
      uint32_t index = 0;
      for (const SendEntry& entry : it.sends) {
        if (!entry.signaled) continue;
        if (IsSend(entry.opcode)) completions_[entry.op.index()] = {it.send_cq, index};
        ++index;
      }
      index = 0;
      for (const ReceiveEntry& entry : it.receives) {
        completions_[entry.op.index()] = {it.recv_cq, index++};
      }
    }
  }

  void ResolveWaits() {
    for (QueuePair& it : out_.qps) {
      for (SendEntry& entry : it.sends) {
        if (entry.opcode != Opcode::kWait) continue;
        Completion completion;
        if (entry.cqe_index != kNoOp.value) {
          completion = completions_[entry.cqe_index];
        } else {
          completion.cq = qp(entry.qp).send_cq;
          completion.index = out_.cqs[completion.cq.index()].completions - 1;
          entry.qp = {};
        }
        entry.cq = completion.cq;
        entry.cqe_index = completion.index;
      }
    }
  }

  const Plan& plan_;
  const Program& program_;
  const LowerOptions& options_;
  std::span<const Op> ops_;
  std::vector<Queue> queues_;            // by QP, without loopback QPs
  std::vector<QpId> qp_of_;              // by op
  std::vector<uint32_t> ordinals_;       // by op: among the sends, or receives, of its QP
  std::vector<Completion> completions_;  // by op; a send's means something only when it is signaled
  std::vector<size_t> last_wait_;        // by QP: position of its last WAIT, plus one
  std::unordered_map<uint64_t, uint32_t> passed_;  // (queue, source) -> largest ordinal waited for
  NodeProgram out_;
};

}  // namespace

NodeProgram LowerNode(const Plan& plan, const Program& program, const LowerOptions& options) {
  return NodeLowering(plan, program, options).Run();
}

}  // namespace prepost::nic
