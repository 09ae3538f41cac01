// SPDX-License-Identifier: Apache-2.0
//
// Nic: one emulated NIC of a fabric, for what stands in front of it (nic::NicModel). It keeps no
// rings; whoever makes a queue brings its memory.
#ifndef PREPOST_BACKENDS_EMULATED_NIC_H_
#define PREPOST_BACKENDS_EMULATED_NIC_H_

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backends/emulated/nic_state.h"
#include "backends/nic/nic_model.h"
#include "runtime/base/event_fd.h"

namespace prepost::emulated {

class Fabric;
class PageArena;

/// Commands wait until the engine is between two batches of work.
class Nic final : public nic::NicModel {
 public:
  /// Both must outlive it.
  Nic(Fabric& fabric, NicState& state) : fabric_(fabric), state_(state) {}

  NodeId node() const override { return state_.node; }
  Result<uint32_t> CreateCq(const nic::CqConfig& config, const nic::CqMemory& memory) override;
  Result<uint32_t> CreateQp(const nic::QpConfig& config, const nic::QpMemory& memory) override;
  Status DestroyCq(uint32_t cqn) override;
  Status DestroyQp(uint32_t qpn) override;
  Status ResetToInit(uint32_t qpn, bool takes_atomics) override;
  Status InitToReceive(uint32_t qpn, NodeId remote, uint32_t remote_qpn) override;
  Status ReceiveToSend(uint32_t qpn, uint8_t rnr_retry) override;
  Status ToError(uint32_t qpn) override;
  Status ToReset(uint32_t qpn) override;
  Result<nic::QpCounters> QueryQp(uint32_t qpn) override;
  Result<nic::CqCounters> QueryCq(uint32_t cqn) override;
  uint32_t AddMemory(std::span<const std::byte> memory, nic::Access access) override;
  Status RemoveMemory(uint32_t key) override;
  void Doorbell(uint64_t first_bytes) override;
  Status Arm(uint32_t cqn, uint32_t consumer) override;
  Status ArmForErrors(uint32_t cqn) override;
  Result<int> EventFile() override;
  std::optional<uint32_t> TakeEvent() override;
  std::vector<nic::ErrorEvent> TakeErrors() override;
  bool has_failed() override;
  void ReportMisuse(const std::string& what) override;

  /// For the rings of completion queues in front of it.
  PageArena& arena();
  /// For those of send and receive queues.
  PageArena& work_queues();

  /// Arm() for the CQEs that have not been written yet.
  Status ArmForNext(uint32_t cqn);

  /// Virtual time: events of the CQ, which exists, will name `listener`, who asks for them by
  /// CqState::AskForNext() of what this returns. That is there as long as the CQ.
  CqState& Listen(uint32_t cqn, void* listener);

  /// For the fabric: an event of this CQ has come, or one that TakeErrors() returns (0); from any
  /// thread.
  void Signal(uint32_t cqn);

 private:
  Result<CqState*> FindCq(uint32_t cqn) const;
  Result<QpState*> FindQp(uint32_t qpn) const;
  /// A command can be carried out; with the engine held.
  Status CheckAlive() const;
  /// The QP if it is in `state`.
  Result<QpState*> FindQp(uint32_t qpn, nic::QpState state) const;
  /// Takes the QP out of its slot.
  void Retire(uint32_t qpn);

  Fabric& fabric_;
  NicState& state_;

  std::mutex event_mutex_;
  EventFd event_file_;            // guarded by event_mutex_, as are the following; empty: no events
  std::vector<uint32_t> events_;  // of CQs, oldest first
  size_t events_taken_ = 0;       // at the front of events_
};

}  // namespace prepost::emulated

#endif  // PREPOST_BACKENDS_EMULATED_NIC_H_
