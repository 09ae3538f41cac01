// SPDX-License-Identifier: Apache-2.0
//
// NodeDevice: which executor plays a node's part in a group of several machines, and over what.
#ifndef PREPOST_BACKENDS_NODE_DEVICE_H_
#define PREPOST_BACKENDS_NODE_DEVICE_H_

#include <chrono>
#include <memory>
#include <string>

#include "backends/mlx5/verbs.h"
#include "backends/nic/program/lower.h"
#include "ir/plan.h"
#include "ir/status.h"
#include "ir/verify/verify.h"
#include "runtime/group/node_group.h"
#include "runtime/player_device.h"

namespace prepost {

struct NodeDeviceChoice {
  std::string executor = "auto";  ///< auto, cpu, offload
  std::string device;             ///< as libibverbs names it; empty: none
  nic::LowerOptions lower;
  bool is_traced = false;  ///< ops are to be observed, which a NIC cannot do: auto takes the CPU
};

/// What was chosen, and all that it needs. Must outlive the run.
///
/// A node whose device cannot be used is not played over TCP instead: all nodes of a group must go
/// over the same, so that is for the user to decide, at all nodes.
class NodeDevice {
 public:
  /// `library`: where devices come from; null: there is none. Offload needs a device. Errors: those
  /// of OpenHardware() and, with offload, of Lower() (kRejected): the plan does not fit the device.
  static Result<NodeDevice> Choose(const NodeDeviceChoice& choice, const VerifiedPlan& plan,
                                   NodeId node, mlx5::VerbsLibrary* library);
  /// The same, with the devices of this machine.
  static Result<NodeDevice> Choose(const NodeDeviceChoice& choice, const VerifiedPlan& plan,
                                   NodeId node);

  /// What auto has chosen with a device, and why, such as "offload: ..."; else "".
  const std::string& note() const { return note_; }
  bool is_offloaded() const { return program_ != nullptr; }
  /// For the report: "offload" or "cpu", and "tcp" or the device.
  const char* executor() const { return is_offloaded() ? "offload" : "cpu"; }
  const std::string& name() const { return name_; }
  /// What the device does by itself; null unless the node is offloaded.
  const PlayerDevice::Program* program() const { return program_.get(); }

  /// Sets what plays, and its names for the report. `plan` must outlive the run; `answer_max`: as
  /// for ExchangeAddresses().
  void ApplyTo(const VerifiedPlan& plan, std::chrono::milliseconds answer_max,
               NodeRunOptions* options);

 private:
  std::string name_ = "tcp";
  std::string note_;
  std::unique_ptr<PlayerDevice> device_;
  std::shared_ptr<const PlayerDevice::Program> program_;
};

}  // namespace prepost

#endif  // PREPOST_BACKENDS_NODE_DEVICE_H_
