// SPDX-License-Identifier: Apache-2.0
#include "backends/emulated/nic.h"

#include <fmt/format.h>

#include <utility>

#include "backends/emulated/fabric.h"

namespace prepost::emulated {

Result<CqState*> Nic::FindCq(uint32_t cqn) const {
  CqState* cq = state_.FindCq(cqn);
  if (cq == nullptr) return Rejected(fmt::format("CQ {:#x} does not exist", cqn));
  return cq;
}

Result<QpState*> Nic::FindQp(uint32_t qpn) const {
  QpState* qp = state_.FindQp(qpn);
  if (qp == nullptr) return Rejected(fmt::format("QP {:#x} does not exist", qpn));
  return qp;
}

Status Nic::CheckAlive() const {
  return state_.has_failed ? EnvironmentError("the NIC has failed") : Status();
}

PageArena& Nic::arena() { return fabric_.arena_; }
PageArena& Nic::work_queues() { return fabric_.work_queues_; }

bool Nic::has_failed() {
  const auto hold = fabric_.HoldEngine();
  return state_.has_failed;
}

Result<QpState*> Nic::FindQp(uint32_t qpn, nic::QpState state) const {
  Result<QpState*> qp = FindQp(qpn);
  if (!qp.ok() || (*qp)->state == state) return qp;
  return Rejected(fmt::format("QP {:#x} is in state {}, expected {}", qpn, nic::Name((*qp)->state),
                              nic::Name(state)));
}

Result<uint32_t> Nic::CreateCq(const nic::CqConfig& config, const nic::CqMemory& memory) {
  PREPOST_RETURN_IF_ERROR(nic::CheckSizes(config));
  PREPOST_CHECK(memory.ring.size() == size_t{config.entries} * nic::kCqeBytes);
  const auto hold = fabric_.HoldEngine();
  const auto number = NicState::kFirstCqn + static_cast<uint32_t>(state_.cqs.size());
  state_.cqs.push_back(fabric_.arena_.Make<CqState>(number, config, memory));
  const std::lock_guard lock(event_mutex_);
  events_.reserve(state_.cqs.size());  // each CQ has one at a time: no allocation during a run
  return number;
}

Result<uint32_t> Nic::CreateQp(const nic::QpConfig& config, const nic::QpMemory& memory) {
  PREPOST_RETURN_IF_ERROR(nic::CheckSizes(config));
  PREPOST_CHECK(memory.sq.size() == config.sq_wqebbs * nic::kWqebbBytes);
  PREPOST_CHECK(memory.rq.size() == size_t{config.rq_wqes} * config.rq_stride);
  CqState* send_cq = state_.FindCq(config.send_cq);
  CqState* recv_cq = state_.FindCq(config.recv_cq);
  if (send_cq == nullptr || recv_cq == nullptr)
    return Rejected("the QP names a CQ that does not exist");
  const auto hold = fabric_.HoldEngine();
  const auto number = NicState::kFirstQpn + static_cast<uint32_t>(state_.qps.size());
  state_.qps.push_back(
      fabric_.arena_.Make<QpState>(state_, number, config, memory, *send_cq, *recv_cq));
  ++send_cq->users;
  ++recv_cq->users;
  return number;
}

Status Nic::DestroyCq(uint32_t cqn) {
  const Result<CqState*> cq = FindCq(cqn);
  if (!cq.ok()) return cq.status();
  if ((*cq)->users != 0) return Rejected(fmt::format("CQ {:#x} is in use by QPs", cqn));
  const auto hold = fabric_.HoldEngine();
  state_.cqs[cqn - NicState::kFirstCqn].reset();
  return {};
}

Status Nic::DestroyQp(uint32_t qpn) {
  const Result<QpState*> qp = FindQp(qpn);
  if (!qp.ok()) return qp.status();
  const auto hold = fabric_.HoldEngine();
  --(*qp)->send_cq.users;
  --(*qp)->recv_cq.users;
  Retire(qpn);
  return {};
}

void Nic::Retire(uint32_t qpn) {
  ArenaPointer<QpState>& slot = state_.qps[qpn - NicState::kFirstQpn];
  fabric_.engine_->Retire(*slot);
  state_.retired_qps.push_back(std::exchange(slot, nullptr));
}

Status Nic::ResetToInit(uint32_t qpn, bool takes_atomics) {
  const auto hold = fabric_.HoldEngine();
  PREPOST_RETURN_IF_ERROR(CheckAlive());
  const Result<QpState*> qp = FindQp(qpn, nic::QpState::kReset);
  if (!qp.ok()) return qp.status();
  (*qp)->state = nic::QpState::kInit;
  (*qp)->config.takes_atomics = takes_atomics;
  return {};
}

Status Nic::InitToReceive(uint32_t qpn, NodeId remote, uint32_t remote_qpn) {
  const auto hold = fabric_.HoldEngine();
  PREPOST_RETURN_IF_ERROR(CheckAlive());
  const Result<QpState*> qp = FindQp(qpn, nic::QpState::kInit);
  if (!qp.ok()) return qp.status();
  if (remote.index() >= fabric_.states_.size()) {
    return Rejected(fmt::format("node {} does not exist", remote.value));
  }
  QpState* remote_qp = fabric_.states_[remote.index()]->FindQp(remote_qpn);
  if (remote_qp == nullptr) {
    return Rejected(fmt::format("node {} has no QP {:#x}", remote.value, remote_qpn));
  }
  (*qp)->remote = remote_qp;
  (*qp)->state = nic::QpState::kReadyToReceive;
  return {};
}

Status Nic::ReceiveToSend(uint32_t qpn, uint8_t rnr_retry) {
  const auto hold = fabric_.HoldEngine();
  PREPOST_RETURN_IF_ERROR(CheckAlive());
  const Result<QpState*> qp = FindQp(qpn, nic::QpState::kReadyToReceive);
  if (!qp.ok()) return qp.status();
  (*qp)->config.rnr_retry = rnr_retry;
  fabric_.engine_->StartSending(**qp);
  return {};
}

Status Nic::ToError(uint32_t qpn) {
  const auto hold = fabric_.HoldEngine();
  PREPOST_RETURN_IF_ERROR(CheckAlive());
  const Result<QpState*> qp = FindQp(qpn);
  if (!qp.ok()) return qp.status();
  fabric_.engine_->BreakQp(**qp);
  fabric_.Poke();
  return {};
}

Status Nic::ToReset(uint32_t qpn) {
  const auto hold = fabric_.HoldEngine();
  PREPOST_RETURN_IF_ERROR(CheckAlive());
  const Result<QpState*> found = FindQp(qpn);
  if (!found.ok()) return found.status();
  const QpState& old = **found;
  auto anew =
      fabric_.arena_.Make<QpState>(state_, qpn, old.config, old.memory, old.send_cq, old.recv_cq);
  for (const auto& peers : fabric_.states_) {  // they reach it by its number
    for (const auto& peer : peers->qps) {
      if (peer != nullptr && peer->remote == &old) peer->remote = anew.get();
    }
  }
  Retire(qpn);
  state_.qps[qpn - NicState::kFirstQpn] = std::move(anew);
  return {};
}

Result<nic::QpCounters> Nic::QueryQp(uint32_t qpn) {
  const auto hold = fabric_.HoldEngine();
  PREPOST_RETURN_IF_ERROR(CheckAlive());
  const Result<QpState*> found = FindQp(qpn);
  if (!found.ok()) return found.status();
  const QpState& qp = **found;
  const auto record = nic::BigEndian(std::atomic_ref(qp.memory.doorbell_record[nic::kReceiveRecord])
                                         .load(std::memory_order_acquire));
  return nic::QpCounters{.state = qp.state,
                         .sq_posted = qp.SendLimit(),
                         .sq_fetched = qp.sq_next,
                         .rq_posted = static_cast<uint16_t>(record),
                         .rq_taken = qp.rq_next};
}

Result<nic::CqCounters> Nic::QueryCq(uint32_t cqn) {
  const auto hold = fabric_.HoldEngine();
  PREPOST_RETURN_IF_ERROR(CheckAlive());
  const Result<CqState*> found = FindCq(cqn);
  if (!found.ok()) return found.status();
  const CqState& cq = **found;
  const auto record =
      nic::BigEndian(std::atomic_ref(cq.memory.doorbell_record[nic::kConsumerRecord])
                         .load(std::memory_order_acquire));
  return nic::CqCounters{
      .producer = cq.producer, .consumer = record & nic::kCqIndexMask, .is_overrun = cq.overrun};
}

uint32_t Nic::AddMemory(std::span<const std::byte> memory, nic::Access access) {
  const auto hold = fabric_.HoldEngine();
  return state_.memory.Add(memory, access);
}

Status Nic::RemoveMemory(uint32_t key) {
  const auto hold = fabric_.HoldEngine();
  if (state_.memory.Remove(key)) return {};
  return Rejected(fmt::format("key {:#x} does not exist", key));
}

void Nic::Doorbell(uint64_t first_bytes) { fabric_.Ring(state_, first_bytes); }

Status Nic::Arm(uint32_t cqn, uint32_t consumer) {
  const Result<CqState*> found = FindCq(cqn);
  if (!found.ok()) return found.status();
  CqState& cq = **found;
  cq.event_requested.fetch_or(kAnyEvent, std::memory_order_acq_rel);  // see Engine::WriteCqe
  const bool is_due =
      ((cq.producer.load(std::memory_order_acquire) - consumer) & nic::kCqIndexMask) != 0;
  if (is_due && cq.event_requested.exchange(kNoEvent, std::memory_order_acq_rel) != kNoEvent) {
    Signal(cqn);
  }
  return {};
}

Status Nic::ArmForErrors(uint32_t cqn) {
  const Result<CqState*> cq = FindCq(cqn);
  if (!cq.ok()) return cq.status();
  (*cq)->event_requested.fetch_or(kErrorEvent, std::memory_order_acq_rel);
  return {};
}

std::vector<nic::ErrorEvent> Nic::TakeErrors() {
  if (!state_.has_errors.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(state_.error_mutex);
  state_.has_errors.store(false, std::memory_order_relaxed);
  return std::exchange(state_.errors, {});
}

CqState& Nic::Listen(uint32_t cqn, void* listener) {
  CqState* const cq = state_.FindCq(cqn);
  PREPOST_CHECK(cq != nullptr);
  cq->listener = listener;
  return *cq;
}

Status Nic::ArmForNext(uint32_t cqn) {
  const Result<CqState*> cq = FindCq(cqn);
  if (!cq.ok()) return cq.status();
  return Arm(cqn, (*cq)->producer.load(std::memory_order_acquire));
}

Result<int> Nic::EventFile() {
  const std::lock_guard lock(event_mutex_);
  if (!event_file_.valid()) {
    Result<EventFd> made = EventFd::Make();
    if (!made.ok()) return made.status();
    event_file_ = *std::move(made);
  }
  return event_file_.fd();
}

void Nic::Signal(uint32_t cqn) {
  const std::lock_guard lock(event_mutex_);
  if (!event_file_.valid()) return;
  if (cqn != 0) events_.push_back(cqn);
  event_file_.Signal();
}

std::optional<uint32_t> Nic::TakeEvent() {
  const std::lock_guard lock(event_mutex_);
  if (events_taken_ == events_.size()) {
    if (event_file_.valid()) event_file_.Take();  // what TakeErrors() returns
    return std::nullopt;
  }
  const uint32_t cqn = events_[events_taken_++];
  if (events_taken_ == events_.size()) {
    events_.clear();
    events_taken_ = 0;
    event_file_.Take();
  }
  return cqn;
}

void Nic::ReportMisuse(const std::string& what) {
  const auto hold = fabric_.HoldEngine();
  fabric_.engine_->Misuse(state_, what);
}

}  // namespace prepost::emulated
