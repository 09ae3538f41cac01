// SPDX-License-Identifier: Apache-2.0
//
// The sends and receives of a queue are its channels' ops in id order, so they are found by
// counting. A SEND_EN has the op of the last send that it enables. A WAIT has that of the first
// send behind it, by the queue itself or by a SEND_EN; at the end of a queue, where none follows,
// none.
#include "backends/nic/program/op_labels.h"

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/executor/program.h"

namespace prepost::nic {
namespace {

/// Ops of sends and receives.
void LabelMessages(const Plan& plan, NodeProgram* node) {
  struct Next {
    size_t send = 0;
    size_t receive = 0;
  };
  std::vector<Next> next(node->qps.size());
  std::vector<size_t> qp_of(plan.channels().size(), node->qps.size());
  const std::span<const Op> ops = plan.ops(ProgramOf(plan, node->node));
  for (size_t i = 0; i < ops.size(); ++i) {
    const Channel& channel = plan.channels()[ops[i].channel.index()];
    size_t& qp = qp_of[ops[i].channel.index()];
    if (qp == node->qps.size()) {
      const Result<QpId> found =
          FindQp(*node, ops[i].is_send() ? channel.to : channel.from, channel.lane);
      PREPOST_CHECK(found.ok());
      qp = found->index();
    }
    if (!ops[i].is_send()) {
      node->qps[qp].receives[next[qp].receive++].op = OpId::FromIndex(i);
      continue;
    }
    std::vector<SendEntry>& sends = node->qps[qp].sends;
    while (!IsSend(sends[next[qp].send].opcode)) ++next[qp].send;
    sends[next[qp].send++].op = OpId::FromIndex(i);
  }
}

/// Ops of all other entries of `sends`, a queue of `node`. `enabled`: by QP, WQEs so far.
void LabelOthers(const NodeProgram& node, std::vector<uint32_t>* enabled,
                 std::vector<SendEntry>* sends) {
  size_t labelled = 0;
  const auto label_until = [&](size_t end, OpId op) {
    for (; labelled < end; ++labelled) (*sends)[labelled].op = op;
  };
  for (size_t i = 0; i < sends->size(); ++i) {
    SendEntry& entry = (*sends)[i];
    if (IsSend(entry.opcode)) {
      label_until(i, entry.op);
      labelled = i + 1;
    } else if (entry.opcode == Opcode::kSendEnable) {
      const std::vector<SendEntry>& slave = node.qps[entry.qp.index()].sends;
      uint32_t& before = (*enabled)[entry.qp.index()];
      PREPOST_CHECK(before < entry.count && entry.count <= slave.size());
      label_until(i, slave[before].op);
      label_until(i + 1, slave[entry.count - 1].op);
      before = entry.count;
    }
  }
  label_until(sends->size(), kNoOp);
}

}  // namespace

void LabelOps(const Plan& plan, QueueProgram* program) {
  for (NodeProgram& node : program->nodes) {
    LabelMessages(plan, &node);
    std::vector<uint32_t> enabled(node.qps.size(), 0);
    for (QueuePair& qp : node.qps) LabelOthers(node, &enabled, &qp.sends);
  }
}

}  // namespace prepost::nic
