// SPDX-License-Identifier: Apache-2.0
//
// Mlx5Device: a ConnectX NIC as a nic::Device. Everything is created through DEVX, by firmware
// commands, because verbs cannot make queues that WAIT, or that SEND_EN controls. It knows only the
// table of calls in verbs.h, behind which there is hardware or a stand-in.
#ifndef PREPOST_BACKENDS_MLX5_DEVICE_H_
#define PREPOST_BACKENDS_MLX5_DEVICE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backends/mlx5/capabilities.h"
#include "backends/mlx5/prm.h"
#include "backends/mlx5/teardown.h"
#include "backends/mlx5/verbs.h"
#include "backends/nic/device.h"

namespace prepost::mlx5 {

struct Mlx5Options {
  uint8_t port = 1;
  /// RoCE: of the port's GID table; none: the first RoCE v2 entry, one that is not link-local
  /// first.
  std::optional<uint32_t> gid_index = {};
  uint8_t service_level = 0;  ///< RoCE: its lower three bits are the priority
  uint8_t ack_timeout = 14;   ///< 4.096 us << n: 67 ms, longer over long paths; retried 7 times
  /// Refuses a device without the capabilities of preposted queues; hosts that post for themselves
  /// need none.
  bool needs_cross_channel = true;
};

class Mlx5Device final : public nic::Device {
 public:
  /// Makes what all queues share. Errors (kEnvironment): the device lacks a capability (named), its
  /// port is not active, a call fails. Nothing is left behind.
  static Result<std::unique_ptr<Mlx5Device>> Open(std::unique_ptr<Verbs> verbs,
                                                  const Mlx5Options& options = {});

  const Capabilities& capabilities() const { return capabilities_; }

  nic::PortAddress port_address() const override { return address_; }
  /// Errors: kRejected: sizes, also those that the device does not take; kEnvironment: a call
  /// fails.
  Result<nic::Cq> CreateCq(const nic::CqConfig& config) override;
  Result<nic::Qp> CreateQp(const nic::QpConfig& config) override;
  Status Connect(uint32_t qpn, nic::QpAddress remote) override;
  Status MoveToError(uint32_t qpn) override;
  Result<nic::QpCounters> QueryQp(uint32_t qpn) override;
  Result<nic::CqCounters> QueryCq(uint32_t cqn) override;
  Result<uint32_t> RegisterMemory(std::span<const std::byte> memory, nic::Access access) override;
  Status DeregisterMemory(uint32_t key) override;
  void RingDoorbell(uint64_t first_bytes) override;
  /// Asks for an event when there is a CQE that the host has not read, which may be there already.
  Status RequestEvent(uint32_t cqn) override;
  Status RequestErrorEvent(uint32_t cqn) override;
  /// Error CQEs: of CQs that were last asked for error events. The device's own events always;
  /// those of QPs and CQs where the kernel passes them on.
  std::vector<nic::ErrorEvent> TakeErrors() override;
  Result<int> EventFile() override { return channel_.fd; }
  uint64_t AckEvents() override;
  void CountWakeup() override { ++counters_.wakeups; }
  nic::DeviceCounters counters() const override;

 private:
  struct CqHost {
    Object object;
    Uar uar;
    uint32_t* doorbell_record = nullptr;
    uint32_t producer_base = 0;
    uint64_t cqes_read = 0;
    uint8_t arm_serial = 0;            // events that have come
    bool is_armed_for_errors = false;  // and for nothing else
  };
  struct QpHost {
    Object object;
    Uar uar;
    uint32_t* doorbell_record = nullptr;
    uint8_t rnr_retry = 0;
    bool takes_atomics = false;
  };
  struct QpShape;

  Mlx5Device(std::unique_ptr<Verbs> verbs, const Mlx5Options& options)
      : verbs_(std::move(verbs)), options_(options) {}

  Status Prepare();
  Status OpenChannel();
  Status Subscribe(Object object, prm::EventType type, uint32_t number);
  Status Arm(uint32_t cqn, bool errors_only);
  void NoteEvent(uint64_t cookie);
  void NoteDeviceEvent(const DeviceEvent& event);
  void NoteFatal();
  Result<Uar> UarOf(uint32_t doorbell_page);
  Status FindAddress();
  Status ChooseGid(uint32_t gid_count);
  Result<nic::Cq> MakeCq(const nic::CqConfig& config);
  Result<nic::Qp> MakeQp(const nic::QpConfig& config);
  prm::ObjectCommand CreateQpCommand(const nic::QpConfig& config, const QpShape& shape,
                                     uint32_t umem_id, uint32_t page_id) const;
  Result<Umem> MakeQueueMemory(size_t bytes, std::span<std::byte>* memory);
  Result<Object> Create(prm::Command command, prm::ObjectCommand& in, uint32_t* number);
  Status ModifyQp(uint32_t qpn, prm::Command command, Input in);
  Result<prm::ObjectCommand> Query(prm::Command command, const char* what, Object object,
                                   uint32_t number);
  Status InitToReceive(uint32_t qpn, const nic::QpAddress& remote);
  Status ReceiveToSend(uint32_t qpn, uint8_t rnr_retry, std::chrono::microseconds round_trip);
  Status SetPath(prm::ObjectCommand& in, uint32_t qpn, const nic::QpAddress& remote);
  Result<CqHost*> FindCq(uint32_t cqn);
  Result<QpHost*> FindQp(uint32_t qpn);

  std::unique_ptr<Verbs> verbs_;
  Mlx5Options options_;
  Capabilities capabilities_;
  nic::PortAddress address_;
  bool is_ethernet_ = false;
  uint8_t mtu_ = 0;
  uint32_t gid_index_ = 0;
  std::map<uint32_t, Uar> uars_;  // by QpConfig::doorbell_page
  ProtectionDomain pd_;
  uint32_t eqn_ = 0;
  EventChannel channel_;
  std::map<uint32_t, CqHost> cqs_;            // by CQN; addresses do not change
  std::map<uint32_t, QpHost> qps_;            // by QPN
  std::map<uint32_t, MemoryRegion> regions_;  // by key
  nic::DeviceCounters counters_;
  std::vector<nic::ErrorEvent> errors_;
  bool has_failed_ = false;
  Teardown teardown_;  // uses verbs_
};

}  // namespace prepost::mlx5

#endif  // PREPOST_BACKENDS_MLX5_DEVICE_H_
