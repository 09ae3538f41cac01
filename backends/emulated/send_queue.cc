// SPDX-License-Identifier: Apache-2.0
//
// The send queue: fetching WQEs and executing those that need no peer (rules R1 to R4 and R10).
#include <fmt/format.h>

#include <algorithm>

#include "backends/emulated/engine.h"

namespace prepost::emulated {

using nic::Opcode;
using nic::Syndrome;

void Engine::Fetch(QpState& qp) {
  if (!CanFetch(qp)) return;
  if (qp.has_waited) return EndWait(qp);
  nic::DecodeSend(qp.memory.sq, qp.sq_next, &wqe_);
  if (!WellFormed(qp)) return FailFetch(qp, Syndrome::kLocalQpOperation);
  qp.fenced = nic::HoldsForReads(wqe_.fence) && qp.reads_in_flight != 0;
  if (qp.fenced) return;  // R10: Complete of the last READ fetches again
  if (wqe_.opcode != Opcode::kWait) BeginWqe(qp);
  switch (wqe_.opcode) {
    case Opcode::kWait:
      return ExecuteWait(qp);
    case Opcode::kSendEnable:
    case Opcode::kRecvEnable:
      return ExecuteEnable(qp);
    case Opcode::kNop:
      return StartWork(qp, Work::State::kDone);
    case Opcode::kRdmaRead:
    case Opcode::kAtomicFetchAdd:
      ++qp.reads_in_flight;
      return StartWork(qp, Work::State::kQueued);
    case Opcode::kSend:
    case Opcode::kSendImm:
    case Opcode::kRdmaWrite:
    case Opcode::kRdmaWriteImm:
      return StartWork(qp, Work::State::kQueued);
  }
}

/// R2, and what the emulation does not know.
bool Engine::WellFormed(const QpState& qp) {
  const auto wrong = [&](const std::string& what) {
    Misuse(qp.nic, fmt::format("QP {:#x} WQE {}: {}", qp.number, qp.sq_next, what));
    return false;
  };
  if (wqe_.segments == 0) return wrong("was never written");
  if (wqe_.wqe_index != qp.sq_next) return wrong(fmt::format("says it is WQE {}", wqe_.wqe_index));
  if (wqe_.qpn != qp.number) return wrong(fmt::format("says it is of QP {:#x}", wqe_.qpn));
  if (std::string_view(Name(wqe_.opcode)) == "?") {
    return wrong(fmt::format("opcode {:#x} is not modelled", static_cast<uint8_t>(wqe_.opcode)));
  }
  if (wqe_.op_mod != 0) return wrong(fmt::format("op_mod {} is not modelled", wqe_.op_mod));
  if (wqe_.segments < nic::SendWqe::HeadSegments(wqe_.opcode) ||
      wqe_.wqebbs() > qp.config.sq_wqebbs) {
    return wrong(fmt::format("{} cannot have {} segments", Name(wqe_.opcode), wqe_.segments));
  }
  for (const nic::DataPiece& piece : wqe_.data) {
    if (piece.bytes == 0) return wrong("data segment of byte count 0, which means 2 GiB");
    if (piece.bytes & nic::kInlineFlag) return wrong("inline payload is not modelled");
  }
  if (!IsModelled(wqe_.opcode)) {
    return wrong(fmt::format("{} is not modelled in virtual time", Name(wqe_.opcode)));
  }
  if (wqe_.opcode == Opcode::kAtomicFetchAdd && wqe_.payload_bytes() != nic::kAtomicBytes)
    return wrong(fmt::format("atomic into {} bytes", wqe_.payload_bytes()));
  if (wqe_.payload_bytes() > nic::kRcMessageBytesMax) {
    return wrong(fmt::format("{} bytes in one message, the limit is {}", wqe_.payload_bytes(),
                             nic::kRcMessageBytesMax));
  }
  return true;
}

void Engine::StartWork(QpState& qp, Work::State state) {
  Work work{.wqe_index = qp.sq_next,
            .opcode = wqe_.opcode,
            .signaled = wqe_.signaled(),
            .state = state,
            .immediate = wqe_.immediate,
            .bytes = wqe_.payload_bytes()};
  if (BeginWork(qp, work)) qp.work.push_back(work);
  Log(qp, NicEvent::Kind::kStart, qp.sq_next, wqe_.opcode);
  qp.sq_next = static_cast<uint16_t>(qp.sq_next + wqe_.wqebbs());
  ++counters_.wqes;
}

void Engine::FailFetch(QpState& qp, Syndrome syndrome) {
  StartWork(qp, Work::State::kFailed);
  qp.work.back().syndrome = syndrome;
  qp.fetch_stopped = true;
}

void Engine::ExecuteWait(QpState& qp) {
  CqState* cq = qp.nic.FindCq(wqe_.number);
  std::string wrong;
  if (cq == nullptr) {
    wrong = fmt::format("WAIT on CQ {:#x}, which does not exist", wqe_.number);
  } else if (!qp.config.cd_master) {
    wrong = "WAIT on a QP without cd_master";
  } else if (cq->doorbell_page != qp.config.doorbell_page) {
    wrong = fmt::format("WAIT on CQ {:#x}, which is on another doorbell page", wqe_.number);
  }
  if (!wrong.empty()) {
    Misuse(qp.nic, fmt::format("QP {:#x} WQE {}: {}", qp.number, qp.sq_next, wrong));
    return FailFetch(qp, Syndrome::kLocalQpOperation);
  }
  if (HasPassed(cq->producer, wqe_.index)) {
    BeginWqe(qp);
    return StartWork(qp, Work::State::kDone);
  }
  qp.parked = true;
  qp.parked_cq = cq->number;
  qp.parked_index = wqe_.index & nic::kCqIndexMask;
  qp.parked_completion = wqe_.completion;
  qp.next_waiter = nullptr;
  (cq->first_waiter == nullptr ? cq->first_waiter : cq->last_waiter->next_waiter) = &qp;
  cq->last_waiter = &qp;
  Log(qp, NicEvent::Kind::kPark, qp.sq_next, Opcode::kWait, cq->number, qp.parked_index);
}

/// Ends a WAIT that was read when the queue parked at it.
void Engine::EndWait(QpState& qp) {
  qp.has_waited = false;
  wqe_ = {.wqe_index = qp.sq_next,
          .opcode = Opcode::kWait,
          .qpn = qp.number,
          .segments = nic::SendWqe::HeadSegments(Opcode::kWait),
          .completion = qp.parked_completion,
          .data = std::move(wqe_.data)};
  wqe_.data.clear();
  BeginWqe(qp);
  StartWork(qp, Work::State::kDone);
}

void Engine::ExecuteEnable(QpState& qp) {
  const bool sends = wqe_.opcode == Opcode::kSendEnable;
  const auto limit = static_cast<uint16_t>(wqe_.index);
  QpState* target = qp.nic.FindQp(wqe_.number);
  const bool managed =
      target != nullptr && (sends ? target->config.managed_send : target->config.managed_recv);
  if (!qp.config.cd_master || !managed) {
    Misuse(qp.nic, fmt::format("QP {:#x} WQE {}: {} of QP {:#x}, {}", qp.number, qp.sq_next,
                               Name(wqe_.opcode), wqe_.number,
                               !qp.config.cd_master ? "from a QP without cd_master"
                               : target == nullptr  ? "which does not exist"
                                                    : "which is not managed"));
    return FailFetch(qp, Syndrome::kLocalQpOperation);
  }
  const bool is_news = static_cast<int16_t>(limit - target->sq_enabled) > 0;
  if (sends && is_news && !CheckEnabled(*target, limit)) {
    return FailFetch(qp, Syndrome::kLocalQpOperation);
  }
  StartWork(qp, Work::State::kDone);
  if (HoldsEnable(qp, *target, sends, limit)) return;
  Enable(*target, sends, limit);
}

/// R4: the index is absolute, so that repeating it changes nothing.
void Engine::Enable(QpState& target, bool sends, uint16_t limit) {
  if (sends) OnEnable(target, limit);
  uint16_t& enabled = sends ? target.sq_enabled : target.rq_enabled;
  if (static_cast<int16_t>(limit - enabled) > 0) enabled = limit;
  if (target.state == nic::QpState::kError) return Flush(target);
  Kick(target);
}

/// A NIC would execute whatever stands in the ring; here it must be WQEs that were posted for
/// exactly this place.
bool Engine::CheckEnabled(QpState& target, uint16_t limit) {
  uint16_t at = target.sq_enabled;
  while (static_cast<int16_t>(limit - at) > 0) {
    nic::DecodeSend(target.memory.sq, at, &probe_);
    if (probe_.segments == 0 || probe_.wqe_index != at || probe_.qpn != target.number) break;
    at = static_cast<uint16_t>(at + probe_.wqebbs());
  }
  const bool ahead = static_cast<uint16_t>(limit - target.OldestWqe()) > target.config.sq_wqebbs;
  if (at == limit && !ahead) return true;
  Misuse(target.nic, fmt::format("SEND_EN of QP {:#x} up to {}: WQE {} was never posted",
                                 target.number, limit, at));
  return false;
}

}  // namespace prepost::emulated
