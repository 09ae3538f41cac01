// SPDX-License-Identifier: Apache-2.0
//
// The RC transport between two QPs: moving messages, taking receives, acknowledging (rules R5, R6
// and R9).
#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "backends/emulated/engine.h"

namespace prepost::emulated {

using nic::Opcode;
using nic::Syndrome;

namespace {

constexpr uint64_t kWholeBytes = 16
                                 << 20;  // a larger message moves in steps, so that none takes long

bool TakesReceive(Opcode opcode) { return IsSend(opcode) || opcode == Opcode::kRdmaWriteImm; }

uint64_t Total(const std::vector<nic::DataPiece>& pieces) {
  uint64_t sum = 0;
  for (const nic::DataPiece& piece : pieces) sum += piece.bytes;
  return sum;
}

}  // namespace

void Engine::Transmit(QpState& qp) {
  if (!CanTransmit(qp)) return;
  Work& work = qp.work[qp.to_transmit];
  if (HoldsStart(qp, work)) return;
  QpState& remote = *qp.remote;
  BreakIfDue(remote);
  if (!IsAnswered(qp, work)) return;
  if (!work.placed && !Place(qp, work)) return;
  if (Depart(qp, work)) return;
  const bool whole = options_.scheduler == SchedulerMode::kRoundRobin;
  const uint64_t left = work.bytes - work.moved;
  const uint64_t chunk = std::min<uint64_t>(
      left, whole ? kWholeBytes : std::max(options_.mtu_bytes, nic::kAtomicBytes));
  if (const CopyOutcome outcome = Move(qp, work, chunk); outcome != CopyOutcome::kDone) {
    return FailMove(qp, work, outcome);
  }
  work.moved += chunk;
  moved_bytes_ += chunk;
  if (work.moved == work.bytes) work.state = Work::State::kMoved;
}

void Engine::BreakIfDue(QpState& receiver) {
  for (const QpFault& fault : options_.faults) {
    if (receiver.CanReceive() && !receiver.nic.is_link_down && fault.node == receiver.nic.node &&
        fault.peer == receiver.remote->nic.node && receiver.received >= fault.after_receives) {
      Fail(receiver, fault.kind);
    }
  }
}

void Engine::Fail(QpState& receiver, QpFault::Kind kind) {
  switch (kind) {
    case QpFault::Kind::kFatal:
      // Before what follows from it.
      Report(receiver.nic, {nic::ErrorEvent::Kind::kQpFatal, receiver.number});
      return BreakQp(receiver);
    case QpFault::Kind::kFlush:
      return BreakQp(receiver);
    case QpFault::Kind::kGone:
      return Vanish(receiver);
    case QpFault::Kind::kDeviceFatal:
      receiver.nic.has_failed = true;
      for (const ArenaPointer<QpState>& qp : receiver.nic.qps) {
        if (qp != nullptr) Vanish(*qp);
      }
      return Report(receiver.nic, {nic::ErrorEvent::Kind::kDeviceFatal, 0});
    case QpFault::Kind::kPortDown:
      Log(receiver, NicEvent::Kind::kError, receiver.sq_next, Opcode::kNop);
      receiver.nic.is_link_down = true;
      return Report(receiver.nic, {nic::ErrorEvent::Kind::kPortDown, kPort});
  }
}

void Engine::Vanish(QpState& qp) {
  Log(qp, NicEvent::Kind::kError, qp.sq_next, Opcode::kNop);
  qp.state = nic::QpState::kReset;
  qp.rnr_waiting = qp.parked = false;
}

void Engine::Report(NicState& nic, const nic::ErrorEvent& event) {
  nic.NoteError(event);
  events_.push_back({nic.node, /*cqn=*/0});
}

/// A QP that is not connected, broken or destroyed answers nothing: the sender tries again.
bool Engine::IsAnswered(QpState& qp, Work& work) {
  if (qp.remote->CanReceive() && Reaches(qp, *qp.remote)) {
    qp.retries_left = kTransportRetries;
    return true;
  }
  if (qp.retries_left == 0) {
    FailTransport(qp, work, Syndrome::kTransportRetryExceeded);
  } else {
    --qp.retries_left;
    ++counters_.transport_retries;
    TryAgainLater(qp, Retry::kNoAnswer);
  }
  return false;
}

void Engine::TryAgainLater(QpState& qp, Retry) {
  qp.rnr_waiting = true;
  rnr_waiters_.push_back(&qp);
}

/// Gets the receiver's side ready for the message. False when it is not, or the message has failed.
bool Engine::Place(QpState& qp, Work& work) {
  if (TakesReceive(work.opcode)) {
    if (!TakeReceive(qp, work)) return false;
    nic::DecodeReceive(qp.remote->memory.rq, work.receive & (qp.remote->config.rq_wqes - 1),
                       qp.remote->config.rq_stride, &receive_);
    if (work.opcode != Opcode::kRdmaWriteImm && Total(receive_) < work.bytes) {
      work.state = Work::State::kMoved;
      work.syndrome = Syndrome::kRemoteInvalidRequest;
      work.responder_syndrome = Syndrome::kLocalLength;
      qp.transmit_stopped = qp.fetch_stopped = true;
      return false;
    }
    Log(*qp.remote, NicEvent::Kind::kArrive, work.receive, work.opcode);
  }
  work.placed = true;
  return true;
}

/// Reads the doorbell record when all receives that it announced are taken.
uint16_t Engine::AvailableReceives(QpState& qp) {
  if (qp.config.rq_wqes == 0) return 0;
  if (qp.rq_posted == qp.rq_next) {
    qp.rq_posted = static_cast<uint16_t>(
        nic::BigEndian(std::atomic_ref(qp.memory.doorbell_record[nic::kReceiveRecord])
                           .load(std::memory_order_acquire)));
  }
  const auto available = static_cast<uint16_t>(qp.rq_posted - qp.rq_next);
  if (!qp.config.managed_recv) return available;
  return std::min(available, static_cast<uint16_t>(qp.rq_enabled - qp.rq_next));
}

/// R6.
bool Engine::TakeReceive(QpState& qp, Work& work) {
  QpState& remote = *qp.remote;
  if (AvailableReceives(remote) != 0) {
    work.receive = remote.rq_next++;
    qp.rnr_left = qp.config.rnr_retry;
    return true;
  }
  if (qp.config.rnr_retry != nic::kRnrRetryForEver && qp.rnr_left == 0) {
    FailTransport(qp, work, Syndrome::kRnrRetryExceeded);
    return false;
  }
  if (qp.config.rnr_retry != nic::kRnrRetryForEver) --qp.rnr_left;
  ++counters_.rnr_retries;
  ++remote.nic.rnr_retries;
  TryAgainLater(qp, Retry::kNoReceive);
  return false;
}

/// It would try for ever, and there still is no receive.
bool Engine::IsHopeless(const QpState& qp) const {
  return qp.config.rnr_retry == nic::kRnrRetryForEver && qp.rnr_waiting &&
         qp.remote->CanReceive() && Reaches(qp, *qp.remote) && AvailableReceives(*qp.remote) == 0;
}

/// Lets senders that met no receive, or no answer, try again. When nothing else can happen, those
/// that would try for ever wait until there is a receive. True when one tries.
bool Engine::WakeRnrWaiters(bool idle) {
  if (rnr_waiters_.empty()) return false;
  bool woken = false;
  std::vector<QpState*> waiters = std::exchange(rnr_waiters_, {});
  for (QpState* qp : waiters) {
    if (idle && IsHopeless(*qp)) {
      rnr_waiters_.push_back(qp);
      continue;
    }
    qp->rnr_waiting = false;
    Kick(*qp);
    woken = woken || HasWork();
  }
  return woken;
}

CopyOutcome Engine::Move(QpState& qp, const Work& work, uint64_t bytes) {
  if (bytes == 0) return CopyOutcome::kDone;
  QpState& remote = *qp.remote;
  nic::DecodeSend(qp.memory.sq, work.wqe_index, &wqe_);
  const nic::DataPiece there{.bytes = static_cast<uint32_t>(work.bytes),
                             .lkey = wqe_.rkey,
                             .address = wqe_.remote_address};
  const std::span<const nic::DataPiece> one(&there, 1);
  if (work.opcode == Opcode::kRdmaRead) {
    return Copy({remote.nic.memory, one, Use::kRemoteRead},
                {qp.nic.memory, wqe_.data, Use::kLocalWrite}, work.moved, bytes);
  }
  if (work.opcode == Opcode::kAtomicFetchAdd) return FetchAdd(qp);
  const Side source{qp.nic.memory, wqe_.data, Use::kLocalRead};
  if (work.opcode == Opcode::kRdmaWrite || work.opcode == Opcode::kRdmaWriteImm) {
    return Copy(source, {remote.nic.memory, one, Use::kRemoteWrite}, work.moved, bytes);
  }
  nic::DecodeReceive(remote.memory.rq, work.receive & (remote.config.rq_wqes - 1),
                     remote.config.rq_stride, &receive_);
  return Copy(source, {remote.nic.memory, receive_, Use::kLocalWrite}, work.moved, bytes);
}

/// What stands at an address is a number as hosts read it, and hosts may read it at any time. It is
/// added to even if its former value has no place here: the answer comes after that.
CopyOutcome Engine::FetchAdd(QpState& qp) {
  std::byte* const there = qp.remote->nic.memory.Find(wqe_.rkey, wqe_.remote_address,
                                                      nic::kAtomicBytes, Use::kRemoteAtomic);
  if (there == nullptr || wqe_.remote_address % nic::kAtomicBytes != 0 ||
      !qp.remote->config.takes_atomics) {
    return CopyOutcome::kSourceRefused;
  }
  uint64_t before = std::atomic_ref(*reinterpret_cast<uint64_t*>(there))
                        .fetch_add(wqe_.add, std::memory_order_acq_rel);
  MemoryTable answer;
  const nic::DataPiece piece{.bytes = nic::kAtomicBytes,
                             .lkey = answer.Add(std::as_bytes(std::span(&before, 1)), {}),
                             .address = reinterpret_cast<uintptr_t>(&before)};
  return Copy({answer, std::span(&piece, 1), Use::kLocalRead},
              {qp.nic.memory, wqe_.data, Use::kLocalWrite}, 0, nic::kAtomicBytes);
}

/// R9: which side refused, and what each side sees of it.
void Engine::FailMove(QpState& qp, Work& work, CopyOutcome outcome) {
  const bool reads = nic::ReturnsBytes(work.opcode);
  const bool mine = (outcome == CopyOutcome::kSourceRefused) != reads;
  qp.fetch_stopped = qp.transmit_stopped = true;
  if (mine) {
    work.state = Work::State::kFailed;
    work.syndrome = Syndrome::kLocalProtection;
    return;
  }
  const bool receive = IsSend(work.opcode);
  work.state = Work::State::kMoved;  // the receiver breaks when its earlier messages are delivered
  work.syndrome = receive ? Syndrome::kRemoteOperation : Syndrome::kRemoteAccess;
  work.responder_syndrome = receive ? Syndrome::kLocalProtection : Syndrome::kRemoteAccess;
}

void Engine::FailTransport(QpState& qp, Work& work, Syndrome syndrome) {
  work.state = Work::State::kFailed;
  work.syndrome = syndrome;
  qp.fetch_stopped = qp.transmit_stopped = true;
}

void Engine::Deliver(QpState& qp) {
  if (!CanDeliver(qp)) return;
  Work& work = qp.work[qp.to_deliver];
  QpState& remote = *qp.remote;
  if (!remote.CanReceive() || !Reaches(qp, remote)) {
    return FailTransport(qp, work, Syndrome::kTransportRetryExceeded);
  }
  if (work.responder_syndrome == Syndrome::kNone) {
    CompleteReceive(remote, work);
    Acknowledge(qp, work);
    ++counters_.messages;
    counters_.bytes += work.bytes;
    return BreakIfDue(remote);
  }
  if (TakesReceive(work.opcode)) {
    WriteCqe(remote, remote.recv_cq,
             {.opcode = nic::CqeOpcode::kResponderError,
              .syndrome = work.responder_syndrome,
              .wqe_index = remote.rq_done++});
  }
  work.state = Work::State::kFailed;
  if (!TakesReceive(work.opcode)) {
    Report(remote.nic, {nic::ErrorEvent::Kind::kQpAccess, remote.number});
  }
  BreakQp(remote);
}

void Engine::CompleteReceive(QpState& receiver, const Work& work) {
  if (!TakesReceive(work.opcode)) return;
  ++receiver.received;
  ++receiver.rq_done;
  const nic::CqeOpcode opcode = work.opcode == Opcode::kSend ? nic::CqeOpcode::kResponderSend
                                : work.opcode == Opcode::kSendImm
                                    ? nic::CqeOpcode::kResponderSendImm
                                    : nic::CqeOpcode::kResponderWriteImm;
  const uint32_t cqe = WriteCqe(receiver, receiver.recv_cq,
                                {.opcode = opcode,
                                 .wqe_index = work.receive,
                                 .immediate = work.immediate,
                                 .byte_count = static_cast<uint32_t>(work.bytes)});
  Log(receiver, NicEvent::Kind::kReceive, work.receive, work.opcode, receiver.recv_cq.number, cqe);
}

}  // namespace prepost::emulated
