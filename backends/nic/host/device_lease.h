// SPDX-License-Identifier: Apache-2.0
//
// DeviceLease: what one node has of a device for one transfer: its QPs, and the memory that they
// read and write. However the transfer ends, the NIC lets go of that memory with the lease, so that
// it can be unmapped while the device, other nodes and their NICs live on.
#ifndef PREPOST_BACKENDS_NIC_HOST_DEVICE_LEASE_H_
#define PREPOST_BACKENDS_NIC_HOST_DEVICE_LEASE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/nic/device.h"
#include "ir/base/status.h"

namespace prepost::nic {

/// Move only. Used by the device's thread, at its end too.
class DeviceLease {
 public:
  /// `device` must outlive the lease.
  explicit DeviceLease(Device& device) : device_(&device) {}
  DeviceLease(DeviceLease&& other) noexcept;
  DeviceLease& operator=(DeviceLease&&) = delete;
  /// Moves the QPs to the error state, so that none is at work on the memory, and deregisters that.
  ~DeviceLease();

  /// As the device's. The memory must outlive the lease.
  Result<Qp> CreateQp(const QpConfig& config);
  Result<uint32_t> RegisterMemory(std::span<const std::byte> memory, Access access);
  /// Moves all QPs to the error state, whatever they are at: nothing is sent or taken any more.
  void MoveToError();

 private:
  Device* device_;
  std::vector<uint32_t> qpns_;
  std::vector<uint32_t> keys_;
};

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_HOST_DEVICE_LEASE_H_
