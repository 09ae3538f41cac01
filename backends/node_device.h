// SPDX-License-Identifier: Apache-2.0
//
// NodeDevice: which executor plays a node's part in a group of several machines, and over what.
#ifndef PREPOST_BACKENDS_NODE_DEVICE_H_
#define PREPOST_BACKENDS_NODE_DEVICE_H_

#include <chrono>
#include <memory>
#include <string>

#include "backends/nic/program/lower.h"
#include "backends/registry.h"
#include "ir/base/status.h"
#include "ir/plan.h"
#include "ir/verify/verify.h"
#include "runtime/device/player_device.h"
#include "runtime/executor/executor_choice.h"
#include "runtime/run/node_group.h"

namespace prepost {

struct NodeDeviceChoice {
  Executor executor = Executor::kAuto;
  std::string device;  ///< of the registry, one that a process can open; empty: none
  nic::LowerOptions lower;
  bool is_traced = false;  ///< ops are to be observed, which a NIC cannot do: auto takes the CPU
};

/// What was chosen, and all that it needs. Must outlive the run.
///
/// A node whose device cannot be used is not played over TCP instead: all nodes of a group must go
/// over the same, so that is for the user to decide, at all nodes.
class NodeDevice {
 public:
  /// Offload needs a device. Errors: those of OpenPlayerDevice() and, with offload, of Lower()
  /// (kRejected): the plan does not fit the device.
  static Result<NodeDevice> Choose(const NodeDeviceChoice& choice, const VerifiedPlan& plan,
                                   NodeId node);
  /// The same, with the devices of `kind`.
  static Result<NodeDevice> Choose(const NodeDeviceChoice& choice, const VerifiedPlan& plan,
                                   NodeId node, const RegisteredKind& kind);

  /// What auto has chosen with a device, and why, such as "offload: ..."; else "".
  std::string note() const { return choice_.note(); }
  bool is_offloaded() const { return choice_.program.has_value(); }
  /// For the report: "offload" or "cpu", and "tcp" or the device.
  const char* executor() const { return choice_.name(); }
  const std::string& name() const { return name_; }
  /// What the device does by itself; null unless the node is offloaded.
  const PlayerDevice::Program* program() const {
    return is_offloaded() ? choice_.program->get() : nullptr;
  }

  /// Sets what plays, and its names for the report. `plan` must outlive the run; `answer_max`: as
  /// for ExchangeAddresses().
  void ApplyTo(const VerifiedPlan& plan, std::chrono::milliseconds answer_max,
               NodeRunOptions* options);

 private:
  std::string name_ = "tcp";
  std::unique_ptr<PlayerDevice> device_;
  ExecutorChoice<std::shared_ptr<const PlayerDevice::Program>> choice_;
};

}  // namespace prepost

#endif  // PREPOST_BACKENDS_NODE_DEVICE_H_
