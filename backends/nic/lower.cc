// SPDX-License-Identifier: Apache-2.0
//
// Inline lowering of one node, in three walks over its ops:
//   1. queues: one QP per (peer, lane) that some op uses, its receives in channel order (the i-th
//   gives CQE i);
//   2. signals: which sends make a CQE: those that some `after` names, and the last of every send
//   queue. This is settled
//      before any index is computed, since an index counts the signaled WQEs before it;
//   3. sends: for each send its WAITs, one per op in `after`, then the send itself. WAIT is
//   "producer counter has passed",
//      so one on the same queue for the same CQ with an equal or larger index makes a later one
//      redundant.
// Then the loopback QP: one WAIT per CQ for its last CQE, and one signaled NOP, the host's single
// completion.
//
// Example, chain 0>1>2>3 with 2 blocks, node 1: QP 1>0 receives blocks 0 and 1; the send queue of
// QP 1>2 is
//   WAIT receives of QP 1>0, CQE 0 / SEND_IMM block 0 / WAIT receives of QP 1>0, CQE 1 / SEND_IMM
//   block 1 (signaled)
// and that of the loopback QP: WAIT receives of QP 1>0, CQE 1 / WAIT sends of QP 1>2, CQE 0 / NOP
// (signaled).
#include "prepost/backends/nic/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "prepost/backends/nic/pairing.h"
#include "prepost/ir/verify.h"

namespace prepost::nic {
namespace {

/// Where an op's completion shows: CQE `index` of `cq`.
struct Completion {
  CqId cq;
  uint32_t index = 0;
};

class NodeLowering {
 public:
  NodeLowering(const Plan& plan, const Program& program)
      : plan_(plan),
        program_(program),
        ops_(plan.ops(program)),
        completions_(ops_.size()),
        qp_of_(ops_.size()) {
    out_.node = program.node;
  }

  NodeProgram Run() {
    MakeQueuePairs();
    MakeReceives();
    MakeSignals();
    MakeCompletionQueues();
    MakeSends();
    MakeFinal();
    return std::move(out_);
  }

 private:
  QueuePair& qp(QpId id) { return out_.qps[id.index()]; }

  void MakeQueuePairs() {
    const Pairing pairing = PairUp(plan_, program_);
    for (const Pair& pair : pairing.pairs) {
      QueuePair& made = out_.qps.emplace_back();
      made.peer = pair.peer;
      made.lane = pair.lane;
    }
    for (size_t i = 0; i < ops_.size(); ++i) qp_of_[i] = QpId(pairing.of_ops[i]);
    QueuePair& loopback = out_.qps.emplace_back();
    loopback.peer = out_.node;
    loopback.loopback = true;
  }

  void MakeReceives() {
    const Message& message = plan_.header().message;
    for (size_t i = 0; i < ops_.size(); ++i) {
      const Op& op = ops_[i];
      if (op.is_send()) continue;
      std::vector<ReceiveEntry>& receives = qp(qp_of_[i]).receives;
      completions_[i].index = static_cast<uint32_t>(receives.size());
      ReceiveEntry entry{.block = op.block, .op = OpId::FromIndex(i)};
      if (!op.is_credit()) {
        entry.offset = message.BlockOffset(op.block);
        entry.bytes = static_cast<uint32_t>(message.BlockSize(op.block));
      }
      receives.push_back(entry);
    }
  }

  void MakeSignals() {
    std::vector<uint32_t> last(out_.qps.size(), kNoOp.value);
    std::vector<bool> signaled(ops_.size(), false);
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (!ops_[i].is_send()) continue;
      last[qp_of_[i].index()] = static_cast<uint32_t>(i);
      for (OpId before : plan_.after(ops_[i])) signaled[before.index()] = true;
    }
    for (uint32_t op : last) {
      if (op != kNoOp.value) signaled[op] = true;
    }
    signals_.assign(out_.qps.size(), 0);
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (ops_[i].is_send() && signaled[i]) completions_[i].index = signals_[qp_of_[i].index()]++;
    }
    signaled_ = std::move(signaled);
  }

  CqId AddCq(CompletionQueue cq) {
    out_.cqs.push_back(cq);
    return CqId::FromIndex(out_.cqs.size() - 1);
  }

  void MakeCompletionQueues() {
    using Role = CompletionQueue::Role;
    const CqId idle = AddCq({.role = Role::kIdle});
    for (size_t i = 0; i < out_.qps.size(); ++i) {
      QueuePair& it = out_.qps[i];
      const QpId id = QpId::FromIndex(i);
      it.send_cq = it.recv_cq = idle;
      if (it.loopback) {
        out_.final_cq = it.send_cq = AddCq({Role::kFinal, id, 1});
        continue;
      }
      if (signals_[i] != 0) it.send_cq = AddCq({Role::kSends, id, signals_[i]});
      if (!it.receives.empty()) {
        it.recv_cq = AddCq({Role::kReceives, id, static_cast<uint32_t>(it.receives.size())});
      }
    }
    for (size_t i = 0; i < ops_.size(); ++i) {
      const QueuePair& it = qp(qp_of_[i]);
      completions_[i].cq = ops_[i].is_send() ? it.send_cq : it.recv_cq;
    }
  }

  void AddWait(QpId on, Completion completion, OpId op) {
    const uint64_t key = uint64_t{on.value} << 32 | completion.cq.value;
    const auto [passed, fresh] = passed_.try_emplace(key, completion.index);
    if (!fresh && passed->second >= completion.index) return;
    passed->second = completion.index;
    qp(on).sends.push_back(
        {.opcode = Opcode::kWait, .cq = completion.cq, .cqe_index = completion.index, .op = op});
  }

  void MakeSends() {
    const Message& message = plan_.header().message;
    for (size_t i = 0; i < ops_.size(); ++i) {
      const Op& op = ops_[i];
      if (!op.is_send()) continue;
      const OpId id = OpId::FromIndex(i);
      for (OpId before : plan_.after(op)) AddWait(qp_of_[i], completions_[before.index()], id);
      SendEntry entry{.opcode = Opcode::kSend, .signaled = signaled_[i], .op = id};
      if (!op.is_credit()) {
        entry.opcode = Opcode::kSendImm;
        entry.block = op.block;
        entry.offset = message.BlockOffset(op.block);
        entry.bytes = static_cast<uint32_t>(message.BlockSize(op.block));
      }
      qp(qp_of_[i]).sends.push_back(entry);
    }
  }

  void MakeFinal() {
    const QpId loopback = QpId::FromIndex(out_.qps.size() - 1);
    for (size_t i = 0; i < out_.cqs.size(); ++i) {
      const CqId cq = CqId::FromIndex(i);
      const CompletionQueue& it = out_.cqs[i];
      if (cq == out_.final_cq || it.completions == 0) continue;
      AddWait(loopback, {cq, it.completions - 1}, kNoOp);
    }
    qp(loopback).sends.push_back({.opcode = Opcode::kNop, .signaled = true});
  }

  const Plan& plan_;
  const Program& program_;
  std::span<const Op> ops_;
  std::vector<Completion> completions_;  // by op; a send's means something only when it is signaled
  std::vector<QpId> qp_of_;              // by op
  std::vector<bool> signaled_;           // by op
  std::vector<uint32_t> signals_;        // by QP: signaled sends
  std::unordered_map<uint64_t, uint32_t> passed_;  // (send queue, CQ) -> largest index waited for
  NodeProgram out_;
};

Status CheckLimits(const NodeProgram& program, const RingLimits& limits) {
  const auto refuse = [&](const std::string& queue, uint64_t needed, const char* unit,
                          uint64_t limit) {
    return Rejected(fmt::format("node {}: {} needs {} {}, the limit is {}", program.node.value,
                                queue, needed, unit, limit));
  };
  const uint32_t sq_limit = std::min(limits.sq_wqebbs, kWqIndexAhead);
  for (size_t i = 0; i < program.qps.size(); ++i) {
    const QueuePair& qp = program.qps[i];
    const std::string name = Describe(program, QpId::FromIndex(i));
    if (qp.sends.size() > sq_limit) {
      return refuse("send queue of " + name, qp.sends.size(), "WQEBBs", sq_limit);
    }
    if (qp.receives.size() > limits.rq_wqes) {
      return refuse("receive queue of " + name, qp.receives.size(), "WQEs", limits.rq_wqes);
    }
  }
  for (size_t i = 0; i < program.cqs.size(); ++i) {
    if (program.cqs[i].completions > limits.cq_entries) {
      return refuse("CQ of " + Describe(program, CqId::FromIndex(i)), program.cqs[i].completions,
                    "entries", limits.cq_entries);
    }
  }
  return {};
}

}  // namespace

Result<QueueProgram> Lower(const Plan& plan, const LowerOptions& options) {
  PREPOST_RETURN_IF_ERROR(VerifyStatus(plan));
  const PlanHeader& header = plan.header();
  const uint64_t largest = header.message.BlockSize(0);
  if (largest > options.limits.block_bytes) {
    return Rejected(fmt::format("block of {} bytes does not fit one RC message, the limit is {}",
                                largest, options.limits.block_bytes));
  }
  if (options.node && options.node->value >= header.nodes) {
    return Rejected(fmt::format("node {} does not exist, the plan has {} nodes",
                                options.node->value, header.nodes));
  }
  QueueProgram out{.message = header.message};
  // With a barrier every receive is there before any send: one that is missing is a bug, not
  // something to wait for.
  out.rnr_retry = header.ready.mode == ReadyMode::kBarrier ? 0 : 7;
  for (const Program& program : plan.programs()) {
    if (options.node && program.node != *options.node) continue;
    NodeProgram lowered = NodeLowering(plan, program).Run();
    PREPOST_RETURN_IF_ERROR(CheckLimits(lowered, options.limits));
    out.nodes.push_back(std::move(lowered));
  }
  std::ranges::sort(out.nodes, {}, &NodeProgram::node);
  return out;
}

}  // namespace prepost::nic
