// SPDX-License-Identifier: Apache-2.0
#include "backends/nic/host/armed_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace prepost::nic {
namespace {

FailureKind KindOf(Syndrome syndrome) {
  if (syndrome == Syndrome::kFlushed) return FailureKind::kFlushed;
  if (syndrome == Syndrome::kTransportRetryExceeded) return FailureKind::kNoAnswer;
  return FailureKind::kErrorCqe;
}

/// Which of the program's objects has this number.
template <typename Id>
std::optional<Id> IdOf(const std::vector<uint32_t>& numbers, uint32_t number) {
  const auto it = std::ranges::find(numbers, number);
  if (it == numbers.end()) return std::nullopt;
  return Id::FromIndex(static_cast<size_t>(it - numbers.begin()));
}

}  // namespace

Result<ArmedNode> ArmedNode::Make(Device& device, const NodeProgram& program,
                                  const ArmConfig& config) {
  ArmedNode node(device, program, config);
  PREPOST_RETURN_IF_ERROR(node.MakeObjects());
  return node;
}

Status ArmedNode::MakeObjects() {
  for (size_t i = 0; i < program_->cqs.size(); ++i) {
    // The host may consume nothing during a run.
    Result<Cq> made = device_->CreateCq({.entries = EntriesOf(CqId::FromIndex(i)),
                                         .ignore_overrun = true,
                                         .collapsed = !IsKept(CqId::FromIndex(i)),
                                         .producer_base = config_.first_cq_index});
    if (!made.ok()) return made.status();
    cqs_.push_back({.cq = *made, .reader = CqeReader(*made)});
    bindings_.cqns.push_back(made->number);
    bindings_.cq_bases.push_back(made->producer_base);
  }
  FindSignaled();
  PREPOST_RETURN_IF_ERROR(MakeQueuePairs());
  lkeys_.resize(config_.messages.size());
  for (size_t i = 0; i < lkeys_.size(); ++i) {
    if (config_.messages[i].empty()) continue;
    Result<uint32_t> key =
        lease_.RegisterMemory(config_.messages[i], {.local_write = config_.writable});
    if (!key.ok()) return key.status();
    lkeys_[i] = *key;
  }
  bindings_.epoch = config_.epoch;
  bindings_.sq_bases.assign(qps_.size(), config_.first_sq_index);
  return {};
}

/// On the way: for its final CQE, or for room in a ring.
bool ArmedNode::IsRead(CqId id) const {
  const CompletionQueue& cq = program_->cqs[id.index()];
  const QueuePair& qp = program_->qps[cq.qp.index()];
  return id == program_->final_cq ||
         (cq.role == CompletionQueue::Role::kReceives ? qp.receives_in_parts()
                                                      : qp.sends_in_parts());
}

/// The number of CQEs that the CQ holds. Where CQEs are not kept, only that of a run's end is
/// polled: no host asks which WQE of a broken queue was the first to fail.
uint32_t ArmedNode::EntriesOf(CqId id) const {
  if (!IsKept(id)) return 1;
  const CompletionQueue& cq = program_->cqs[id.index()];
  const QueuePair& qp = program_->qps[cq.qp.index()];
  const bool in_parts = qp.sends_in_parts() || qp.receives_in_parts();
  return config_.keeps_cqes || in_parts ? cq.entries : std::bit_ceil(cq.completions);
}

void ArmedNode::FindSignaled() {
  for (size_t i = 0; i < cqs_.size(); ++i) {
    const CompletionQueue& cq = program_->cqs[i];
    const bool is_of_sends =
        cq.role == CompletionQueue::Role::kSends || cq.role == CompletionQueue::Role::kFinal;
    if (!is_of_sends || !IsKept(CqId::FromIndex(i))) continue;
    cqs_[i].signaled.reserve(cq.completions);
    const std::vector<SendEntry>& sends = program_->qps[cq.qp.index()].sends;
    for (size_t at = 0; at < sends.size(); ++at) {
      if (sends[at].signaled) cqs_[i].signaled.push_back(static_cast<uint32_t>(at));
    }
  }
}

Status ArmedNode::MakeQueuePairs() {
  for (const QueuePair& qp : program_->qps) {
    Result<Qp> made = lease_.CreateQp({.send_cq = cq(qp.send_cq).number,
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

std::vector<QueueRearms> ArmedNode::queue_rearms() const {
  std::vector<QueueRearms> list;
  for (const QueueFeed::Rearmed& it : feed_->rearmed()) {
    list.push_back({.node = program().node,
                    .queue = Describe(program(), it),
                    .rearms = it.count,
                    .bound = it.bound});
  }
  return list;
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
  if (!feed_) {
    feed_.emplace(*device_, *program_, qps_);
    for (size_t i = 0; i < cqs_.size(); ++i) {
      PREPOST_RETURN_IF_ERROR(RequestErrorEvent(CqId::FromIndex(i)));
    }
  }
  if (images_.empty()) images_ = Encode(*program_);
  const bool is_last = armed_ == config_.messages.size();
  const Status status = feed_->Begin(images_, bindings_, /*keeps_images=*/!is_last);
  if (is_last) images_ = std::vector<QueuePairImage>();
  return status;
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
    it.is_error_event_due = false;  // this one stands for both, and goes when any CQE comes
    return device_->RequestEvent(it.cq.number);
  };
  PREPOST_RETURN_IF_ERROR(request(program_->final_cq));
  for (const CqId id : part_cqs_) {
    if (!feed_->is_complete()) {
      PREPOST_RETURN_IF_ERROR(request(id));
    } else if (!cqs_[id.index()].is_error_event_due) {
      PREPOST_RETURN_IF_ERROR(RequestErrorEvent(id));
      Take(id);  // what came before the request gives no event
    }
  }
  return {};
}

Status ArmedNode::RequestErrorEvent(CqId id) {
  cqs_[id.index()].is_error_event_due = true;
  return device_->RequestErrorEvent(cq(id).number);
}

void ArmedNode::Start() { feed_->Start(); }

Result<bool> ArmedNode::Poll(std::chrono::milliseconds timeout, int wake_fd) {
  if (timeout.count() == 0 && errors_.IsDue()) NoteDeviceErrors();
  Result<bool> done = timeout.count() == 0 ? TakeNew() : TakeOrAsk();
  if (!done.ok() || *done || timeout.count() == 0) return done;
  const Result<EventWait> wait = WaitForEvent(*device_, wake_fd, timeout);
  if (!wait.ok()) return wait.status();
  NoteWakeup();
  if (wait->event) ForgetRequests();
  NoteDeviceErrors();
  return TakeNew();
}

/// After an event. Which CQ it is of is not known; and where an event was on its way already when
/// another was asked for, an mlx5 device takes both requests for one.
void ArmedNode::ForgetRequests() {
  cqs_[program_->final_cq.index()].event_after.reset();
  for (const CqId id : part_cqs_) cqs_[id.index()].event_after.reset();
}

Result<bool> ArmedNode::TakeEvents() {
  device_->CountWakeup();
  NoteWakeup();
  NoteDeviceErrors();
  return TakeOrAsk();
}

Result<bool> ArmedNode::TakeEvents(std::span<const ErrorEvent> errors) {
  device_->CountWakeup();
  NoteWakeup();
  for (const ErrorEvent& event : errors) NoteDeviceError(event);
  return TakeOrAsk();
}

Result<bool> ArmedNode::TakeOrAsk() {
  Result<bool> done = TakeNew();
  if (!done.ok() || *done) return done;
  PREPOST_RETURN_IF_ERROR(RequestEvents());
  return TakeNew();  // what came before the request gives no event
}

bool ArmedNode::is_done() const {
  const size_t final_cq = program_->final_cq.index();
  return cqs_[final_cq].taken == program_->cqs[final_cq].completions;
}

Result<bool> ArmedNode::TakeNew() {
  if (!feed_->is_complete()) {
    for (const CqId id : part_cqs_) Take(id);
    if (!failure_) feed_->Refill();
  }
  Take(program_->final_cq);
  FindCauseOfFlush();
  PREPOST_RETURN_IF_ERROR(Verdict());
  return is_done();
}

QueueFeed::Count ArmedNode::Refillable() {
  if (feed_->is_complete()) return {};
  for (const CqId id : part_cqs_) Take(id);
  return failure_ ? QueueFeed::Count() : feed_->refillable();
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
  TakeAll();
  FindCauseOfFlush();
  return Verdict();
}

void ArmedNode::TakeAll() {
  NoteDeviceErrors();
  for (size_t i = 0; i < cqs_.size(); ++i) Take(CqId::FromIndex(i));
}

/// A queue is flushed by its node's NIC after the CQE, or the event, that says why, or because
/// somebody has moved the QP to the error state. That CQE may be of a CQ that has not been polled,
/// or had been when it came; when the flush is seen, it is there.
void ArmedNode::FindCauseOfFlush() {
  if (failure_ && failure_->kind == FailureKind::kFlushed) TakeAll();
}

Status ArmedNode::Verdict() const { return failure_ ? Rejected(failure_->message) : Status(); }

void ArmedNode::Note(Failure failure) {
  failure.message = fmt::format("node {}: {}", program_->node.value, failure.message);
  if (!failure_ || failure.kind < failure_->kind) failure_ = std::move(failure);
}

void ArmedNode::NoteDeviceErrors() {
  if (device_->AckEvents() != 0) ForgetRequests();
  for (const ErrorEvent& event : device_->TakeErrors()) NoteDeviceError(event);
}

void ArmedNode::NoteDeviceError(const ErrorEvent& event) {
  const auto note = [&](const auto& id) {
    Note({.kind = FailureKind::kQueueEvent,
          .message = fmt::format("{}: {}", Describe(*program_, id), Name(event.kind))});
  };
  switch (event.kind) {
    case ErrorEvent::Kind::kErrorCqe:  // only says which CQ to poll
      if (const auto cq = IdOf<CqId>(bindings_.cqns, event.number)) Take(*cq);
      return;
    case ErrorEvent::Kind::kCqError:
      if (const auto cq = IdOf<CqId>(bindings_.cqns, event.number)) note(*cq);
      return;
    case ErrorEvent::Kind::kQpFatal:
    case ErrorEvent::Kind::kQpRequest:
    case ErrorEvent::Kind::kQpAccess:
      if (const auto qp = IdOf<QpId>(bindings_.qpns, event.number)) note(*qp);
      return;
    case ErrorEvent::Kind::kDeviceFatal:
    case ErrorEvent::Kind::kPortDown:
      return Note({.kind = FailureKind::kDeviceEvent, .message = Name(event.kind)});
  }
}

Result<NodePosition> ArmedNode::Position() const {
  NodePosition position;
  // Counters have 16 bits; a message may have more WQEs, but few are between them and the last
  // completion.
  const auto count = [](uint32_t completed, uint16_t base, uint16_t counter) {
    const auto ahead = static_cast<int16_t>(counter - static_cast<uint16_t>(base + completed));
    return completed + static_cast<uint32_t>(int32_t{ahead});
  };
  for (size_t i = 0; i < qps_.size(); ++i) {
    const Result<QpCounters> counters = device_->QueryQp(qps_[i].number);
    if (!counters.ok()) return counters.status();
    const QpId id = QpId::FromIndex(i);
    const QueueFeed::Progress progress = feed_->progress(id);
    const auto sends = [&](uint16_t counter) {
      return count(progress.sends_completed, bindings_.sq_bases[i], counter);
    };
    const auto receives = [&](uint16_t counter) {
      return count(progress.receives_completed, feed_->receive_base(id), counter);
    };
    position.qps.push_back({.state = counters->state,
                            .sends_written = progress.sends_written,
                            .sends_posted = sends(counters->sq_posted),
                            .sends_fetched = sends(counters->sq_fetched),
                            .receives_posted = receives(counters->rq_posted),
                            .receives_taken = receives(counters->rq_taken)});
  }
  for (size_t i = 0; i < cqs_.size(); ++i) {
    const Result<CqCounters> counters = device_->QueryCq(cqs_[i].cq.number);
    if (!counters.ok()) return counters.status();
    position.cqes.push_back((counters->producer - bindings_.cq_bases[i]) & kCqIndexMask);
  }
  return position;
}

SendWqe ArmedNode::Decode(QpId id, uint32_t send) const {
  SendWqe wqe;
  const uint32_t index = bindings_.sq_bases[id.index()] + send;
  DecodeSend(qp(id).sq, static_cast<uint16_t>(index), &wqe);
  return wqe;
}

std::optional<CqId> ArmedNode::WaitedCq(const SendWqe& wait) const {
  return IdOf<CqId>(bindings_.cqns, wait.number);
}

uint32_t ArmedNode::WaitedCqe(const SendWqe& wait, CqId cq) const {
  return (wait.index - bindings_.cq_bases[cq.index()]) & kCqIndexMask;
}

std::optional<QpCounters> ArmedNode::Query(QpId id) const {
  const Result<QpCounters> counters = device_->QueryQp(qp(id).number);
  return counters.ok() ? std::optional(*counters) : std::nullopt;
}

std::optional<CqCounters> ArmedNode::Query(CqId id) const {
  const Result<CqCounters> counters = device_->QueryCq(cq(id).number);
  return counters.ok() ? std::optional(*counters) : std::nullopt;
}

/// Reads and checks what the CQ has, at most what belongs to this message, up to the first CQE that
/// is wrong.
uint64_t ArmedNode::cqes_read() const {
  uint64_t count = 0;
  for (const Completions& it : cqs_) count += it.taken;
  return count;
}

void ArmedNode::Take(CqId id) {
  if (!IsKept(id)) return;
  Completions& it = cqs_[id.index()];
  const CompletionQueue& queue = program_->cqs[id.index()];
  while (it.taken < queue.completions && !it.is_wrong) {
    const std::optional<Cqe> cqe = it.reader.Next();
    if (!cqe) break;
    it.is_wrong = !TakeOne(id, *cqe);
    if (!it.is_wrong) ++it.taken;
  }
  if (queue.role == CompletionQueue::Role::kReceives) {
    feed_->ReceivesCompleted(queue.qp, it.taken);
  } else if (queue.role != CompletionQueue::Role::kIdle) {
    feed_->SendsCompleted(queue.qp, it.completed);
  }
}

/// False when it is wrong, which is noted.
bool ArmedNode::TakeOne(CqId id, const Cqe& cqe) {
  Completions& it = cqs_[id.index()];
  const CompletionQueue& queue = program_->cqs[id.index()];
  FailureKind kind = FailureKind::kWrongCqe;
  std::string wrong;
  if (cqe.is_error()) {
    kind = KindOf(cqe.syndrome);
    wrong = Name(cqe.syndrome);
  } else if (queue.role != CompletionQueue::Role::kReceives) {
    wrong = WrongSend(it, queue.qp, cqe);
  } else {
    const ReceiveEntry& expected = program_->qps[queue.qp.index()].receives[it.taken];
    wrong = WrongReceive(
        cqe, {.block = expected.block, .bytes = expected.bytes, .epoch = bindings_.epoch});
  }
  if (wrong.empty()) return true;
  Note({kind, queue.qp, fmt::format("{}: CQE {}: {}", Describe(*program_, id), it.taken, wrong)});
  return false;
}

/// A CQE of a send queue must be that of the next signaled WQE.
std::string ArmedNode::WrongSend(Completions& it, QpId qp, const Cqe& cqe) const {
  if (it.taken >= it.signaled.size()) return "none of its WQEs is left that makes one";
  const uint32_t next = it.signaled[it.taken];
  const auto index = static_cast<uint16_t>(bindings_.sq_bases[qp.index()] + next);
  if (cqe.wqe_counter != index) {
    return fmt::format("of WQE {}, expected {}", cqe.wqe_counter, index);
  }
  it.completed = next + 1;
  return "";
}

}  // namespace prepost::nic
