// SPDX-License-Identifier: Apache-2.0
//
// NicModel: one NIC in software as what is in front of it sees it: objects over memory that belongs
// to somebody else, the steps of a QP's life, and the two stores to a doorbell page. A Device with
// rings of its own can stand on it, and so can a stand-in for a driver that decodes commands;
// neither knows how the NIC works inside.
//
// Threads: everything but TakeEvent() is for one thread at a time, the host's; the NIC may be
// running meanwhile.
#ifndef PREPOST_BACKENDS_NIC_NIC_MODEL_H_
#define PREPOST_BACKENDS_NIC_NIC_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/nic/device.h"
#include "ir/base/status.h"
#include "ir/ids.h"

namespace prepost::nic {

/// The host's memory for one CQ, which outlives the CQ.
struct CqMemory {
  std::span<std::byte> ring;            ///< of CqConfig::entries CQEs, all of them invalid
  uint32_t* doorbell_record = nullptr;  ///< holds the producer base
};

/// The host's memory for one QP, which outlives the QP.
struct QpMemory {
  std::span<std::byte> sq;
  std::span<std::byte> rq;  ///< of QpConfig::rq_wqes x rq_stride bytes
  uint32_t* doorbell_record = nullptr;
};

class NicModel {
 public:
  virtual ~NicModel() = default;

  /// Which of the connected NICs it is.
  virtual NodeId node() const = 0;

  /// Return the object's number. Errors (kRejected): sizes, CQs that do not exist.
  virtual Result<uint32_t> CreateCq(const CqConfig& config, const CqMemory& memory) = 0;
  virtual Result<uint32_t> CreateQp(const QpConfig& config, const QpMemory& memory) = 0;
  /// Errors (kRejected): there is none; a QP still completes to it.
  virtual Status DestroyCq(uint32_t cqn) = 0;
  /// Messages on the way are lost; peers find out when they send.
  virtual Status DestroyQp(uint32_t qpn) = 0;

  // A QP's steps. Errors (kRejected): there is none; it is in another state.
  virtual Status ResetToInit(uint32_t qpn, bool takes_atomics) = 0;
  /// From here on it receives what QP `remote_qpn` of NIC `remote` sends, which may be itself.
  virtual Status InitToReceive(uint32_t qpn, NodeId remote, uint32_t remote_qpn) = 0;
  /// From here on it sends. `rnr_retry`: see QpConfig.
  virtual Status ReceiveToSend(uint32_t qpn, uint8_t rnr_retry) = 0;
  /// From any state: flushes.
  virtual Status ToError(uint32_t qpn) = 0;
  /// From any state: forgets everything that was posted and starts anew at its base.
  virtual Status ToReset(uint32_t qpn) = 0;

  virtual Result<QpCounters> QueryQp(uint32_t qpn) = 0;
  virtual Result<CqCounters> QueryCq(uint32_t cqn) = 0;

  /// Returns the key. The memory must stay until the key is removed.
  virtual uint32_t AddMemory(std::span<const std::byte> memory, Access access) = 0;
  virtual Status RemoveMemory(uint32_t key) = 0;

  /// The store to the doorbell register: see Device::RingDoorbell(). What is wrong with it is
  /// reported as misuse.
  virtual void Doorbell(uint64_t first_bytes) = 0;
  /// The store that asks for one event when the CQ's producer counter is past `consumer`, which may
  /// be so already.
  virtual Status Arm(uint32_t cqn, uint32_t consumer) = 0;
  /// The store that asks for one event of the next error CQE, unless one of any CQE is asked for.
  virtual Status ArmForErrors(uint32_t cqn) = 0;
  /// As Device::EventFile(): readable while TakeEvent() or TakeErrors() has some. Without a call
  /// there are no events.
  virtual Result<int> EventFile() = 0;
  /// The CQ of the oldest event. Never waits.
  virtual std::optional<uint32_t> TakeEvent() = 0;
  /// As Device::TakeErrors(): the NIC's own, and error CQEs that somebody has asked for.
  virtual std::vector<ErrorEvent> TakeErrors() = 0;
  /// It has stopped for good, as ErrorEvent::Kind::kDeviceFatal reports: commands that change or
  /// query something fail (kEnvironment), stores do nothing. Its objects can still be destroyed.
  virtual bool has_failed() = 0;

  /// For what is in front of the NIC: notes in words what its host did that no driver should.
  virtual void ReportMisuse(const std::string& what) = 0;
};

/// Makes the device in front of a NIC, which outlives it.
using DeviceFactory = std::function<Result<std::unique_ptr<Device>>(NicModel&)>;

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_NIC_MODEL_H_
