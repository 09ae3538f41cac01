// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/player_device.h"

#include <utility>

namespace prepost {

Result<DevicePrograms> LowerAll(const PlayerDevice& device, const VerifiedPlan& plan) {
  DevicePrograms programs;
  for (uint32_t node = 0; node < plan.header().nodes; ++node) {
    auto program = device.Lower(plan, NodeId(node));
    if (!program.ok()) return program.status();
    programs.push_back(*std::move(program));
  }
  return programs;
}

Result<std::unique_ptr<Player>> MakeDevicePlayer(PlayerDevice& device,
                                                 const PlayerDevice::Program* program,
                                                 PlayerDevice::Task task) {
  return program == nullptr ? device.MakeDriven(std::move(task))
                            : device.MakePreposted(*program, std::move(task));
}

RecordExchange ExchangeOf(const PlayerDevice::Task& task, std::string what) {
  return {.node = task.node,
          .what = std::move(what),
          .links = *task.links,
          .checkpoint = task.context.checkpoint,
          .interval = task.context.checkpoint_interval,
          .answer_max = task.answer_max};
}

std::unique_ptr<Player> MakeQueuedPlayer(std::shared_ptr<ChannelQueues> queues,
                                         PlayerDevice::Task task) {
  return std::make_unique<CpuPlayer>(
      task.plan, task.node,
      std::make_unique<QueuedEndpoint>(std::move(queues), std::move(task.links),
                                       task.context.wake_fd),
      task.context);
}

}  // namespace prepost
