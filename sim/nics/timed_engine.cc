// SPDX-License-Identifier: Apache-2.0
//
// Virtual time: when the things happen that the other files carry out. A message in costs c of one
// NIC each, and with wire(b) what its b bytes and the overhead take on the links as they are
// shared:
//
//   the WAIT before it   passes c.wait after its CQE is there and the queue is through with what
//                        stands before it
//   its own WQE          c.wqe later it is ready
//   the wire             it starts when it is ready and the message before it on the QP has left;
//                        it leaves wire(b) later
//   the receiver's CQE   latency + c.cqe after it has left
//   the sender's CQE     a latency later, when the acknowledgement is back
//
// Queues run ahead: a WAIT that has passed, or a WQE whose turn comes after costs, is executed at
// once, and `sq_until` says until when the queue would be busy with it. So WAITs cost no events of
// the clock, a block transfer few: its start, its end on the wire, both CQEs; and none of these but
// the end where costs and latency are 0. What is read early, a payload's tag, is checked the more
// strictly for that: it has to be there when its WQE is fetched.
#include "sim/nics/timed_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <span>

#include "sim/causes/time_trail.h"
#include "sim/network/fluid_network.h"
#include "sim/network/long_paths.h"
#include "sim/nics/prefetch.h"

namespace prepost::sim {

using nic::Opcode;

namespace {

/// Of a payload that could not be read.
constexpr uint32_t kRefusedTag = 0xffffffff;

/// Messages that arrive together.
constexpr size_t kBatch = 8;
/// How many QPs ahead of its turn a queue is prefetched.
constexpr size_t kFar = 4;
constexpr size_t kNear = 2;

/// What came to `place`.
std::string Describe(uint32_t tag, const emulated::TagPlace& place) {
  if (tag == emulated::kNoTag) return "a block that was not there yet";
  const int64_t block =
      static_cast<int64_t>(place.block) + (static_cast<int64_t>(tag) - int64_t{place.right});
  if (block < 0 || static_cast<uint64_t>(block) >= place.blocks) return "another message's block";
  return fmt::format("block {}", block);
}

}  // namespace

uint64_t TimedEngine::NowNs() const {
  return static_cast<uint64_t>(now() / kPicosecondsPerNanosecond);
}

/// Most have done what they had to.
void TimedEngine::Kick(QpState& qp) {
  if (qp.state != nic::QpState::kReadyToSend || qp.is_due || !CanProceed(qp)) return;
  qp.is_due = true;
  due_.push_back(&qp);
}

bool TimedEngine::IsModelled(Opcode opcode) const {
  const bool is_coordination =
      opcode == Opcode::kWait || opcode == Opcode::kSendEnable || opcode == Opcode::kRecvEnable;
  return is_coordination || nic::SendWqe::HeadSegments(opcode) == 1;
}

void TimedEngine::TryAgainLater(QpState& qp, Retry retry) {
  qp.rnr_waiting = true;
  RetryAt(After(now(), retry == Retry::kNoReceive ? costs().rnr_timer : costs().ack_timeout), qp);
}

void TimedEngine::OnDoorbell(const NicState& nic, uint32_t qpn) {
  if (trail() != nullptr) trail()->ReadDoorbell(nic.node, qpn);
}

void TimedEngine::OnEnable(const QpState& target, uint16_t limit) {
  if (trail() != nullptr) trail()->EndEnable(target.nic.node, target.number, limit);
}

void TimedEngine::OnRetire(const QpState& qp, const Work& work) {
  if (trail() == nullptr) return;
  trail()->Retire(qp.nic.node, qp.number, work.wqe_index, IsSend(work.opcode), work.signaled,
                  now());
}

void TimedEngine::OnCqe(const NicState& nic, const CqState& cq) {
  if (trail() != nullptr) trail()->WriteCqe(nic.node, cq.number);
}

void TimedEngine::OnWake(const QpState& qp) {
  if (trail() != nullptr) trail()->Wake(qp.nic.node, qp.number);
}

bool TimedEngine::Run(uint64_t steps) {
  Clock& clock = *time_.clock;
  const FluidNetwork& network = *time_.network;
  for (uint64_t i = 0; i < steps; ++i) {
    ++steps_;
    if (HasWork()) {
      Proceed(TakeDue());
    } else if (!(network.next_end() == clock.now() && EndFlows()) && !clock.RunDue()) {
      if (!events_.empty() || clock.TakeHold()) {
        if (!HostsAct()) break;
      } else if (!RetrySenders() && !AdvanceTime() && !WakeRnrWaiters(true)) {
        return false;
      }
    }
  }
  return true;
}

/// Which of the queues is first makes no difference to what happens when. In the order in which
/// they became due, what a queue needs is prefetched before it is its turn.
QpState& TimedEngine::TakeDue() {
  const size_t left = due_.size() - due_taken_;
  if (left > kNear && time_.clock->prefetches()) {
    if (left > kFar) PrefetchQueue(*due_[due_taken_ + kFar]);
    PrefetchPeers(*due_[due_taken_ + kNear]);
  }
  QpState& qp = *due_[due_taken_++];
  if (due_taken_ == due_.size()) {
    due_.clear();
    due_taken_ = 0;
  }
  qp.is_due = false;
  return qp;
}

/// Does all that the queue can do now.
void TimedEngine::Proceed(QpState& qp) {
  while (qp.state == nic::QpState::kReadyToSend) {
    if (CanFetch(qp)) {
      Fetch(qp);
    } else if (CanTransmit(qp)) {
      Transmit(qp);
    } else if (CanDeliver(qp)) {  // it failed before it was sent
      Deliver(qp);
    } else if (!qp.work.empty() && qp.work.front().state >= Work::State::kDone) {
      Complete(qp);
    } else {
      return;
    }
  }
}

/// False when the engine is to stop, for hosts to act or for good.
bool TimedEngine::HostsAct() {
  if (time_.hosts == nullptr) return false;
  acted_on_.clear();
  acted_on_.swap(events_);
  return time_.hosts->Act(acted_on_);
}

/// Goes on to when something is due. False when nothing will be.
bool TimedEngine::AdvanceTime() {
  Clock& clock = *time_.clock;
  FluidNetwork& network = *time_.network;
  Picoseconds next = std::min(clock.next_at(), network.NextEvent(now()));
  if (!retries_.empty()) next = SkipRetries(next);
  if (next == kNever) return false;
  clock.AdvanceTo(next);
  return true;
}

/// Some of the messages that leave the wire now; false when none does any more. A few at a time,
/// so that all are prefetched while the first are at work.
bool TimedEngine::EndFlows() {
  std::array<void*, kBatch> qps;
  const size_t count = time_.network->TakeEnded(now(), qps);
  if (time_.clock->prefetches()) PrefetchLandings(std::span(qps).first(count));
  for (size_t i = 0; i < count; ++i) EndFlow(*static_cast<QpState*>(qps[i]));
  return count != 0;
}

uint16_t TimedEngine::StagesOf(Due what) {
  switch (what) {
    case kDoorbellDue:
      return kDoorbellStages;
    case kSendEnableDue:
    case kRecvEnableDue:
      return 2;
    case kStartDue:  // its queue has read the WQE right before
      return 0;
    case kLandDue:
      return kLandingStages;
    case kReturnDue:
      return kReturnStages;
  }
  return 0;
}

void TimedEngine::Prefetch(const TimedEvent& event, size_t stage) const {
  switch (static_cast<Due>(event.what)) {
    case kDoorbellDue:
      return PrefetchDoorbell(*static_cast<const NicState*>(event.subject), event.value, stage);
    case kReturnDue:
      return PrefetchReturn(*static_cast<const QpState*>(event.subject), stage);
    case kLandDue:
      return PrefetchLanding(*static_cast<const QpState*>(event.subject), stage);
    case kSendEnableDue:
    case kRecvEnableDue:
    case kStartDue:
      break;
  }
  const auto& qp = *static_cast<const QpState*>(event.subject);
  return stage == 0 ? PrefetchQueue(qp) : PrefetchPeers(qp);
}

void TimedEngine::OnTime(const TimedEvent& event) {
  if (event.what == kDoorbellDue) {
    return ReadDoorbell(*static_cast<NicState*>(event.subject), event.value);
  }
  QpState& qp = *static_cast<QpState*>(event.subject);
  const auto index = static_cast<uint16_t>(event.value);
  switch (static_cast<Due>(event.what)) {
    case kDoorbellDue:
      return;
    case kSendEnableDue:
    case kRecvEnableDue:
      return Enable(qp, event.what == kSendEnableDue, index);
    case kStartDue:
      qp.is_wire_busy = false;
      return Kick(qp);
    case kLandDue:
      return Land(qp);
    case kReturnDue:
      return FinishReturn(qp, index);
  }
}

/// False: that is never.
bool TimedEngine::ScheduleDue(Picoseconds at, void* subject, Due what, uint64_t value) {
  return time_.clock->Schedule(
      at, *this, {.subject = subject, .value = value, .what = what, .stages = StagesOf(what)});
}

/// A host's doorbells come one after the other, some of them on their way at once.
void TimedEngine::Doorbell(NicState& nic, uint64_t first_bytes) {
  const Picoseconds after_last =
      nic.has_rung ? After(nic.doorbells_until, costs().doorbell_interval) : 0;
  nic.has_rung = true;
  nic.doorbells_until = std::max(After(now(), costs().doorbell), after_last);
  if (trail() != nullptr) trail()->Ring(nic.node, now(), nic.doorbells_until);
  if (nic.doorbells_until == now()) return ReadDoorbell(nic, first_bytes);
  ScheduleDue(nic.doorbells_until, &nic, kDoorbellDue, first_bytes);
}

void TimedEngine::BeginWqe(QpState& qp) {
  const bool is_wait = wqe_.opcode == Opcode::kWait;
  const Picoseconds cost = is_wait ? costs().wait : costs().wqe;
  const Picoseconds until = After(std::max(now(), qp.sq_until), cost);
  if (trail() != nullptr && until != kNever) {
    trail()->QueueWork(qp.nic.node, qp.number, now(), qp.sq_until, cost,
                       is_wait ? TimeCause::kWait : TimeCause::kWqe);
  }
  qp.sq_until = until;
}

bool TimedEngine::BeginWork(QpState& qp, Work& work) {
  if (trail() != nullptr) {
    trail()->Start(qp.nic.node, qp.number, work.wqe_index, work.state == Work::State::kQueued,
                   work.signaled);
  }
  work.ready = qp.sq_until;
  if (work.state == Work::State::kDone) {
    // What leaves no trace is not worth a place.
    if (!work.signaled) return !qp.work.empty() || options_.log;
    const Picoseconds at = After(std::max(now(), work.ready), costs().cqe);
    if (at == now()) return true;
    work.state = Work::State::kReturning;
    ScheduleDue(at, &qp, kReturnDue, work.wqe_index);
  }
  if (work.state != Work::State::kQueued || wqe_.data.empty()) return true;
  const nic::DataPiece& piece = wqe_.data.front();
  const emulated::TagPlace place = wqe_.data.size() == 1
                                       ? qp.nic.memory.FindTag(piece, emulated::Use::kLocalRead)
                                       : emulated::TagPlace();
  work.tag = place.tag != nullptr ? *place.tag : place.is_untold ? emulated::kUntold : kRefusedTag;
  return true;
}

bool TimedEngine::HoldsEnable(QpState& qp, QpState& target, bool sends, uint16_t limit) {
  if (sends && trail() != nullptr)
    trail()->BeginEnable(qp.nic.node, qp.number, target.number, limit);
  if (qp.sq_until <= now()) return false;
  ScheduleDue(qp.sq_until, &target, sends ? kSendEnableDue : kRecvEnableDue, limit);
  return true;
}

/// True when the message may not start yet, or not at all: then what comes of that is under way.
bool TimedEngine::HoldsStart(QpState& qp, Work& work) {
  if (work.tag == kRefusedTag) {
    FailMove(qp, work, emulated::CopyOutcome::kSourceRefused);
    return true;
  }
  if (work.ready <= now()) return false;
  qp.is_wire_busy = true;
  ScheduleDue(work.ready, &qp, kStartDue, 0);
  return true;
}

bool TimedEngine::Depart(QpState& qp, Work& work) {
  work.state = Work::State::kUnderWay;
  if (trail() != nullptr) trail()->Depart(qp.nic.node, qp.number, now());
  const uint64_t bytes = work.bytes + costs().message_overhead_bytes;
  if (bytes == 0 || &qp.nic == &qp.remote->nic) {
    LeaveWire(qp);
    return true;
  }
  qp.is_wire_busy = true;
  time_.network->Start(now(), {.from = qp.nic.node,
                               .to = qp.remote->nic.node,
                               .bytes = bytes,
                               .queue = qp.number,
                               .owner = &qp});
  if (time_.paths != nullptr) time_.paths->Begin(qp.nic.node, qp.remote->nic.node);
  return true;
}

void TimedEngine::EndFlow(QpState& qp) {
  qp.is_wire_busy = false;
  if (time_.paths != nullptr) time_.paths->End(qp.nic.node, qp.remote->nic.node);
  if (qp.state != nic::QpState::kReadyToSend) return;  // it was flushed meanwhile
  LeaveWire(qp);
  Kick(qp);
}

void TimedEngine::LeaveWire(QpState& qp) {
  if (trail() != nullptr) NoteLeaving(qp);
  const Picoseconds delay =
      After(time_.network->Latency(qp.nic.node, qp.remote->nic.node), costs().cqe);
  if (delay == 0) return Land(qp);
  ScheduleDue(After(now(), delay), &qp, kLandDue, 0);
}

/// The first message under way has left; before it is landed.
void TimedEngine::NoteLeaving(const QpState& qp) {
  size_t position = qp.to_deliver;
  size_t under_way = trail()->UnderWay(qp.nic.node, qp.number);
  for (; position < qp.work.size(); ++position) {
    if (qp.work[position].state == Work::State::kUnderWay && under_way-- == 0) break;
  }
  if (position == qp.work.size()) return;
  const uint64_t bytes = qp.work[position].bytes + costs().message_overhead_bytes;
  const NodeId from = qp.nic.node, to = qp.remote->nic.node;
  const bool has_wire = bytes != 0 && from != to;
  trail()->Leave(from, qp.number, now(), has_wire ? time_.network->TimeAlone(from, to, bytes) : 0);
}

/// The first message under way is at the receiver.
void TimedEngine::Land(QpState& qp) {
  if (qp.state != nic::QpState::kReadyToSend) return;
  size_t position = qp.to_deliver;
  while (position < qp.work.size() && qp.work[position].state != Work::State::kUnderWay) ++position;
  if (position == qp.work.size()) return;
  Work& work = qp.work[position];
  work.state = Work::State::kMoved;
  if (trail() != nullptr) {
    const Picoseconds latency = time_.network->Latency(qp.nic.node, qp.remote->nic.node);
    trail()->Land(qp.nic.node, qp.number, now(), latency);
  }
  if (qp.remote->CanReceive() && Reaches(qp, *qp.remote)) {
    const emulated::CopyOutcome outcome = StoreTag(qp, work);
    if (outcome != emulated::CopyOutcome::kDone) FailMove(qp, work, outcome);
    qp.remote->landed_at = now();
  }
  Deliver(qp);
  Kick(qp);
}

emulated::CopyOutcome TimedEngine::StoreTag(QpState& qp, const Work& work) {
  if (work.bytes == 0) return emulated::CopyOutcome::kDone;
  QpState& remote = *qp.remote;
  nic::DecodeReceive(remote.memory.rq, work.receive & (remote.config.rq_wqes - 1),
                     remote.config.rq_stride, &receive_);
  // It is as long as the receive says at most: Place() has checked that.
  if (receive_.size() != 1) return emulated::CopyOutcome::kTargetRefused;
  nic::DataPiece piece = receive_.front();
  piece.bytes = static_cast<uint32_t>(work.bytes);
  const emulated::TagPlace place = remote.nic.memory.FindTag(piece, emulated::Use::kLocalWrite);
  if (place.is_untold) return emulated::CopyOutcome::kDone;
  if (place.tag == nullptr) return emulated::CopyOutcome::kTargetRefused;
  if (*place.tag != emulated::kNoTag) {
    Misuse(remote.nic, fmt::format("QP {:#x}: block {} came although it was there", remote.number,
                                   place.block));
  } else if (work.tag != place.right) {
    Misuse(remote.nic, fmt::format("QP {:#x}: {} came where block {} belongs", remote.number,
                                   Describe(work.tag, place), place.block));
  }
  *place.tag = work.tag;
  return emulated::CopyOutcome::kDone;
}

/// The receiver has the message of `work`.
void TimedEngine::Acknowledge(QpState& qp, Work& work) {
  work.state = Work::State::kDone;
  const Picoseconds delay = time_.network->Latency(qp.remote->nic.node, qp.nic.node);
  if (delay == 0) return;
  const Picoseconds at = After(now(), delay);
  if (!work.signaled) {  // nobody sees it, but what stands behind it
    work.ready = at;
    return;
  }
  work.state = Work::State::kReturning;
  ScheduleDue(at, &qp, kReturnDue, work.wqe_index);
}

/// Of the oldest WQE, which is done. True when it has to wait for acknowledgements of those before
/// it.
bool TimedEngine::HoldsReturn(QpState& qp) {
  Work& work = qp.work.front();
  if (!work.signaled) {
    qp.acked_until = std::max(qp.acked_until, work.ready);
    return false;
  }
  if (qp.acked_until <= now()) return false;
  work.state = Work::State::kReturning;
  ScheduleDue(qp.acked_until, &qp, kReturnDue, work.wqe_index);
  return true;
}

void TimedEngine::FinishReturn(QpState& qp, uint16_t wqe_index) {
  if (qp.state != nic::QpState::kReadyToSend) return;
  for (size_t i = 0; i < qp.work.size(); ++i) {
    Work& work = qp.work[i];
    if (work.wqe_index != wqe_index || work.state != Work::State::kReturning) continue;
    work.state = Work::State::kDone;
    return Kick(qp);
  }
}

void TimedEngine::RetryAt(Picoseconds at, QpState& qp) {
  qp.retry_at = at;
  if (at == kNever) return time_.clock->NoteMissed();
  retries_.push_back({at, &qp});
  std::ranges::push_heap(retries_, std::less());
}

/// Not noted for something that is over by now.
bool TimedEngine::IsDue(const RetryTime& retry) {
  const QpState& qp = *retry.qp;
  return qp.state == nic::QpState::kReadyToSend && qp.rnr_waiting && qp.retry_at == retry.at;
}

TimedEngine::RetryTime TimedEngine::TakeRetry() {
  std::ranges::pop_heap(retries_, std::less());
  const RetryTime retry = retries_.back();
  retries_.pop_back();
  return retry;
}

/// When all else that happens now has happened, posts of hosts among it: lets those try again whose
/// time it is. When nothing else goes on, no receive will come but from a host that polls: then
/// time stands still for those that would try for ever. True when one tries.
bool TimedEngine::RetrySenders() {
  while (!retries_.empty() && retries_.front().at == now()) {
    const RetryTime retry = TakeRetry();
    if (!IsDue(retry)) continue;
    const bool is_last = !HasWork() && time_.network->flows() == 0 && time_.clock->events() == 0;
    if (is_last && IsHopeless(*retry.qp)) {
      rnr_waiters_.push_back(retry.qp);
      continue;
    }
    retry.qp->rnr_waiting = false;
    Kick(*retry.qp);
  }
  return HasWork();
}

/// Nothing else happens before `next`. So nobody posts a receive before, and those that wait for
/// one try in vain: that is only counted, however long it takes. When time is to go on to.
Picoseconds TimedEngine::SkipRetries(Picoseconds next) {
  skipped_.clear();
  while (!retries_.empty() && retries_.front().at < next) {
    const RetryTime retry = TakeRetry();
    if (!IsDue(retry)) continue;
    skipped_.push_back(retry);
    // A try that counts; or nothing else goes on.
    if (next == kNever || !IsHopeless(*retry.qp)) next = retry.at;
  }
  for (const auto& [at, qp] : skipped_) {
    Picoseconds again = at;
    if (at < next) {
      const Picoseconds tries = (next - at - 1) / costs().rnr_timer + 1;
      counters_.rnr_retries += static_cast<uint64_t>(tries);
      qp->remote->nic.rnr_retries += static_cast<uint64_t>(tries);
      again = After(at, tries * costs().rnr_timer);
    }
    RetryAt(again, *qp);
  }
  return next;
}

}  // namespace prepost::sim
