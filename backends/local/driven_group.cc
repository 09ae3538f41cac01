// SPDX-License-Identifier: Apache-2.0
#include "backends/local/driven_group.h"

#include <array>
#include <utility>

#include "ir/json/plan_shard.h"
#include "runtime/executor/program.h"

namespace prepost::local {

std::vector<NodeMemory> MulticastMemory(const PlanHeader& header,
                                        std::span<const std::byte> message,
                                        std::span<const std::span<std::byte>> buffers) {
  std::vector<NodeMemory> memory(header.nodes);
  for (uint32_t i = 0; i < header.nodes; ++i) {
    if (header.roles().IsTarget(NodeId(i))) {
      memory[i] = {.source = buffers[i], .target = buffers[i]};
    } else {
      memory[i].source = message;
    }
  }
  return memory;
}

Result<DrivenGroup> DrivenGroup::Make(emulated::Fabric& fabric, const VerifiedPlan& plan,
                                      std::span<const NodeMemory> memory,
                                      const DrivenGroupOptions& options) {
  DrivenGroup group;
  const uint32_t nodes = plan.header().nodes;
  // A part each: an executor's memory goes with the channels of its plan.
  const ChannelsByNode channels(plan);
  group.parts_.resize(nodes);
  for (const Program& program : plan.programs()) {
    group.parts_[program.node.index()] = NodePlan(plan, program, channels.At(program.node));
  }
  std::vector<nic::OpenNode> open;
  for (uint32_t i = 0; i < nodes; ++i) {
    const NodeId node(i);
    const NodeMemory& its = memory[i];
    const std::array<nic::DeviceEndpointConfig::Room, 4> rooms = {
        {{its.source, false}, {its.target, true}, {its.scratch, true}, {its.staging, true}}};
    Result<std::unique_ptr<nic::DeviceEndpoint>> endpoint = nic::DeviceEndpoint::Make(
        fabric.device(options.hosts.empty() ? node : options.hosts[i]), group.parts_[i], node,
        {.message = its.source,
         .writable = !its.target.empty(),
         .rooms = rooms,
         .ring_wqes_max = options.ring_wqes_max,
         .may_sleep = options.may_sleep,
         .wake_fd = options.wake_fd,
         .memory = &fabric.memory()});
    if (!endpoint.ok()) return endpoint.status();
    open.push_back((*endpoint)->open_node());
    group.endpoints_.push_back(*std::move(endpoint));
  }
  PREPOST_RETURN_IF_ERROR(nic::ConnectAll(open));
  for (uint32_t i = 0; i < nodes; ++i) {
    const NodeId node(i);
    nic::DeviceEndpoint& own = *group.endpoints_[i];
    Endpoint& endpoint = options.wrap ? options.wrap(node, own, group.parts_[i]) : own;
    group.executors_.push_back(fabric.memory().Make<CpuExecutor>(
        Playable::Part(group.parts_[i]), node, endpoint, options.observer, fabric.memory()));
    group.executors_[i]->Prepare(memory[i]);
    group.executors_[i]->Arm();
  }
  return group;
}

}  // namespace prepost::local
