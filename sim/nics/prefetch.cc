// SPDX-License-Identifier: Apache-2.0
#include "sim/nics/prefetch.h"

#include <cstring>

#include "backends/emulated/nic_state.h"

namespace prepost::sim {

using emulated::CqState;

namespace {

/// The entry at `index` of a ring whose entries have `stride` bytes, a power of two of them.
void PrefetchEntry(std::span<const std::byte> ring, size_t index, size_t stride) {
  PrefetchLine(ring.data() + (index * stride & (ring.size() - 1)));
}

template <typename T>
void PrefetchObject(const T& object) {
  PrefetchLines(&object, sizeof object);
}

/// WQEs of a queue that are prefetched: of a master's mostly a WAIT is followed by a message and
/// the next WAIT.
size_t WqesAhead(const QpState& qp) { return qp.config.cd_master ? 3 : 1; }

void PrefetchWaits(const QpState& qp) {
  // One at which it stands has been read already.
  const bool is_past = qp.parked || qp.has_waited;
  for (size_t ahead = is_past ? 1 : 0; ahead < WqesAhead(qp); ++ahead) {
    const std::byte* wqe =
        qp.memory.sq.data() + ((qp.sq_next + ahead) * nic::kWqebbBytes & (qp.memory.sq.size() - 1));
    if (static_cast<nic::Opcode>(wqe[nic::control::kOpcode]) != nic::Opcode::kWait) continue;
    const auto number =
        nic::LoadBigEndian<uint32_t>(wqe + nic::kSegmentBytes + nic::coordination::kNumber);
    if (const CqState* cq = qp.nic.FindCq(number)) PrefetchObject(*cq);
  }
}

/// The next one of the CQ, which is in the cache.
void PrefetchCqe(const CqState& cq, size_t stage) {
  if (stage == 0) {
    PrefetchEntry(cq.memory.ring, cq.producer.load(std::memory_order_relaxed), nic::kCqeBytes);
    PrefetchLine(cq.memory.doorbell_record);
    if (cq.first_waiter != nullptr) PrefetchObject(*cq.first_waiter);
  } else if (cq.first_waiter != nullptr) {
    if (stage == 1) PrefetchQueue(*cq.first_waiter);
    if (stage == 2) PrefetchPeers(*cq.first_waiter);
  }
}

}  // namespace

void PrefetchQueue(const QpState& qp) {
  for (size_t ahead = 0; ahead < WqesAhead(qp); ++ahead) {
    PrefetchEntry(qp.memory.sq, qp.sq_next + ahead, nic::kWqebbBytes);
  }
  if (!qp.work.empty()) PrefetchObject(qp.work.front());
  PrefetchObject(qp.send_cq);
  PrefetchObject(qp.nic);
  if (qp.remote != nullptr) PrefetchObject(*qp.remote);
}

void PrefetchPeers(const QpState& qp) {
  if (qp.config.cd_master) PrefetchWaits(qp);
  if (qp.remote == nullptr) return;
  PrefetchObject(qp.remote->recv_cq);
  if (qp.remote->memory.rq.empty()) return;
  PrefetchLine(qp.remote->memory.doorbell_record);
  PrefetchEntry(qp.remote->memory.rq, qp.remote->rq_next, nic::kReceiveStrideBytes);
}

void PrefetchLandings(std::span<void* const> qps) {
  const auto qp = [&](size_t i) -> QpState& { return *static_cast<QpState*>(qps[i]); };
  for (size_t i = 0; i < qps.size(); ++i) PrefetchObject(qp(i));
  for (size_t i = 0; i < qps.size(); ++i) {
    if (qp(i).remote != nullptr) PrefetchObject(*qp(i).remote);
  }
  for (size_t i = 0; i < qps.size(); ++i) {
    PrefetchObject(qp(i).send_cq);
    const QpState* remote = qp(i).remote;
    if (remote == nullptr || remote->memory.rq.empty()) continue;
    PrefetchObject(remote->recv_cq);
    PrefetchObject(remote->nic);
    PrefetchEntry(remote->memory.rq, remote->rq_done, nic::kReceiveStrideBytes);
  }
  for (size_t i = 0; i < qps.size(); ++i) {
    const CqState& sends = qp(i).send_cq;
    if (sends.first_waiter != nullptr) PrefetchObject(*sends.first_waiter);
    if (qp(i).remote == nullptr) continue;
    const CqState& receives = qp(i).remote->recv_cq;
    if (receives.first_waiter != nullptr) PrefetchObject(*receives.first_waiter);
  }
}

void PrefetchDoorbell(const NicState& nic, uint64_t first_bytes, size_t stage) {
  std::byte bytes[sizeof first_bytes];
  std::memcpy(bytes, &first_bytes, sizeof first_bytes);
  const uint32_t number = nic::LoadBigEndian<uint32_t>(bytes + nic::control::kQpn) >> 8;
  const QpState* qp = nic.FindQp(number);
  if (qp == nullptr) return;
  if (stage == 0) PrefetchObject(*qp);
  if (stage == 1) PrefetchQueue(*qp);
  if (stage == 2) PrefetchPeers(*qp);
}

void PrefetchReturn(const QpState& qp, size_t stage) {
  if (stage == 0) {
    PrefetchObject(qp.send_cq);
    PrefetchObject(qp.nic);
    if (!qp.work.empty()) PrefetchObject(qp.work.front());
  } else {
    PrefetchCqe(qp.send_cq, stage - 1);
  }
}

void PrefetchLanding(const QpState& qp, size_t stage) {
  const QpState* const remote = qp.remote;
  if (remote == nullptr) return;
  if (stage == 0) {
    PrefetchObject(*remote);
    if (!qp.work.empty()) PrefetchObject(qp.work.front());
  } else if (stage == 1) {
    PrefetchObject(remote->recv_cq);
    PrefetchObject(remote->nic);
    if (remote->memory.rq.empty()) return;
    PrefetchEntry(remote->memory.rq, remote->rq_done, nic::kReceiveStrideBytes);
  } else {
    PrefetchCqe(remote->recv_cq, stage - 2);
  }
}

}  // namespace prepost::sim
