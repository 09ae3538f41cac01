// SPDX-License-Identifier: Apache-2.0
#include "runtime/player_device.h"

#include <fmt/format.h>

#include <utility>

namespace prepost {

std::optional<std::string> WhyNotPreposted(const Plan& plan) {
  if (IsPlainMulticast(plan)) return std::nullopt;
  const CollectiveKind kind = plan.header().collective.kind;
  if (kind == CollectiveKind::kMulticast) return ExpectPlainMulticast(plan).message();
  const char* const collective = Name(kind);
  if (plan.header().combine.is_none())
    return fmt::format("a plan of {}: queues of NICs carry multicasts", collective);
  return fmt::format("a plan of {}, which combines: a NIC does not, CPUs do", collective);
}

Result<ProgramChoice> ChooseProgram(const PlayerDevice& device, const std::string& executor,
                                    const VerifiedPlan& plan, NodeId node) {
  ProgramChoice choice;
  if (executor == "cpu") return choice;
  if (const std::optional<std::string> why = WhyNotPreposted(plan)) {
    if (executor == "offload") return Rejected(*why);
    choice.why_none = *why;
    return choice;
  }
  auto program = device.Lower(plan, node);
  if (program.ok()) {
    choice.program = *std::move(program);
  } else if (executor == "offload") {
    return program.status();
  } else {
    choice.why_none = program.status().message();
  }
  return choice;
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
          .sockets = task.sockets,
          .checkpoint = task.context.checkpoint,
          .interval = task.context.checkpoint_interval,
          .answer_max = task.answer_max};
}

std::unique_ptr<Player> MakeQueuedPlayer(std::shared_ptr<ChannelQueues> queues,
                                         PlayerDevice::Task task) {
  return std::make_unique<CpuPlayer>(
      task.plan, task.node,
      std::make_unique<QueuedEndpoint>(std::move(queues), std::move(task.sockets),
                                       task.context.wake_fd),
      task.context);
}

}  // namespace prepost
