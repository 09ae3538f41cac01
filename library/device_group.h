// SPDX-License-Identifier: Apache-2.0
//
// DeviceGroup: the mover of a group that goes over NICs, preposted or driven by the CPU. A thread
// per group prepares one message while the NICs move the one before it.
#ifndef PREPOST_LIBRARY_DEVICE_GROUP_H_
#define PREPOST_LIBRARY_DEVICE_GROUP_H_

#include <chrono>
#include <memory>
#include <string>

#include "ir/ids.h"
#include "runtime/device/device_kind.h"
#include "runtime/executor/executor_choice.h"
#include "runtime/executor/wait_policy.h"
#include "runtime/session/group_plans.h"
#include "runtime/session/message_mover.h"

namespace prepost {

struct DeviceGroupOptions {
  NodeId self;
  NodeId root;
  Executor executor = Executor::kAuto;
  std::string device;    ///< for messages
  WaitPolicy wait = {};  ///< for what the CPU drives; a preposted host sleeps
  /// Of a peer when queue pairs are exchanged, for which all members are ready.
  std::chrono::milliseconds answer_max{30000};
};

/// `plans` must be flat (GroupPlanSpec::is_flat), and outlive the mover, whose thread asks for
/// plans.
std::unique_ptr<MessageMover> MakeDeviceGroup(DeviceGroupOptions options,
                                              std::unique_ptr<GroupDevices> devices,
                                              GroupPlans& plans);

}  // namespace prepost

#endif  // PREPOST_LIBRARY_DEVICE_GROUP_H_
