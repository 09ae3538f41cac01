// SPDX-License-Identifier: Apache-2.0
#include "backends/node_device.h"

#include <fmt/format.h>

#include <utility>

#include "backends/mlx5/rdma_core.h"
#include "backends/registry.h"

namespace prepost {

Result<NodeDevice> NodeDevice::Choose(const NodeDeviceChoice& choice, const VerifiedPlan& plan,
                                      NodeId node) {
  return Choose(choice, plan, node, mlx5::RdmaCore().get());
}

Result<NodeDevice> NodeDevice::Choose(const NodeDeviceChoice& choice, const VerifiedPlan& plan,
                                      NodeId node, mlx5::VerbsLibrary* library) {
  NodeDevice chosen;
  PREPOST_CHECK(choice.executor != "offload" || !choice.device.empty());
  if (choice.device.empty()) return chosen;
  auto device =
      OpenPlayerDevice(choice.device, choice.executor == "offload", choice.lower, library);
  if (!device.ok()) return device.status();
  chosen.name_ = choice.device;
  chosen.device_ = *std::move(device);
  if (choice.executor == "cpu") return chosen;
  const bool is_auto = choice.executor == "auto";
  if (is_auto && choice.is_traced) {
    chosen.note_ = "cpu: --trace is given, and a NIC tells nobody when it does what";
    return chosen;
  }
  auto program = ChooseProgram(*chosen.device_, choice.executor, plan, node);
  if (!program.ok()) return program.status();
  chosen.program_ = std::move(program->program);
  if (is_auto) {
    chosen.note_ = chosen.is_offloaded()
                       ? fmt::format("offload: the plan fits device {}", choice.device)
                       : fmt::format("cpu: not preposted to device {}: {}", choice.device,
                                     program->why_none);
  }
  return chosen;
}

void NodeDevice::ApplyTo(const VerifiedPlan& plan, std::chrono::milliseconds answer_max,
                         NodeRunOptions* options) {
  options->executor = executor();
  options->detail = name_;
  if (device_ == nullptr) return;
  options->make_player = [this, &plan, answer_max](NodeId node, std::vector<TcpSocket> sockets,
                                                   const PlayerContext& context) {
    return MakeDevicePlayer(*device_, program_.get(),
                            {.plan = plan,
                             .node = node,
                             .sockets = std::move(sockets),
                             .context = context,
                             .answer_max = answer_max});
  };
}

}  // namespace prepost
