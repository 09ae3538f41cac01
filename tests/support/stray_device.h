// SPDX-License-Identifier: Apache-2.0
//
// StrayDevice: an emulated device that writes where it should not, at the moment when its host has
// armed and has not started yet, and counts doorbells.
#ifndef PREPOST_TESTS_SUPPORT_STRAY_DEVICE_H_
#define PREPOST_TESTS_SUPPORT_STRAY_DEVICE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "backends/emulated/device.h"
#include "backends/nic/nic_model.h"
#include "backends/nic/wqe.h"

namespace prepost::test {

/// Of one run. What its devices do is counted here, from any thread.
struct StrayWrite {
  std::optional<NodeId> node = {};  ///< whose device writes; none: no device does
  size_t qp = 0;                    ///< in the order of making
  bool is_receive = false;
  size_t byte = 0;               ///< of the ring; its lowest bit is changed
  uint16_t receives_posted = 0;  ///< to that QP, at least: which tells messages of a sequence apart
  std::atomic<uint32_t> writes = 0;
  std::atomic<uint64_t> doorbells = 0;  ///< of all nodes
};

/// In front of an EmulatedDevice. Writes when it is first asked for an event after so many receives
/// have been posted: that is what hosts do between arming and the start.
class StrayDevice final : public nic::Device {
 public:
  StrayDevice(emulated::Nic& nic, StrayWrite& write)
      : node_(nic.node()), device_(nic), write_(write) {}

  Result<nic::Qp> CreateQp(const nic::QpConfig& config) override {
    Result<nic::Qp> qp = device_.CreateQp(config);
    if (qp.ok()) qps_.push_back(*qp);
    return qp;
  }
  Status RequestEvent(uint32_t cqn) override {
    if (write_.node == node_ && write_.writes == 0 && IsDue(qps_.at(write_.qp))) {
      const nic::Qp& qp = qps_.at(write_.qp);
      (write_.is_receive ? qp.rq : qp.sq)[write_.byte] ^= std::byte{1};
      ++write_.writes;
    }
    return device_.RequestEvent(cqn);
  }
  void RingDoorbell(uint64_t first_bytes) override {
    ++write_.doorbells;
    device_.RingDoorbell(first_bytes);
  }

  nic::PortAddress port_address() const override { return device_.port_address(); }
  Result<nic::Cq> CreateCq(const nic::CqConfig& config) override {
    return device_.CreateCq(config);
  }
  Status Connect(uint32_t qpn, nic::QpAddress remote) override {
    return device_.Connect(qpn, remote);
  }
  Result<uint32_t> RegisterMemory(std::span<const std::byte> memory, nic::Access access) override {
    return device_.RegisterMemory(memory, access);
  }
  Status DeregisterMemory(uint32_t key) override { return device_.DeregisterMemory(key); }
  Status MoveToError(uint32_t qpn) override { return device_.MoveToError(qpn); }
  Result<nic::QpCounters> QueryQp(uint32_t qpn) override { return device_.QueryQp(qpn); }
  Result<nic::CqCounters> QueryCq(uint32_t cqn) override { return device_.QueryCq(cqn); }
  Status RequestErrorEvent(uint32_t cqn) override { return device_.RequestErrorEvent(cqn); }
  std::vector<nic::ErrorEvent> TakeErrors() override { return device_.TakeErrors(); }
  Result<int> EventFile() override { return device_.EventFile(); }
  uint64_t AckEvents() override { return device_.AckEvents(); }
  void CountWakeup() override { device_.CountWakeup(); }
  nic::DeviceCounters counters() const override { return device_.counters(); }

 private:
  bool IsDue(const nic::Qp& qp) const {
    return nic::BigEndian(qp.doorbell_record[nic::kReceiveRecord]) >= write_.receives_posted;
  }

  NodeId node_;
  emulated::EmulatedDevice device_;
  StrayWrite& write_;
  std::vector<nic::Qp> qps_;
};

/// `write` must outlive the devices.
inline nic::DeviceFactory StrayDevices(StrayWrite& write) {
  return [&write](nic::NicModel& nic) -> Result<std::unique_ptr<nic::Device>> {
    return std::unique_ptr<nic::Device>(
        std::make_unique<StrayDevice>(dynamic_cast<emulated::Nic&>(nic), write));
  };
}

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_STRAY_DEVICE_H_
