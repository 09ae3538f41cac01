// SPDX-License-Identifier: Apache-2.0
#include "prepost/backends/emulated/armed_group.h"

#include <utility>

#include "prepost/backends/emulated/stuck_report.h"
#include "prepost/backends/nic/pairing.h"

namespace prepost::emulated {

Result<ArmedGroup> ArmedGroup::Make(Fabric& fabric, const Plan& plan,
                                    const nic::QueueProgram& program,
                                    std::span<const std::byte> message,
                                    std::span<const std::span<std::byte>> node_buffers,
                                    uint8_t epoch) {
  ArmedGroup group(fabric, plan);
  std::vector<nic::OpenNode> open;
  for (const nic::NodeProgram& it : program.nodes) {
    const bool root = it.node == plan.header().root;
    Result<nic::ArmedNode> node =
        nic::ArmedNode::Make(fabric.device(it.node), it,
                             {.message = root ? message : node_buffers[it.node.index()],
                              .writable = !root,
                              .rnr_retry = program.rnr_retry,
                              .epoch = epoch});
    if (!node.ok()) return node.status();
    open.push_back(node->open_node());
    group.nodes_.push_back(*std::move(node));
  }
  PREPOST_RETURN_IF_ERROR(nic::ConnectAll(open));
  return group;
}

Status ArmedGroup::Check() const {
  for (const nic::ArmedNode& node : nodes_) PREPOST_RETURN_IF_ERROR(node.CheckAll());
  return CheckMisuses(*fabric_);
}

Status ArmedGroup::Stuck() const {
  // A receive that was flushed, or a stale one, explains more than what waits for it.
  for (const nic::ArmedNode& node : nodes_) PREPOST_RETURN_IF_ERROR(node.CheckSoFar());
  return Rejected(StuckReport(*plan_, nodes_, fabric_->engine().Parked()));
}

Status CheckMisuses(const Fabric& fabric) {
  if (fabric.engine().misuses().empty()) return {};
  return Rejected("the emulated NICs were misused: " + fabric.engine().misuses().front());
}

}  // namespace prepost::emulated
