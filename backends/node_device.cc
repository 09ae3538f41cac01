// SPDX-License-Identifier: Apache-2.0
#include "backends/node_device.h"

#include <utility>

namespace prepost {

Result<NodeDevice> NodeDevice::Choose(const NodeDeviceChoice& choice, const VerifiedPlan& plan,
                                      NodeId node) {
  return Choose(choice, plan, node, KindOfDevice(choice.device));
}

Result<NodeDevice> NodeDevice::Choose(const NodeDeviceChoice& choice, const VerifiedPlan& plan,
                                      NodeId node, const RegisteredKind& kind) {
  NodeDevice chosen;
  PREPOST_CHECK(choice.executor != Executor::kOffload || !choice.device.empty());
  if (choice.device.empty()) return chosen;
  auto device = OpenPlayerDevice(
      kind, choice.device,
      {.needs_offload = choice.executor == Executor::kOffload, .lower = &choice.lower});
  if (!device.ok()) return device.status();
  chosen.name_ = choice.device;
  chosen.device_ = *std::move(device);
  auto executor = ChooseExecutor<std::shared_ptr<const PlayerDevice::Program>>(
      {.executor = choice.executor,
       .device = choice.device,
       .cpu_because =
           choice.is_traced ? "--trace is given, and a NIC tells nobody when it does what" : ""},
      plan, [&] { return chosen.device_->Lower(plan, node); });
  if (!executor.ok()) return executor.status();
  chosen.choice_ = *std::move(executor);
  return chosen;
}

void NodeDevice::ApplyTo(const VerifiedPlan& plan, std::chrono::milliseconds answer_max,
                         NodeRunOptions* options) {
  options->executor = executor();
  options->detail = name_;
  if (device_ == nullptr) return;
  options->make_player = [this, &plan, answer_max](NodeId node, std::unique_ptr<PeerLinks> links,
                                                   const PlayerContext& context) {
    return MakeDevicePlayer(*device_, program(),
                            {.plan = plan,
                             .node = node,
                             .links = std::move(links),
                             .context = context,
                             .answer_max = answer_max});
  };
}

}  // namespace prepost
