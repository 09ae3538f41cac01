// SPDX-License-Identifier: Apache-2.0
#include "prepost/backends/emulated/stuck_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace prepost::emulated {
namespace {

using nic::ArmedNode;
using nic::CompletionQueue;
using nic::CqId;
using nic::NodeProgram;
using nic::QpId;
using nic::QueuePair;

class Reporter {
 public:
  Reporter(const Plan& plan, std::span<const ArmedNode> nodes, std::span<const ParkedQueue> parked)
      : nodes_(nodes), parked_(parked), plan_(plan), programs_(nodes.size()) {
    for (const Program& program : plan.programs()) programs_[program.node.index()] = &program;
  }

  std::string Line(const ParkedQueue& at) const {
    const ArmedNode& node = nodes_[at.node.index()];
    const QpId id = FindQpId(node, at.qpn);
    const QueuePair& qp = node.program().qps[id.index()];
    const std::string who = Name(at.node, qp.sends[at.wqe_index].op);
    if (at.reason == ParkedQueue::Reason::kReceiverNotReady) {
      return fmt::format("{} waits for node {} to post a receive", who, qp.peer.value);
    }
    const CqId cq = FindCqId(node, at.cqn);
    const CompletionQueue& queue = node.program().cqs[cq.index()];
    const uint32_t wanted = (at.cqe - node.cq(cq).producer_base) & nic::kCqIndexMask;
    const uint32_t made = (at.produced - node.cq(cq).producer_base) & nic::kCqIndexMask;
    return fmt::format("{} waits for {} ({} of {} CQEs of the {} are there{})", who,
                       Wanted(node, queue, wanted), made, wanted + 1, Describe(node.program(), cq),
                       Cause(node, queue));
  }

  /// True for the queue that only waits for all others.
  bool IsFinal(const ParkedQueue& at) const {
    const ArmedNode& node = nodes_[at.node.index()];
    return node.program().qps[FindQpId(node, at.qpn).index()].loopback;
  }

 private:
  std::string Name(NodeId node, OpId op) const {
    if (op == nic::kNoOp) return fmt::format("node {}'s final completion", node.value);
    return Describe(plan_, *programs_[node.index()], op);
  }

  static QpId FindQpId(const ArmedNode& node, uint32_t qpn) {
    size_t i = 0;
    while (node.qp(QpId::FromIndex(i)).number != qpn) ++i;
    return QpId::FromIndex(i);
  }
  static CqId FindCqId(const ArmedNode& node, uint32_t cqn) {
    size_t i = 0;
    while (node.cq(CqId::FromIndex(i)).number != cqn) ++i;
    return CqId::FromIndex(i);
  }

  std::string Wanted(const ArmedNode& node, const CompletionQueue& queue, uint32_t index) const {
    const QueuePair& qp = node.program().qps[queue.qp.index()];
    if (queue.role == CompletionQueue::Role::kReceives) {
      return index < qp.receives.size()
                 ? Name(node.program().node, qp.receives[index].op)
                 : fmt::format("receive {} that is not in the program", index);
    }
    uint32_t signaled = 0;
    for (const nic::SendEntry& entry : qp.sends) {
      if (entry.signaled && signaled++ == index) return Name(node.program().node, entry.op);
    }
    return fmt::format("completion {} that no send of the program makes", index);
  }

  /// What the queue that would bring the wanted CQE stands at.
  std::string Cause(const ArmedNode& node, const CompletionQueue& queue) const {
    const QueuePair& qp = node.program().qps[queue.qp.index()];
    const bool receives = queue.role == CompletionQueue::Role::kReceives;
    const NodeId source = receives ? qp.peer : node.program().node;
    const NodeId target = receives ? node.program().node : qp.peer;
    const ArmedNode& sender = nodes_[source.index()];
    const Result<QpId> found = FindQp(sender.program(), target, qp.lane);
    if (!found.ok()) return "";
    const uint32_t qpn = sender.qp(*found).number;
    const bool waits = std::ranges::any_of(
        parked_, [&](const ParkedQueue& it) { return it.node == source && it.qpn == qpn; });
    return fmt::format("; node {}'s send queue to node {} {}", source.value, target.value,
                       waits ? "waits too" : "has nothing left or is broken");
  }

  std::span<const ArmedNode> nodes_;
  std::span<const ParkedQueue> parked_;
  const Plan& plan_;
  std::vector<const Program*> programs_;  // by node
};

}  // namespace

std::string StuckReport(const Plan& plan, std::span<const ArmedNode> nodes,
                        std::span<const ParkedQueue> parked, size_t lines_max) {
  const Reporter reporter(plan, nodes, parked);
  std::vector<ParkedQueue> sorted(parked.begin(), parked.end());
  std::ranges::stable_partition(sorted,
                                [&](const ParkedQueue& it) { return !reporter.IsFinal(it); });
  std::string report =
      fmt::format("stuck: nothing can happen any more and {} send queues wait", sorted.size());
  for (size_t i = 0; i < std::min(sorted.size(), lines_max); ++i) {
    report += "\n  " + reporter.Line(sorted[i]);
  }
  if (sorted.size() > lines_max)
    report += fmt::format("\n  and {} more", sorted.size() - lines_max);
  return report;
}

}  // namespace prepost::emulated
