// SPDX-License-Identifier: Apache-2.0
#include "prepost/backends/emulated/driven_group.h"

#include <utility>

namespace prepost::emulated {

Result<DrivenGroup> DrivenGroup::Make(Fabric& fabric, const Plan& plan,
                                      std::span<const std::byte> message,
                                      std::span<const std::span<std::byte>> node_buffers,
                                      const DrivenGroupOptions& options) {
  DrivenGroup group;
  std::vector<nic::OpenNode> open;
  for (uint32_t i = 0; i < plan.header().nodes; ++i) {
    const NodeId node(i);
    const bool root = node == plan.header().root;
    Result<std::unique_ptr<nic::DeviceEndpoint>> endpoint = nic::DeviceEndpoint::Make(
        fabric.device(node), plan, node,
        {.message = root ? message : std::span<const std::byte>(node_buffers[i]),
         .writable = !root,
         .ring_wqes_max = options.ring_wqes_max,
         .wake_fd = options.wake_fd});
    if (!endpoint.ok()) return endpoint.status();
    open.push_back((*endpoint)->open_node());
    group.endpoints_.push_back(*std::move(endpoint));
  }
  PREPOST_RETURN_IF_ERROR(nic::ConnectAll(open));
  for (uint32_t i = 0; i < plan.header().nodes; ++i) {
    const bool root = NodeId(i) == plan.header().root;
    group.executors_.push_back(
        std::make_unique<CpuExecutor>(plan, NodeId(i), *group.endpoints_[i], options.observer));
    group.executors_[i]->Prepare(
        root ? NodeMemory{.source = message, .target = {}}
             : NodeMemory{.source = node_buffers[i], .target = node_buffers[i]});
    group.executors_[i]->Arm();
  }
  return group;
}

}  // namespace prepost::emulated
