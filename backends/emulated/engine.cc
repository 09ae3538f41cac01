// SPDX-License-Identifier: Apache-2.0
#include "backends/emulated/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "runtime/base/clock.h"

namespace prepost::emulated {
namespace {

constexpr uint64_t kRnrPeriodSteps = 64;  // how often a receiver that was not ready is asked again
constexpr size_t kMisusesMax = 100;
constexpr uint64_t kRunBytes = 64 << 20;  // one Run moves about as much, so that it returns soon

}  // namespace

void Engine::ReadDoorbell(NicState& nic, uint64_t first_bytes) {
  if (nic.has_failed) return;
  std::byte bytes[sizeof first_bytes];
  std::memcpy(bytes, &first_bytes, sizeof first_bytes);
  const uint32_t qpn = nic::LoadBigEndian<uint32_t>(bytes + nic::control::kQpn) >> 8;
  const auto last = nic::LoadBigEndian<uint16_t>(bytes + nic::control::kWqeIndex);
  QpState* qp = nic.FindQp(qpn);
  if (qp == nullptr)
    return Misuse(nic, fmt::format("doorbell for QP {:#x}, which does not exist", qpn));
  if (qp->state != nic::QpState::kReadyToSend && qp->state != nic::QpState::kError) {
    return Misuse(
        nic, fmt::format("doorbell for QP {:#x}, which is in state {}", qpn, nic::Name(qp->state)));
  }
  if (qp->config.managed_send) {
    return Misuse(nic, fmt::format("doorbell for the managed send queue of QP {:#x}", qpn));
  }
  const std::span<const std::byte> sq = qp->memory.sq;
  const size_t at = size_t{last} * nic::kWqebbBytes & (sq.size() - 1);
  // An earlier doorbell may have read the record that this one comes with. Then the WQE may be
  // complete already and its slot the host's again.
  const bool is_held = static_cast<int16_t>(last - qp->OldestWqe()) >= 0;
  if (is_held && std::memcmp(sq.data() + at, bytes, sizeof bytes) != 0) {
    Misuse(nic, fmt::format("doorbell for QP {:#x} is not the start of WQE {}", qpn, last));
  }
  const auto posted = static_cast<uint16_t>(
      nic::BigEndian(std::atomic_ref(qp->memory.doorbell_record[nic::kSendRecord])
                         .load(std::memory_order_acquire)));
  const auto ahead = static_cast<uint16_t>(posted - qp->OldestWqe());
  const uint32_t limit = std::min(qp->config.sq_wqebbs, nic::kWqIndexAhead);
  if (ahead > limit) {
    return Misuse(nic, fmt::format("doorbell for QP {:#x}: {} WQEBBs are posted and not complete, "
                                   "the limit is {}",
                                   qpn, ahead, limit));
  }
  qp->sq_posted = posted;
  OnDoorbell(nic, qpn);
  if (qp->state == nic::QpState::kError) return Flush(*qp);
  Kick(*qp);
}

bool Engine::Run(uint64_t steps) {
  const uint64_t moved_limit = moved_bytes_ + kRunBytes;
  for (uint64_t i = 0; i < steps; ++i) {
    if (scheduler_.empty() && !WakeRnrWaiters(true)) return false;
    if (++steps_ % kRnrPeriodSteps == 0) WakeRnrWaiters(false);
    Execute(scheduler_.Take());
    if (!events_.empty() || moved_bytes_ >= moved_limit) break;
  }
  return true;
}

void Engine::Execute(const Task& task) {
  QpState& qp = *task.qp;
  if (qp.state != nic::QpState::kReadyToSend) return;
  switch (task.stage) {
    case Stage::kFetch:
      Fetch(qp);
      break;
    case Stage::kTransmit:
      Transmit(qp);
      break;
    case Stage::kDeliver:
      Deliver(qp);
      break;
    case Stage::kComplete:
      Complete(qp);
      break;
  }
  Kick(qp);
}

void Engine::Kick(QpState& qp) {
  if (qp.state != nic::QpState::kReadyToSend) return;
  if (CanFetch(qp)) scheduler_.Add(qp, Stage::kFetch);
  if (CanTransmit(qp)) scheduler_.Add(qp, Stage::kTransmit);
  if (CanDeliver(qp)) scheduler_.Add(qp, Stage::kDeliver);
  if (!qp.work.empty() && qp.work.front().state >= Work::State::kDone) {
    scheduler_.Add(qp, Stage::kComplete);
  }
}

void Engine::BreakQp(QpState& qp) {
  if (qp.state == nic::QpState::kError) return;
  Log(qp, NicEvent::Kind::kError, qp.sq_next, nic::Opcode::kNop);
  // Messages that have fully arrived are not taken back.
  for (size_t i = 0; i < qp.work.size(); ++i) {
    const Work& work = qp.work[i];
    if (work.state == Work::State::kMoved && work.responder_syndrome == nic::Syndrome::kNone &&
        qp.remote->CanReceive()) {
      CompleteReceive(*qp.remote, work);
    }
  }
  qp.state = nic::QpState::kError;
  Flush(qp);
  if (QpState* remote = qp.remote; remote != nullptr && remote != &qp) {
    remote->rnr_waiting = false;  // it will find out when it tries again
    Kick(*remote);
  }
}

void Engine::StartSending(QpState& qp) {
  qp.rnr_left = qp.config.rnr_retry;
  qp.state = nic::QpState::kReadyToSend;
  Kick(qp);
}

void Engine::Retire(QpState& qp) {
  qp.state = nic::QpState::kReset;
  qp.work.clear();
  qp.to_transmit = qp.to_deliver = 0;
  std::erase(rnr_waiters_, &qp);
  for (QpState* waiter : std::exchange(rnr_waiters_, {})) {
    if (waiter->remote != &qp) {
      rnr_waiters_.push_back(waiter);
      continue;
    }
    waiter->rnr_waiting = false;  // it will find out when it tries again
    Kick(*waiter);
  }
}

void Engine::Misuse(const NicState& nic, const std::string& what) {
  if (misuses_.size() < kMisusesMax)
    misuses_.push_back(fmt::format("node {}: {}", nic.node.value, what));
}

void Engine::Note(const QpState& qp, NicEvent::Kind kind, uint16_t wqe_index, nic::Opcode opcode,
                  uint32_t cqn, uint32_t cqe) {
  log_.push_back({steps_, qp.nic.node, qp.number, kind, wqe_index, opcode, cqn, cqe, NowNs()});
}

uint64_t Engine::NowNs() const { return MonotonicNs(); }

}  // namespace prepost::emulated
