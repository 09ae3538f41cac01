// SPDX-License-Identifier: Apache-2.0
//
// Which failure is the cause of the others? Say that the QP of node 2 towards node 1 breaks in the
// chain 0>1>2>3. Node 2's CQEs of it are flushed; node 1's next send to it gets no answer, and its
// QP breaks, too; node 3 gets stale bytes. FailureKind has them in the order of what explains what,
// so the least of all nodes is named: a NIC's own event, of itself before one of a queue, then
// error CQEs, then missing answers, with the state of the QP that should have answered, and last
// what was merely flushed.
#include "backends/nic/host/group_failure.h"

#include <fmt/format.h>

#include <optional>
#include <string>

namespace prepost::nic {
namespace {

/// What is known of the QP that did not answer.
std::string PeerState(std::span<const ArmedNode> nodes, const ArmedNode& node, QpId id) {
  const QueuePair& qp = node.program().qps[id.index()];
  if (qp.peer.index() >= nodes.size()) return "";
  const ArmedNode& peer = nodes[qp.peer.index()];
  const Result<QpId> back = FindQp(peer.program(), node.program().node, qp.lane);
  if (!back.ok()) return "";
  const std::optional<QpCounters> counters = peer.Query(*back);
  if (!counters) return fmt::format("; node {} has lost its QP", qp.peer.value);
  if (counters->state == QpState::kReadyToSend) return "";
  return fmt::format("; {} is in state {}", Describe(peer.program(), *back), Name(counters->state));
}

}  // namespace

Status FailGroup(std::span<ArmedNode> nodes) {
  const ArmedNode* first = nullptr;
  for (ArmedNode& node : nodes) {
    if (node.CheckSoFar().ok()) continue;
    if (first == nullptr || node.failure()->kind < first->failure()->kind) first = &node;
  }
  if (first == nullptr) return {};
  const Failure& failure = *first->failure();
  std::string message = failure.message;
  if (failure.kind == FailureKind::kNoAnswer) message += PeerState(nodes, *first, failure.qp);
  for (ArmedNode& node : nodes) node.MoveToError();
  return Rejected(message);
}

}  // namespace prepost::nic
