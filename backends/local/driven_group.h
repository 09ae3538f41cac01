// SPDX-License-Identifier: Apache-2.0
//
// DrivenGroup: a whole plan on a fabric, CPU-driven: every node's executor over plain work requests
// on its NIC. How its hosts start and wait is its users' business (comparison.h).
#ifndef PREPOST_BACKENDS_LOCAL_DRIVEN_GROUP_H_
#define PREPOST_BACKENDS_LOCAL_DRIVEN_GROUP_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backends/emulated/fabric.h"
#include "backends/nic/host/device_endpoint.h"
#include "ir/base/status.h"
#include "ir/plan.h"
#include "ir/verify/verify.h"
#include "runtime/executor/executor.h"

namespace prepost::local {

struct DrivenGroupOptions {
  uint32_t ring_wqes_max = nic::DeviceEndpointConfig().ring_wqes_max;
  int wake_fd = -1;          ///< ends every host's sleep while it is readable; -1: none. Not owned
  OpObserver observer = {};  ///< of all nodes, on their threads; may be empty
  /// By node: which NIC of the fabric is its. Empty: node i has NIC i.
  std::span<const NodeId> hosts = {};
  bool may_sleep = true;  ///< as DeviceEndpointConfig's
  /// What a node's executor uses in place of its endpoint, given also the node's part of the plan;
  /// may be empty. What it returns must outlive the group.
  std::function<Endpoint&(NodeId, nic::DeviceEndpoint&, const Plan&)> wrap = {};
};

/// Of a multicast of `message`: by node, `buffers` are, of which those of targets are used.
std::vector<NodeMemory> MulticastMemory(const PlanHeader& header,
                                        std::span<const std::byte> message,
                                        std::span<const std::span<std::byte>> buffers);

/// Move only. Each node's executor is used by one thread, as is its device.
class DrivenGroup {
 public:
  /// Makes and connects all queues of the verified `plan` and arms every node. All arguments must
  /// outlive the group, and what `memory`, by node, names; with `staging` where blocks lie apart.
  /// Errors: those of DeviceEndpoint::Make().
  static Result<DrivenGroup> Make(emulated::Fabric& fabric, const VerifiedPlan& plan,
                                  std::span<const NodeMemory> memory,
                                  const DrivenGroupOptions& options = {});

  size_t size() const { return executors_.size(); }
  CpuExecutor& executor(NodeId node) { return *executors_[node.index()]; }
  nic::DeviceEndpoint& endpoint(NodeId node) { return *endpoints_[node.index()]; }

 private:
  std::vector<Plan> parts_;  // by node, as the next; do not move
  std::vector<std::unique_ptr<nic::DeviceEndpoint>> endpoints_;
  std::vector<emulated::ArenaPointer<CpuExecutor>> executors_;
};

}  // namespace prepost::local

#endif  // PREPOST_BACKENDS_LOCAL_DRIVEN_GROUP_H_
