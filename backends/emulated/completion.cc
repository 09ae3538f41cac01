// SPDX-License-Identifier: Apache-2.0
//
// Completion: retiring WQEs in order, flushing after a failure, writing CQEs and waking what waits
// for them (rules R3, R7 and R8).
#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "backends/emulated/engine.h"

namespace prepost::emulated {

using nic::CqeOpcode;
using nic::Opcode;
using nic::Syndrome;

void Engine::Complete(QpState& qp) {
  if (qp.work.empty() || qp.work.front().state < Work::State::kDone) return;
  if (HoldsReturn(qp)) return;
  const Work work = qp.work.front();
  qp.work.pop_front();
  if (qp.to_transmit != 0) --qp.to_transmit;
  if (qp.to_deliver != 0) --qp.to_deliver;
  if (nic::ReturnsBytes(work.opcode) && --qp.reads_in_flight == 0) qp.fenced = false;
  const bool failed = work.state == Work::State::kFailed;
  uint32_t cqe = 0;
  OnRetire(qp, work);
  if (failed || work.signaled) {
    cqe = WriteCqe(qp, qp.send_cq,
                   {.opcode = failed ? CqeOpcode::kRequesterError : CqeOpcode::kRequester,
                    .syndrome = work.syndrome,
                    .send_opcode = work.opcode,
                    .wqe_index = work.wqe_index});
  }
  if (failed) return BreakQp(qp);
  Log(qp, NicEvent::Kind::kRetire, work.wqe_index, work.opcode,
      work.signaled ? qp.send_cq.number : 0, cqe);
}

/// R7: everything that is posted and not complete, signaled or not, completes as flushed.
void Engine::Flush(QpState& qp) {
  const auto flush_send = [&](uint16_t wqe_index, Opcode opcode) {
    WriteCqe(qp, qp.send_cq,
             {.opcode = CqeOpcode::kRequesterError,
              .syndrome = Syndrome::kFlushed,
              .send_opcode = opcode,
              .wqe_index = wqe_index});
  };
  for (size_t i = 0; i < qp.work.size(); ++i) {
    flush_send(qp.work[i].wqe_index, qp.work[i].opcode);
  }
  qp.work.clear();
  qp.to_transmit = qp.to_deliver = 0;
  qp.rnr_waiting = qp.parked = false;
  qp.rq_posted = qp.rq_next;  // the doorbell record may say more by now
  const uint16_t limit = qp.SendLimit();
  while (static_cast<int16_t>(limit - qp.sq_next) > 0) {
    nic::DecodeSend(qp.memory.sq, qp.sq_next, &probe_);
    flush_send(qp.sq_next, probe_.opcode);
    qp.sq_next = static_cast<uint16_t>(qp.sq_next + probe_.wqebbs());
  }
  qp.rq_next = static_cast<uint16_t>(qp.rq_next + AvailableReceives(qp));
  while (qp.rq_done != qp.rq_next) {
    WriteCqe(qp, qp.recv_cq,
             {.opcode = CqeOpcode::kResponderError,
              .syndrome = Syndrome::kFlushed,
              .wqe_index = qp.rq_done++});
  }
}

bool Engine::IsFull(const CqState& cq) {
  const auto consumer =
      nic::BigEndian(std::atomic_ref(cq.memory.doorbell_record[nic::kConsumerRecord])
                         .load(std::memory_order_acquire));
  return ((cq.producer - consumer) & nic::kCqIndexMask) >= cq.entries();
}

/// R8. Returns the index of the CQE, modulo 2^24.
uint32_t Engine::WriteCqe(QpState& qp, CqState& cq, const CqeFields& fields) {
  const uint32_t index = cq.producer.load(std::memory_order_relaxed);
  if (cq.overrun || (!cq.ignores_overrun && IsFull(cq))) {
    if (!cq.overrun) {
      Misuse(qp.nic, fmt::format("CQ {:#x} of {} entries was overrun", cq.number, cq.entries()));
      Report(qp.nic, {nic::ErrorEvent::Kind::kCqError, cq.number});
    }
    cq.overrun = true;
    return index;
  }
  const uint32_t slot = cq.is_collapsed ? 0 : index & (cq.entries() - 1);
  std::byte* at = cq.memory.ring.data() + size_t{slot} * nic::kCqeBytes;
  nic::StoreBigEndian(at + nic::cqe::kImmediate, fields.immediate);
  nic::StoreBigEndian(at + nic::cqe::kByteCount, fields.byte_count);
  nic::StoreBigEndian(at + nic::cqe::kVendorSyndrome, uint8_t{0});
  nic::StoreBigEndian(at + nic::cqe::kSyndrome, static_cast<uint8_t>(fields.syndrome));
  nic::StoreBigEndian(at + nic::cqe::kOpcodeQpn,
                      static_cast<uint32_t>(fields.send_opcode) << 24 | qp.number);
  nic::StoreBigEndian(at + nic::cqe::kWqeCounter, fields.wqe_index);
  const uint8_t lap = (index & cq.entries()) != 0;
  auto& owner = *reinterpret_cast<uint8_t*>(at + nic::cqe::kOpcodeOwner);
  std::atomic_ref(owner).store(static_cast<uint8_t>(static_cast<uint8_t>(fields.opcode) << 4 | lap),
                               std::memory_order_release);
  cq.producer.store((index + 1) & nic::kCqIndexMask, std::memory_order_release);
  ++counters_.cqes;
  // Nic::Arm changes it, too: either this one sees the request, or that one sees this CQE.
  const bool is_error =
      fields.opcode == CqeOpcode::kRequesterError || fields.opcode == CqeOpcode::kResponderError;
  const uint8_t asked = cq.event_requested.fetch_or(0, std::memory_order_acq_rel);
  if ((asked == kAnyEvent || (asked == kErrorEvent && is_error)) && TakeRequest(cq)) {
    if (is_error) qp.nic.NoteError({nic::ErrorEvent::Kind::kErrorCqe, cq.number});
    events_.push_back({qp.nic.node, cq.number, cq.listener});
  }
  OnCqe(qp.nic, cq);
  WakeWaiters(cq);
  return index;
}

/// False: somebody else has.
bool Engine::TakeRequest(CqState& cq) {
  return cq.event_requested.exchange(kNoEvent, std::memory_order_acq_rel) != kNoEvent;
}

void Engine::WakeWaiters(CqState& cq) {
  QpState** link = &cq.first_waiter;
  QpState* last = nullptr;
  while (QpState* qp = *link) {
    if (qp->state == nic::QpState::kReadyToSend && !HasPassed(cq.producer, qp->parked_index)) {
      last = qp;
      link = &qp->next_waiter;
      continue;
    }
    *link = qp->next_waiter;
    qp->parked = false;
    qp->has_waited = qp->state == nic::QpState::kReadyToSend;
    OnWake(*qp);
    Kick(*qp);
  }
  cq.last_waiter = last;
}

}  // namespace prepost::emulated
