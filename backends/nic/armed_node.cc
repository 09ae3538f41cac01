// SPDX-License-Identifier: Apache-2.0
#include "prepost/backends/nic/armed_node.h"

#include <fmt/format.h>

#include <utility>

namespace prepost::nic {
Result<QpId> FindQp(const NodeProgram& program, NodeId peer, uint32_t lane) {
  for (size_t i = 0; i < program.qps.size(); ++i) {
    const QueuePair& qp = program.qps[i];
    if (!qp.loopback && qp.peer == peer && qp.lane == lane) return QpId::FromIndex(i);
  }
  return Rejected(
      fmt::format("node {} has no QP to node {} on lane {}", program.node.value, peer.value, lane));
}

Result<ArmedNode> ArmedNode::Make(Device& device, const NodeProgram& program,
                                  const ArmConfig& config) {
  ArmedNode node(device, program, config);
  PREPOST_RETURN_IF_ERROR(node.MakeObjects());
  return node;
}

Status ArmedNode::MakeObjects() {
  for (const CompletionQueue& cq : program_->cqs) {
    // The host may consume nothing during a run; flushed WQEs may give more CQEs than planned.
    Result<Cq> made = device_->CreateCq(
        {.entries = cq.entries, .ignore_overrun = true, .producer_base = config_.first_cq_index});
    if (!made.ok()) return made.status();
    cqs_.push_back({.cq = *made, .reader = CqeReader(*made)});
    bindings_.cqns.push_back(made->number);
    bindings_.cq_bases.push_back(made->producer_base);
  }
  PREPOST_RETURN_IF_ERROR(MakeQueuePairs());
  lkeys_.resize(config_.messages.size());
  for (size_t i = 0; i < lkeys_.size(); ++i) {
    if (config_.messages[i].empty()) continue;
    Result<uint32_t> key =
        device_->RegisterMemory(config_.messages[i], {.local_write = config_.writable});
    if (!key.ok()) return key.status();
    lkeys_[i] = *key;
  }
  bindings_.epoch = config_.epoch;
  bindings_.sq_bases.assign(qps_.size(), config_.first_sq_index);
  images_ = Encode(*program_);
  return {};
}

Status ArmedNode::MakeQueuePairs() {
  for (const QueuePair& qp : program_->qps) {
    Result<Qp> made = device_->CreateQp({.send_cq = cq(qp.send_cq).number,
                                         .recv_cq = cq(qp.recv_cq).number,
                                         .sq_wqebbs = qp.sq_wqebbs,
                                         .sq_base = config_.first_sq_index,
                                         .rq_wqes = qp.rq_wqes,
                                         .rq_stride = kReceiveStrideBytes,
                                         .cd_master = !qp.managed,
                                         .managed_send = qp.managed,
                                         .rnr_retry = config_.rnr_retry});
    if (!made.ok()) return made.status();
    qps_.push_back(*made);
    bindings_.qpns.push_back(made->number);
    if (qp.sends_in_parts()) part_cqs_.push_back(qp.send_cq);
    if (qp.receives_in_parts()) part_cqs_.push_back(qp.recv_cq);
    if (!qp.loopback) continue;
    PREPOST_RETURN_IF_ERROR(
        device_->Connect(made->number, {device_->port_address(), made->number}));
  }
  return {};
}

OpenNode ArmedNode::open_node() const {
  OpenNode open{.node = program_->node, .device = device_, .qps = {}};
  for (size_t i = 0; i < qps_.size(); ++i) {
    const QueuePair& pair = program_->qps[i];
    if (!pair.loopback) open.qps.push_back({pair.peer, pair.lane, qps_[i].number});
  }
  return open;
}

Status ArmedNode::Arm() {
  PREPOST_CHECK(armed_ < config_.messages.size());
  if (armed_ != 0) AdvanceBases();
  bindings_.lkey = lkeys_[armed_];
  bindings_.address = reinterpret_cast<uintptr_t>(config_.messages[armed_].data());
  ++armed_;
  if (!feed_) feed_.emplace(*device_, *program_, qps_);
  return feed_->Begin(images_, bindings_);
}

/// From one message to the next: counters go on where they stand.
void ArmedNode::AdvanceBases() {
  for (size_t i = 0; i < qps_.size(); ++i) {
    bindings_.sq_bases[i] =
        static_cast<uint16_t>(bindings_.sq_bases[i] + program_->qps[i].sends.size());
  }
  for (size_t i = 0; i < cqs_.size(); ++i) {
    bindings_.cq_bases[i] = (bindings_.cq_bases[i] + program_->cqs[i].completions) & kCqIndexMask;
    cqs_[i].taken = cqs_[i].completed = 0;
    cqs_[i].event_after.reset();
  }
  ++bindings_.epoch;
}

Status ArmedNode::RequestEvents() {
  const auto request = [&](CqId id) -> Status {
    Completions& it = cqs_[id.index()];
    const uint32_t expected = program_->cqs[id.index()].completions;
    if (it.taken == expected || it.event_after == it.taken) return {};
    it.event_after = it.taken;
    return device_->RequestEvent(it.cq.number);
  };
  PREPOST_RETURN_IF_ERROR(request(program_->final_cq));
  if (feed_->is_complete()) return {};
  for (const CqId id : part_cqs_) PREPOST_RETURN_IF_ERROR(request(id));
  return {};
}

void ArmedNode::Start() { feed_->Start(); }

Result<bool> ArmedNode::Poll(std::chrono::milliseconds timeout, int wake_fd) {
  Result<bool> done = timeout.count() == 0 ? Look() : LookOrAsk();
  if (!done.ok() || *done || timeout.count() == 0) return done;
  const Result<EventWait> wait = WaitForEvent(*device_, wake_fd, timeout);
  if (!wait.ok()) return wait.status();
  return Look();
}

Result<bool> ArmedNode::TakeEvents() {
  device_->CountWakeup();
  device_->AckEvents();
  return LookOrAsk();
}

Result<bool> ArmedNode::LookOrAsk() {
  Result<bool> done = Look();
  if (!done.ok() || *done) return done;
  PREPOST_RETURN_IF_ERROR(RequestEvents());
  return Look();  // what came before the request gives no event
}

bool ArmedNode::is_done() const {
  const size_t final_cq = program_->final_cq.index();
  return cqs_[final_cq].taken == program_->cqs[final_cq].completions;
}

Result<bool> ArmedNode::Look() {
  if (!feed_->is_complete()) {
    for (const CqId id : part_cqs_) PREPOST_RETURN_IF_ERROR(Take(id));
    feed_->Refill();
  }
  PREPOST_RETURN_IF_ERROR(Take(program_->final_cq));
  return is_done();
}

Status ArmedNode::CheckAll() {
  PREPOST_RETURN_IF_ERROR(CheckSoFar());
  for (size_t i = 0; i < cqs_.size(); ++i) {
    const uint32_t expected = program_->cqs[i].completions;
    if (cqs_[i].taken == expected) continue;
    return Rejected(fmt::format("node {}: {}: CQE {}: missing, {} were expected",
                                program_->node.value, Describe(*program_, CqId::FromIndex(i)),
                                cqs_[i].taken, expected));
  }
  return {};
}

Status ArmedNode::CheckSoFar() {
  for (size_t i = 0; i < cqs_.size(); ++i) PREPOST_RETURN_IF_ERROR(Take(CqId::FromIndex(i)));
  return {};
}

/// Reads and checks what the CQ has, at most what belongs to this message.
Status ArmedNode::Take(CqId id) {
  Completions& it = cqs_[id.index()];
  const CompletionQueue& queue = program_->cqs[id.index()];
  while (it.taken < queue.completions) {
    const std::optional<Cqe> cqe = it.reader.Next();
    if (!cqe) break;
    PREPOST_RETURN_IF_ERROR(TakeOne(id, *cqe));
    ++it.taken;
  }
  if (queue.role == CompletionQueue::Role::kReceives) {
    feed_->ReceivesCompleted(queue.qp, it.taken);
  } else if (queue.role != CompletionQueue::Role::kIdle) {
    feed_->SendsCompleted(queue.qp, it.completed);
  }
  return {};
}

Status ArmedNode::TakeOne(CqId id, const Cqe& cqe) {
  Completions& it = cqs_[id.index()];
  const CompletionQueue& queue = program_->cqs[id.index()];
  const QueuePair& qp = program_->qps[queue.qp.index()];
  std::string wrong;
  if (cqe.is_error()) {
    wrong = Name(cqe.syndrome);
  } else if (queue.role != CompletionQueue::Role::kReceives) {
    wrong = WrongSend(it, qp, cqe);
  } else {
    const ReceiveEntry& expected = qp.receives[it.taken];
    wrong = WrongReceive(
        cqe, {.block = expected.block, .bytes = expected.bytes, .epoch = bindings_.epoch});
  }
  if (wrong.empty()) return {};
  return Rejected(fmt::format("node {}: {}: CQE {}: {}", program_->node.value,
                              Describe(*program_, id), it.taken, wrong));
}

/// A CQE of a send queue must be that of the next signaled WQE.
std::string ArmedNode::WrongSend(Completions& it, const QueuePair& qp, const Cqe& cqe) const {
  uint32_t next = it.completed;
  while (next < qp.sends.size() && !qp.sends[next].signaled) ++next;
  const size_t of_qp = static_cast<size_t>(&qp - program_->qps.data());
  const auto index = static_cast<uint16_t>(bindings_.sq_bases[of_qp] + next);
  if (cqe.wqe_counter != index) {
    return fmt::format("of WQE {}, expected {}", cqe.wqe_counter, index);
  }
  it.completed = next + 1;
  return "";
}

}  // namespace prepost::nic
