// SPDX-License-Identifier: Apache-2.0
#include "tools/node_device.h"

#include <fmt/format.h>

#include <iostream>
#include <utility>

#include "prepost/backends/mlx5/device.h"
#include "prepost/backends/nic/device_player.h"

namespace prepost::tools {
namespace {

Result<std::unique_ptr<nic::Device>> OpenHardware(const std::string& name,
                                                  mlx5::VerbsLibrary* library) {
  if (library == nullptr) {
    return EnvironmentError(fmt::format("device {}: this prepost was built without libmlx5", name));
  }
  Result<std::unique_ptr<mlx5::Verbs>> verbs = library->Open(name);
  if (!verbs.ok()) return verbs.status();
  Result<std::unique_ptr<mlx5::Mlx5Device>> device = mlx5::Mlx5Device::Open(*std::move(verbs));
  if (!device.ok()) return device.status();
  return std::unique_ptr<nic::Device>(*std::move(device));
}

}  // namespace

Result<NodeDevice> NodeDevice::Choose(const NodeDeviceChoice& choice, const Plan& plan, NodeId node,
                                      mlx5::VerbsLibrary* library) {
  const bool is_auto = choice.executor == "auto";
  NodeDevice chosen;
  if (choice.device.empty()) {
    if (choice.executor != "offload") return chosen;
    return Status(StatusCode::kUsage, "--executor offload needs --device (see prepost devices)");
  }
  const auto note = [&](const char* executor, const std::string& why) {
    if (is_auto) std::cerr << fmt::format("prepost: note: executor {}: {}\n", executor, why);
  };
  Result<std::unique_ptr<nic::Device>> device = OpenHardware(choice.device, library);
  if (!device.ok()) {
    if (!is_auto) return device.status();
    note("cpu over tcp", device.status().message());
    return chosen;
  }
  chosen.device_ = *std::move(device);
  chosen.name_ = choice.device;
  if (choice.executor == "cpu") return chosen;
  nic::LowerOptions lower = choice.lower;
  lower.node = node;
  Result<nic::QueueProgram> program = nic::Lower(plan, lower);
  if (program.ok()) {
    chosen.program_ = std::make_unique<nic::QueueProgram>(*std::move(program));
    note("offload", fmt::format("the plan fits device {}", choice.device));
    return chosen;
  }
  if (!is_auto) return program.status();
  note(fmt::format("cpu over {}", choice.device).c_str(),
       "the plan does not fit it: " + program.status().message());
  return chosen;
}

void NodeDevice::ApplyTo(const Plan& plan, NodeId node, std::chrono::milliseconds answer_max,
                         NodeRunOptions* options) {
  if (device_ == nullptr) return;
  options->executor = is_offloaded() ? "offload" : "cpu";
  options->detail = name_;
  options->make_player = [this, &plan, node, answer_max](std::vector<TcpSocket> sockets,
                                                         const PlayerContext& context) {
    if (!is_offloaded()) {
      return nic::MakeDrivenPlayer(*device_, plan, node, std::move(sockets), context, answer_max);
    }
    return nic::MakePrepostedPlayer(*device_, program_->nodes.front(), std::move(sockets), context,
                                    answer_max);
  };
}

}  // namespace prepost::tools
