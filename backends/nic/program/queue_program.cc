// SPDX-License-Identifier: Apache-2.0
#include "backends/nic/program/queue_program.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/nic/device.h"

namespace prepost::nic {
namespace {

uint64_t CountOf(const NodeProgram& program, Opcode opcode) {
  uint64_t count = 0;
  for (const QueuePair& qp : program.qps) {
    count += static_cast<uint64_t>(std::ranges::count(qp.sends, opcode, &SendEntry::opcode));
  }
  return count;
}

}  // namespace

uint64_t NodeProgram::wqes() const {
  uint64_t count = 0;
  for (const QueuePair& qp : qps) count += qp.sends.size() + qp.receives.size();
  return count;
}

uint64_t NodeProgram::waits() const { return CountOf(*this, Opcode::kWait); }
uint64_t NodeProgram::enables() const { return CountOf(*this, Opcode::kSendEnable); }

uint64_t NodeProgram::doorbells() const {
  return static_cast<uint64_t>(std::ranges::count_if(
      qps, [](const QueuePair& qp) { return !qp.sends.empty() && !qp.managed; }));
}

uint64_t NodeProgram::rearms() const {
  uint64_t count = 0;
  for (const QueuePair& qp : qps) {
    count += Rearms(qp.sends.size(), qp.sq_wqebbs) + Rearms(qp.receives.size(), qp.rq_wqes);
  }
  return count;
}

uint64_t NodeProgram::ring_bytes() const {
  uint64_t bytes = 0;
  for (const QueuePair& qp : qps) {
    bytes += qp.sq_wqebbs * kWqebbBytes + qp.rq_wqes * kReceiveStrideBytes;
  }
  for (const CompletionQueue& cq : cqs) bytes += cq.entries * kCqeBytes;
  return bytes;
}

uint8_t RnrRetryOf(const PlanHeader& header) {
  return header.ready.mode == ReadyMode::kBarrier ? 0 : kRnrRetryForEver;
}

uint8_t RnrRetryOfMember(const PlanHeader& header) {
  return header.payload.blocks <= kSureRingWqes ? RnrRetryOf(header) : kRnrRetryForEver;
}

Result<QpId> FindQp(const NodeProgram& program, NodeId peer, Lane lane) {
  for (size_t i = 0; i < program.qps.size(); ++i) {
    const QueuePair& qp = program.qps[i];
    if (!qp.loopback && qp.peer == peer && qp.lane == lane) return QpId::FromIndex(i);
  }
  return Rejected(fmt::format("node {} has no QP to node {} on lane {}", program.node.value,
                              peer.value, NumberOf(lane)));
}

const char* Name(CompletionQueue::Role role) {
  switch (role) {
    case CompletionQueue::Role::kSends:
      return "sends";
    case CompletionQueue::Role::kReceives:
      return "receives";
    case CompletionQueue::Role::kFinal:
      return "final";
    case CompletionQueue::Role::kIdle:
      return "idle";
  }
  PREPOST_CHECK(false);
  return "";
}

std::string NameOfDirection(NodeId from, NodeId to, Lane lane) {
  return fmt::format("{}>{} {}", from.value, to.value, Name(lane));
}

std::string NameOfQp(NodeId node, NodeId peer, Lane lane) {
  return fmt::format("QP {}<>{} {}", node.value, peer.value, Name(lane));
}

std::string NameOfLoopback(NodeId node, size_t index, size_t count) {
  if (count == 1) return fmt::format("QP {} loopback", node.value);
  return fmt::format("QP {} loopback {}", node.value, index);
}

std::string Describe(const NodeProgram& program, QpId qp) {
  const QueuePair& it = program.qps[qp.index()];
  if (!it.loopback) return NameOfQp(program.node, it.peer, it.lane);
  const size_t first = static_cast<size_t>(
      std::ranges::find(program.qps, true, &QueuePair::loopback) - program.qps.begin());
  return NameOfLoopback(program.node, qp.index() - first, program.qps.size() - first);
}

std::string Describe(const NodeProgram& program, CqId cq) {
  using Role = CompletionQueue::Role;
  const CompletionQueue& it = program.cqs[cq.index()];
  if (it.role == Role::kFinal || it.role == Role::kIdle) return Name(it.role);
  const QueuePair& qp = program.qps[it.qp.index()];
  if (qp.loopback) return fmt::format("{} of {}", Name(it.role), Describe(program, it.qp));
  const bool is_out = it.role == Role::kSends;
  return fmt::format(
      "{} {}", Name(it.role),
      NameOfDirection(is_out ? program.node : qp.peer, is_out ? qp.peer : program.node, qp.lane));
}

}  // namespace prepost::nic
