// SPDX-License-Identifier: Apache-2.0
//
// Engine: executes the WQEs of all NICs of a fabric, step by step, from nothing but their memory:
// rings, doorbell records and doorbells. The rules are those that drivers and tests of mlx5
// hardware rely on; each is named R1..R14 where it is carried out, and has a test. One thread at a
// time.
//
//   R1   a send queue is fetched up to its doorbell (managed: its SEND_EN), indices modulo 2^16
//   R2   a WQE names its own index and queue, or the queue breaks
//   R3   WAIT passes when its CQ's producer counter has passed the index, modulo 2^24; it parks its
//        own queue only
//   R4   SEND_EN / RECV_EN raise the limit of a managed queue; the index is absolute, repeating it
//        changes nothing
//   R5   RC: messages of a QP arrive in order; the receiver's CQE follows the payload, the sender's
//        the acknowledgement
//   R6   without a receive: RNR, retried rnr_retry times, 7 for ever; without an answer: retried 7
//        times
//   R7   the first failure completes with its syndrome, all that follows is flushed with CQEs,
//        which count for WAITs
//   R8   a CQE's owner bit is the lap's parity; without room the CQ is lost, unless it ignores
//        overrun
//   R9   keys are checked for range and access
//   R10  a fence holds a WQE until earlier READs and atomics of its queue are complete
//   R11  only a doorbell makes the NIC read a send queue's doorbell record
//   R12  the order among queues is the scheduler's, from a seed
//   R13  a log of everything, on request
//   R14  where a queue stands when nothing can happen any more can be asked for (QUERY_QP,
//        QUERY_CQ)
//
// An engine as it is executes as fast as it can. One whose steps take modelled time is a subclass
// that overrides what stands under "Timing": the same rules hold, and each thing happens when the
// subclass says so. The engine knows nothing of clocks, costs or networks.
//
// Not modelled: inline payload, atomics but fetch-and-add, UMR and the fence for it
// (initiator-small), WAIT on data or time, signatures.
#ifndef PREPOST_BACKENDS_EMULATED_ENGINE_H_
#define PREPOST_BACKENDS_EMULATED_ENGINE_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "backends/emulated/nic_state.h"
#include "backends/emulated/scheduler.h"
#include "backends/nic/program/decode.h"

namespace prepost::emulated {

/// What happens to the QPs of `node` towards `peer`, or to its whole NIC, once they have received
/// `after_receives` messages.
struct QpFault {
  enum class Kind : uint8_t {
    kFatal,        ///< the NIC moves it to the error state, flushes it and reports it
    kFlush,        ///< it is moved to the error state by somebody and flushed
    kGone,         ///< it is destroyed: no CQE, no event, no answer to its peer
    kDeviceFatal,  ///< the NIC stops: no CQE, no answer to anybody; an event reports it
    kPortDown      ///< the NIC's link is cut: no answer to or from others; an event reports it
  };
  NodeId node;
  NodeId peer;
  uint64_t after_receives = 0;
  Kind kind = Kind::kFatal;
};

struct EngineOptions {
  SchedulerMode scheduler = SchedulerMode::kRoundRobin;
  uint64_t seed = 1;
  uint32_t mtu_bytes = 4096;  ///< chunk of a message, unless the scheduler is round-robin
  bool log = false;           ///< keep an event per thing that happens (R13)
  std::vector<QpFault> faults = {};
};

struct NicEvent {
  enum class Kind : uint8_t {
    kStart,    ///< a WQE was fetched and executes
    kPark,     ///< a send queue stands at a WAIT
    kArrive,   ///< the first bytes for a receive WQE are about to be placed: wqe_index is its index
    kReceive,  ///< a receive WQE completed: wqe_index is the receive's, cqe its CQE
    kRetire,   ///< a send WQE completed, signaled or not
    kError     ///< the QP went to error, or was destroyed
  };
  uint64_t step = 0;
  NodeId node;
  uint32_t qpn = 0;
  Kind kind = Kind::kStart;
  uint16_t wqe_index = 0;
  nic::Opcode opcode = nic::Opcode::kNop;
  uint32_t cqn = 0;  ///< kPark, kReceive; kRetire when signaled
  uint32_t cqe = 0;  ///< index of the CQE waited for or written, modulo 2^24

  uint64_t time_ns = 0;  ///< MonotonicNs(), or of the virtual clock

  /// The same thing in the same step, at whatever time: what a seed repeats.
  friend bool operator==(const NicEvent& a, const NicEvent& b) {
    const auto what = [](const NicEvent& e) {
      return std::tie(e.step, e.node, e.qpn, e.kind, e.wqe_index, e.opcode, e.cqn, e.cqe);
    };
    return what(a) == what(b);
  }
};

/// A CQ that an event was requested for has a new CQE; or the NIC reports something else.
struct CqEvent {
  NodeId node;
  uint32_t cqn = 0;          ///< 0: see NicState::errors
  void* listener = nullptr;  ///< of the CQ: see Nic::Listen()
};

struct EngineCounters {
  uint64_t wqes = 0;      ///< send WQEs fetched
  uint64_t messages = 0;  ///< delivered
  uint64_t bytes = 0;     ///< of their payload
  uint64_t cqes = 0;
  uint64_t rnr_retries = 0;
  uint64_t transport_retries = 0;  ///< of messages that were not answered
};

class Engine {
 public:
  Engine(const std::vector<ArenaPointer<NicState>>& nics, EngineOptions options)
      : nics_(nics), options_(std::move(options)), scheduler_(options_.scheduler, options_.seed) {}
  virtual ~Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// R11: a write of the doorbell register.
  virtual void Doorbell(NicState& nic, uint64_t first_bytes) { ReadDoorbell(nic, first_bytes); }
  /// Takes at most `steps` steps, fewer when an event occurs or nothing is left. True while there
  /// is more to do.
  virtual bool Run(uint64_t steps);
  // The commands that change a QP, between two calls of Run().
  /// Moves it to the error state.
  void BreakQp(QpState& qp);
  /// Moves it, which has a remote, to RTS.
  void StartSending(QpState& qp);
  /// It is about to leave its NIC: the engine neither works for it nor reads its memory any more.
  void Retire(QpState& qp);
  /// Notes what a host did that no driver should.
  void Misuse(const NicState& nic, const std::string& what);

  /// Whether hosts act on the engine's own thread, between its steps: no other thread calls it
  /// then.
  virtual bool is_alone() const { return false; }
  virtual std::vector<CqEvent> TakeEvents() { return std::exchange(events_, {}); }
  const std::vector<NicEvent>& log() const { return log_; }
  /// What the host did that no driver should: first of each, in words, in order of occurrence.
  const std::vector<std::string>& misuses() const { return misuses_; }
  const EngineCounters& counters() const { return counters_; }
  uint64_t steps() const { return steps_; }
  /// True while some sender retries until its receiver has a receive posted. Posting one notifies
  /// nobody, so Run() has to be called now and then although nothing was left to do.
  bool waits_for_receives() const { return !rnr_waiters_.empty(); }
  /// How often peers of `node` had to try again, because it had no receive posted.
  uint64_t rnr_retries(NodeId node) const { return nics_[node.index()]->rnr_retries; }

 protected:
  // Timing: what a subclass overrides whose steps take modelled time. What is said here is what an
  // engine does that is as fast as it can be.
  /// What a sender waits for before it tries again.
  enum class Retry : uint8_t {
    kNoReceive,  ///< its receiver has posted none
    kNoAnswer    ///< its receiver does not answer
  };
  /// The time that log entries carry.
  virtual uint64_t NowNs() const;
  /// The QP may have come to be able to do something.
  virtual void Kick(QpState& qp);
  virtual bool HasWork() const { return !scheduler_.empty(); }
  /// Whether WQEs of this kind can be executed.
  virtual bool IsModelled(nic::Opcode) const { return true; }
  /// The QP's send queue is about to execute the WQE at hand (wqe_), which is no WAIT; or a WAIT
  /// that has passed.
  virtual void BeginWqe(QpState&) {}
  /// The WQE at hand becomes `work`. False: it is over and leaves no trace.
  virtual bool BeginWork(QpState&, Work&) { return true; }
  /// SEND_EN (`sends`) or RECV_EN of `qp`, on `target` up to `limit`. True: Enable() is called
  /// later.
  virtual bool HoldsEnable(QpState&, QpState& /*target*/, bool /*sends*/, uint16_t /*limit*/) {
    return false;
  }
  /// The message may not start yet, or not at all, and what comes of that is under way.
  virtual bool HoldsStart(QpState&, Work&) { return false; }
  /// The message starts. True: it is under way, and its bytes are not to be moved here.
  virtual bool Depart(QpState&, Work&) { return false; }
  /// The receiver has the message.
  virtual void Acknowledge(QpState&, Work& work) { work.state = Work::State::kDone; }
  /// The oldest WQE is done, but its end cannot be seen yet.
  virtual bool HoldsReturn(QpState&) { return false; }
  virtual void TryAgainLater(QpState& qp, Retry);
  // What has happened.
  virtual void OnDoorbell(const NicState&, uint32_t /*qpn*/) {}
  virtual void OnEnable(const QpState& /*target*/, uint16_t /*limit*/) {}
  virtual void OnRetire(const QpState&, const Work&) {}
  virtual void OnCqe(const NicState&, const CqState&) {}
  virtual void OnWake(const QpState&) {}

  struct CqeFields {
    nic::CqeOpcode opcode = nic::CqeOpcode::kRequester;
    nic::Syndrome syndrome = nic::Syndrome::kNone;
    nic::Opcode send_opcode = nic::Opcode::kNop;
    uint16_t wqe_index = 0;
    uint32_t immediate = 0;
    uint32_t byte_count = 0;
  };

  void ReadDoorbell(NicState& nic, uint64_t first_bytes);
  void Execute(const Task& task);
  void Log(const QpState& qp, NicEvent::Kind kind, uint16_t wqe_index, nic::Opcode opcode,
           uint32_t cqn = 0, uint32_t cqe = 0) {
    if (options_.log) Note(qp, kind, wqe_index, opcode, cqn, cqe);
  }
  void Note(const QpState& qp, NicEvent::Kind kind, uint16_t wqe_index, nic::Opcode opcode,
            uint32_t cqn, uint32_t cqe);

  // send_queue.cc
  bool CanFetch(const QpState& qp) const {
    if (qp.parked || qp.fenced || qp.fetch_stopped) return false;
    return static_cast<int16_t>(qp.SendLimit() - qp.sq_next) > 0;  // R1
  }
  void Fetch(QpState& qp);
  bool WellFormed(const QpState& qp);
  void ExecuteWait(QpState& qp);
  void EndWait(QpState& qp);
  void ExecuteEnable(QpState& qp);
  void Enable(QpState& target, bool sends, uint16_t limit);
  bool CheckEnabled(QpState& target, uint16_t limit);
  void StartWork(QpState& qp, Work::State state);
  void FailFetch(QpState& qp, nic::Syndrome syndrome);

  // transport.cc
  bool CanTransmit(QpState& qp) const {
    if (qp.transmit_stopped || qp.rnr_waiting || qp.is_wire_busy) return false;
    while (qp.to_transmit < qp.work.size() &&
           qp.work[qp.to_transmit].state != Work::State::kQueued) {
      ++qp.to_transmit;
    }
    return qp.to_transmit < qp.work.size();
  }
  bool CanDeliver(QpState& qp) const {
    while (qp.to_deliver < qp.work.size() &&
           qp.work[qp.to_deliver].state >= Work::State::kReturning) {
      ++qp.to_deliver;
    }
    return qp.to_deliver < qp.work.size() && qp.work[qp.to_deliver].state == Work::State::kMoved;
  }
  void Transmit(QpState& qp);
  void BreakIfDue(QpState& receiver);
  void Fail(QpState& receiver, QpFault::Kind kind);
  void Vanish(QpState& qp);
  /// Whether what one of them sends gets to the other.
  static bool Reaches(const QpState& qp, const QpState& remote) {
    return &qp.nic == &remote.nic || (!qp.nic.is_link_down && !remote.nic.is_link_down);
  }
  bool IsAnswered(QpState& qp, Work& work);
  bool IsHopeless(const QpState& qp) const;
  bool Place(QpState& qp, Work& work);
  bool TakeReceive(QpState& qp, Work& work);
  CopyOutcome Move(QpState& qp, const Work& work, uint64_t bytes);
  CopyOutcome FetchAdd(QpState& qp);
  void FailMove(QpState& qp, Work& work, CopyOutcome outcome);
  void FailTransport(QpState& qp, Work& work, nic::Syndrome syndrome);
  void Deliver(QpState& qp);
  void CompleteReceive(QpState& receiver, const Work& work);
  bool WakeRnrWaiters(bool idle);
  static uint16_t AvailableReceives(QpState& qp);

  /// What verbs call an asynchronous event.
  void Report(NicState& nic, const nic::ErrorEvent& event);

  // completion.cc
  void Complete(QpState& qp);
  void Flush(QpState& qp);
  uint32_t WriteCqe(QpState& qp, CqState& cq, const CqeFields& fields);
  static bool IsFull(const CqState& cq);
  bool TakeRequest(CqState& cq);
  void WakeWaiters(CqState& cq);

  const std::vector<ArenaPointer<NicState>>& nics_;
  EngineOptions options_;
  Scheduler scheduler_;
  uint64_t steps_ = 0;
  uint64_t moved_bytes_ = 0;  // payload, whether delivered or not
  EngineCounters counters_;
  std::vector<QpState*> rnr_waiters_;
  std::vector<CqEvent> events_;
  std::vector<NicEvent> log_;
  std::vector<std::string> misuses_;
  nic::SendWqe wqe_;                     // scratch: the WQE at hand
  nic::SendWqe probe_;                   // scratch: one that is read ahead
  std::vector<nic::DataPiece> receive_;  // scratch
};

/// R3: has a CQ with this producer counter passed CQE `index`?
constexpr bool HasPassed(uint32_t producer, uint32_t index) {
  return ((producer - 1 - index) & nic::kCqIndexMask) <= nic::kCqIndexAhead;
}

}  // namespace prepost::emulated

#endif  // PREPOST_BACKENDS_EMULATED_ENGINE_H_
