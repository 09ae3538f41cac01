// SPDX-License-Identifier: Apache-2.0
#include "backends/local/armed_group.h"

#include <fmt/format.h>

#include <utility>

#include "backends/nic/host/stuck_report.h"
#include "backends/nic/program/pairing.h"
#include "backends/nic/validate/object_table.h"

namespace prepost::local {

Status CheckProgram(const Plan& plan, const nic::QueueProgram& program) {
  const PlanHeader& header = plan.header();
  bool all_nodes = program.nodes.size() == header.nodes;
  for (size_t i = 0; all_nodes && i < program.nodes.size(); ++i) {
    all_nodes = program.nodes[i].node == NodeId::FromIndex(i);
  }
  if (!all_nodes) {
    return Rejected(fmt::format("the queue program is not that of nodes 0 to {}, in this order",
                                header.nodes - 1));
  }
  return {};
}

Result<ArmedGroup> ArmedGroup::Make(emulated::Fabric& fabric, const Plan& plan,
                                    const nic::QueueProgram& program,
                                    std::span<const MessageBuffers> transfers,
                                    const FirstNumbers& first, bool keeps_cqes,
                                    std::span<const NodeId> hosts) {
  ArmedGroup group(fabric, plan);
  for (const nic::NodeProgram& it : program.nodes) {
    const bool is_target = plan.header().roles().IsTarget(it.node);
    // In a sequence the next message's sends may come before this node has armed it.
    nic::ArmConfig config{
        .messages = {},
        .writable = is_target,
        .rnr_retry = transfers.size() > 1 ? nic::kRnrRetryForEver : program.rnr_retry,
        .first_sq_index = first.sq_index,
        .first_cq_index = first.cq_index,
        .epoch = first.epoch,
        .keeps_cqes = keeps_cqes};
    for (const MessageBuffers& transfer : transfers) {
      config.messages.push_back(is_target ? transfer.node_buffers[it.node.index()]
                                          : transfer.message);
    }
    nic::Device& device = fabric.device(hosts.empty() ? it.node : hosts[it.node.index()]);
    Result<nic::ArmedNode> node = nic::ArmedNode::Make(device, it, config);
    if (!node.ok()) return node.status();
    group.open_.push_back(node->open_node());
    group.nodes_.push_back(*std::move(node));
  }
  PREPOST_RETURN_IF_ERROR(nic::ConnectAll(group.open_));
  return group;
}

nic::QueueObjects ArmedGroup::Objects(NodeId node) const {
  nic::QueueObjects objects = nic::ObjectsOf(nodes_[node.index()]);
  const std::vector<nic::OpenQp>& open = open_[node.index()].qps;
  for (size_t i = 0; i < open.size(); ++i) {  // loopback QPs are behind them
    objects.qps[i].peer_qpn = open[i].peer_qpn;
  }
  return objects;
}

Status ArmedGroup::Validate(const Checkpoint& checkpoint) const {
  nic::Validator validator(*plan_);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    PREPOST_RETURN_IF_ERROR(prepost::Check(checkpoint));
    validator.Add(Objects(NodeId::FromIndex(i)));
  }
  return validator.Finish().ToStatus();
}

Status ArmedGroup::Check() {
  // Flushed WQEs complete, too, so a node's own CQEs may be right and its bytes stale: a node's
  // copy is complete only when all nodes' CQEs are right.
  PREPOST_RETURN_IF_ERROR(Fail());
  for (nic::ArmedNode& node : nodes_) PREPOST_RETURN_IF_ERROR(node.CheckAll());
  return CheckMisuses(*fabric_);
}

Status ArmedGroup::Stuck(std::string_view why) {
  // A receive that was flushed, or a stale one, explains more than what waits for it.
  PREPOST_RETURN_IF_ERROR(Fail());
  const std::string report = nic::StuckReport(*plan_, nodes_, why);
  for (nic::ArmedNode& node : nodes_) node.MoveToError();
  return Rejected(report);
}

Status CheckMisuses(const emulated::Fabric& fabric) {
  if (fabric.engine().misuses().empty()) return {};
  return Rejected("the emulated NICs were misused: " + fabric.engine().misuses().front());
}

}  // namespace prepost::local
