// SPDX-License-Identifier: Apache-2.0
#include "backends/nic/host/device_lease.h"

#include <tuple>
#include <utility>

namespace prepost::nic {

DeviceLease::DeviceLease(DeviceLease&& other) noexcept
    : device_(other.device_),
      qpns_(std::exchange(other.qpns_, {})),
      keys_(std::exchange(other.keys_, {})) {}

DeviceLease::~DeviceLease() {
  MoveToError();
  for (const uint32_t key : keys_) std::ignore = device_->DeregisterMemory(key);
}

Result<Qp> DeviceLease::CreateQp(const QpConfig& config) {
  Result<Qp> qp = device_->CreateQp(config);
  if (qp.ok()) qpns_.push_back(qp->number);
  return qp;
}

Result<uint32_t> DeviceLease::RegisterMemory(std::span<const std::byte> memory, Access access) {
  Result<uint32_t> key = device_->RegisterMemory(memory, access);
  if (key.ok()) keys_.push_back(*key);
  return key;
}

void DeviceLease::MoveToError() {
  // What cannot be moved is not there any more.
  for (const uint32_t qpn : qpns_) std::ignore = device_->MoveToError(qpn);
}

}  // namespace prepost::nic
