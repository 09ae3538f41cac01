// SPDX-License-Identifier: Apache-2.0
#include "backends/nic/host/nic_player_device.h"

#include <optional>
#include <string>
#include <utility>

#include "backends/nic/host/device_player.h"

namespace prepost::nic {
namespace {

struct NicProgram final : PlayerDevice::Program {
  explicit NicProgram(QueueProgram made) : queues(std::move(made)) {}
  uint64_t work_requests() const override { return queues.nodes.front().wqes(); }
  const QueueProgram queues;  ///< of one node
};

}  // namespace

const QueueProgram& NicPlayerDevice::QueuesOf(const Program& program) {
  return static_cast<const NicProgram&>(program).queues;
}

Result<std::shared_ptr<const PlayerDevice::Program>> NicPlayerDevice::Lower(
    const VerifiedPlan& plan, NodeId node) const {
  LowerOptions options = lower_;
  options.node = node;
  Result<QueueProgram> queues = nic::Lower(plan, options);
  if (!queues.ok()) return queues.status();
  return std::shared_ptr<const Program>(std::make_shared<NicProgram>(*std::move(queues)));
}

Result<std::unique_ptr<Player>> NicPlayerDevice::MakePreposted(const Program& program, Task task) {
  return MakePrepostedPlayer(*device_, task.plan, QueuesOf(program).nodes.front(), *task.links,
                             task.context, task.answer_max);
}

Result<std::unique_ptr<Player>> NicPlayerDevice::MakeDriven(Task task) {
  return MakeDrivenPlayer(*device_, task.plan, task.node, *task.links, task.context,
                          task.answer_max, limits_);
}

}  // namespace prepost::nic
