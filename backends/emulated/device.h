// SPDX-License-Identifier: Apache-2.0
//
// EmulatedDevice: the device `emulated`: a host that makes its queues' memory itself and tells an
// emulated NIC about it directly, without a driver's commands in between.
#ifndef PREPOST_BACKENDS_EMULATED_DEVICE_H_
#define PREPOST_BACKENDS_EMULATED_DEVICE_H_

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "prepost/backends/emulated/nic.h"
#include "prepost/backends/nic/device.h"

namespace prepost::emulated {

class EmulatedDevice final : public nic::Device {
 public:
  /// `nic` must outlive the device.
  explicit EmulatedDevice(Nic& nic) : nic_(nic) {}
  ~EmulatedDevice() override;

  nic::PortAddress port_address() const override;
  Result<nic::Cq> CreateCq(const nic::CqConfig& config) override;
  Result<nic::Qp> CreateQp(const nic::QpConfig& config) override;
  Status Connect(uint32_t qpn, nic::QpAddress remote) override;
  Status MoveToError(uint32_t qpn) override { return nic_.ToError(qpn); }
  Result<nic::QpCounters> QueryQp(uint32_t qpn) override { return nic_.QueryQp(qpn); }
  Result<nic::CqCounters> QueryCq(uint32_t cqn) override { return nic_.QueryCq(cqn); }
  Result<uint32_t> RegisterMemory(std::span<const std::byte> memory, nic::Access access) override;
  Status DeregisterMemory(uint32_t key) override { return nic_.RemoveMemory(key); }
  void RingDoorbell(uint64_t first_bytes) override;
  Status RequestEvent(uint32_t cqn) override;
  Status RequestErrorEvent(uint32_t cqn) override;
  std::vector<nic::ErrorEvent> TakeErrors() override { return nic_.TakeErrors(); }
  Result<int> EventFile() override { return nic_.EventFile(); }
  uint64_t AckEvents() override;
  void CountWakeup() override { ++counters_.wakeups; }
  nic::DeviceCounters counters() const override;

 private:
  /// Memory of a ring, aligned as hardware wants it.
  class RingMemory {
   public:
    explicit RingMemory(size_t bytes)
        : blocks_((bytes + nic::kWqebbBytes - 1) / nic::kWqebbBytes), bytes_(bytes) {}
    std::span<std::byte> bytes() {
      return std::span(reinterpret_cast<std::byte*>(blocks_.data()), bytes_);
    }

   private:
    struct alignas(nic::kWqebbBytes) Block {
      std::byte bytes[nic::kWqebbBytes] = {};
    };
    std::vector<Block> blocks_;
    size_t bytes_;
  };
  struct CqHost {
    explicit CqHost(const nic::CqConfig& config);
    uint32_t number = 0;
    RingMemory ring;
    std::array<uint32_t, 2> doorbell_record = {};
    uint64_t cqes_read = 0;
  };
  struct QpHost {
    explicit QpHost(const nic::QpConfig& config);
    uint32_t number = 0;
    RingMemory sq;
    RingMemory rq;
    std::array<uint32_t, 2> doorbell_record = {};
    uint8_t rnr_retry = 0;
  };

  Nic& nic_;
  std::deque<CqHost> cqs_;  // addresses do not change
  std::deque<QpHost> qps_;  // the same
  nic::DeviceCounters counters_;
};

}  // namespace prepost::emulated

#endif  // PREPOST_BACKENDS_EMULATED_DEVICE_H_
