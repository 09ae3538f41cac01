// SPDX-License-Identifier: Apache-2.0
//
// NicPlayerDevice: a NIC whose queues are preposted or driven, as runs and groups use it.
#ifndef PREPOST_BACKENDS_NIC_HOST_NIC_PLAYER_DEVICE_H_
#define PREPOST_BACKENDS_NIC_HOST_NIC_PLAYER_DEVICE_H_

#include <memory>

#include "backends/nic/device.h"
#include "backends/nic/program/device_profile.h"
#include "backends/nic/program/lower.h"
#include "backends/nic/program/queue_program.h"
#include "runtime/device/player_device.h"

namespace prepost::nic {

class NicPlayerDevice final : public PlayerDevice {
 public:
  /// `limits`: of the device itself, for queues that the CPU drives. `lower`: how queues are
  /// preposted, with a profile that both the device and its user allow.
  NicPlayerDevice(std::unique_ptr<Device> device, DeviceProfile limits, LowerOptions lower)
      : device_(std::move(device)), limits_(std::move(limits)), lower_(std::move(lower)) {}

  bool keeps_queues() const override { return true; }
  Result<std::shared_ptr<const Program>> Lower(const VerifiedPlan& plan,
                                               NodeId node) const override;
  Result<std::unique_ptr<Player>> MakePreposted(const Program& program, Task task) override;
  Result<std::unique_ptr<Player>> MakeDriven(Task task) override;

  /// Of a program of Lower(): the node's queues.
  static const QueueProgram& QueuesOf(const Program& program);

 private:
  std::unique_ptr<Device> device_;
  const DeviceProfile limits_;
  const LowerOptions lower_;
};

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_HOST_NIC_PLAYER_DEVICE_H_
