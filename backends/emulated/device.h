// SPDX-License-Identifier: Apache-2.0
//
// EmulatedDevice: the device `emulated`: a host that makes its queues' memory itself and posts to
// an emulated NIC directly, without a driver's commands in between.
#ifndef PREPOST_BACKENDS_EMULATED_DEVICE_H_
#define PREPOST_BACKENDS_EMULATED_DEVICE_H_

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "backends/emulated/nic.h"
#include "backends/emulated/page_arena.h"
#include "backends/nic/device.h"

namespace prepost::emulated {

class EmulatedDevice : public nic::Device {
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
  /// Memory of a ring, zeroed and aligned as hardware wants it.
  class RingMemory {
   public:
    RingMemory(PageArena& arena, size_t bytes) : bytes_(arena.Take(bytes)) {}
    ~RingMemory() { PageArena::Drop(bytes_); }
    RingMemory(const RingMemory&) = delete;
    RingMemory& operator=(const RingMemory&) = delete;
    std::span<std::byte> bytes() { return bytes_; }

   private:
    std::span<std::byte> bytes_;
  };
  using DoorbellRecord = std::array<uint32_t, 2>;
  struct CqHost {
    CqHost(PageArena& arena, const nic::CqConfig& config);
    uint32_t number = 0;
    RingMemory ring;
    DoorbellRecord doorbell_record = {};
    uint64_t cqes_read = 0;
  };
  struct QpHost {
    QpHost(PageArena& arena, const nic::QpConfig& config, DoorbellRecord& record);
    uint32_t number = 0;
    RingMemory sq;
    RingMemory rq;
    DoorbellRecord& doorbell_record;
    uint8_t rnr_retry = 0;
    bool takes_atomics = false;
  };

  Nic& nic_;
  nic::DeviceCounters counters_;
  // Addresses of what is in them do not change.
  std::deque<CqHost> cqs_;
  std::deque<DoorbellRecord> records_;  // of QPs, close together: a host uses many in turn
  std::deque<QpHost> qps_;
};

}  // namespace prepost::emulated

#endif  // PREPOST_BACKENDS_EMULATED_DEVICE_H_
