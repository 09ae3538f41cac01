// SPDX-License-Identifier: Apache-2.0
//
// NodeDevice: which executor plays a node's part in a group of several machines, and over what.
#ifndef PREPOST_TOOLS_NODE_DEVICE_H_
#define PREPOST_TOOLS_NODE_DEVICE_H_

#include <chrono>
#include <memory>
#include <string>

#include "prepost/backends/mlx5/verbs.h"
#include "prepost/backends/nic/device.h"
#include "prepost/backends/nic/lower.h"
#include "prepost/backends/nic/queue_program.h"
#include "prepost/ir/plan.h"
#include "prepost/ir/status.h"
#include "prepost/runtime/node_group.h"

namespace prepost::tools {

struct NodeDeviceChoice {
  std::string executor = "auto";  ///< auto, cpu, offload
  std::string device;             ///< as libibverbs names it; empty: none
  nic::LowerOptions lower;
};

/// What was chosen, and all that it needs. Must outlive the run.
class NodeDevice {
 public:
  /// Of auto, what was chosen and why goes to stderr. `library`: where devices come from; null:
  /// there is none, as this was built without. Errors: kUsage: offload without a device;
  /// kEnvironment: the device is not there or cannot offload, and offload or cpu over it was asked
  /// for; kRejected: the plan does not fit it.
  static Result<NodeDevice> Choose(const NodeDeviceChoice& choice, const Plan& plan, NodeId node,
                                   mlx5::VerbsLibrary* library);

  /// Sets what plays, and its names for the report. `plan` must outlive the run.
  void ApplyTo(const Plan& plan, NodeId node, std::chrono::milliseconds answer_max,
               NodeRunOptions* options);
  bool is_offloaded() const { return program_ != nullptr; }
  const std::string& name() const { return name_; }

 private:
  std::string name_ = "tcp";
  std::unique_ptr<nic::Device> device_;
  std::unique_ptr<nic::QueueProgram> program_;  ///< null: not offloaded
};

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_NODE_DEVICE_H_
