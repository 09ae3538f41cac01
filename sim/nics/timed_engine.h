// SPDX-License-Identifier: Apache-2.0
//
// TimedEngine: the engine of emulated NICs whose steps take modelled time, by a clock, a network
// and what each step of a NIC costs. Payloads are tags (emulated/memory_table.h), and RDMA is not
// modelled. docs/simulate.md has the whole model.
#ifndef PREPOST_SIM_NICS_TIMED_ENGINE_H_
#define PREPOST_SIM_NICS_TIMED_ENGINE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "backends/emulated/engine.h"
#include "sim/clock/clock.h"
#include "sim/nics/time.h"

namespace prepost::sim {

// Of the engine that it extends.
using emulated::ArenaPointer;
using emulated::CqEvent;
using emulated::CqState;
using emulated::NicState;
using emulated::QpState;
using emulated::Work;

class LongPaths;

/// Whoever acts for hosts, on the engine's thread, when all else that happens at that time has
/// happened.
class HostHandler {
 public:
  /// `events` have come since the last time. Also called after Clock::Hold(). False: the
  /// engine is to stop.
  virtual bool Act(std::span<const CqEvent> events) = 0;

 protected:
  ~HostHandler() = default;
};

/// Not owned; all NICs of a fabric, and whoever acts at times of the same clock, share them.
struct TimedEngineOptions {
  Clock* clock = nullptr;
  FluidNetwork* network = nullptr;
  NicCosts costs = {};
  /// Acts for the hosts; null: the engine stops when there is something for them to do.
  HostHandler* hosts = nullptr;
  /// Observes; null: nobody does. It changes nothing.
  TimeTrail* trail = nullptr;
  LongPaths* paths =
      nullptr;       ///< what flows between NICs begins and ends there, too; null: nowhere
  bool log = false;  ///< as emulated::EngineOptions::log
};

class TimedEngine final : public emulated::Engine, private TimeHandler {
 public:
  TimedEngine(const std::vector<ArenaPointer<NicState>>& nics, const TimedEngineOptions& options)
      : emulated::Engine(nics, {.log = options.log}), time_(options) {}

  void Doorbell(NicState& nic, uint64_t first_bytes) override;
  bool Run(uint64_t steps) override;
  bool is_alone() const override { return true; }
  std::vector<CqEvent> TakeEvents() override {
    if (time_.hosts != nullptr) return {};  // theirs, when their time comes
    return emulated::Engine::TakeEvents();
  }

 private:
  /// What an event of the clock is about: a NIC in the first case, else a QP.
  enum Due : uint16_t {
    kDoorbellDue,
    kSendEnableDue,
    kRecvEnableDue,
    kStartDue,
    kLandDue,
    kReturnDue
  };
  /// When a sender tries again.
  struct RetryTime {
    Picoseconds at = 0;
    QpState* qp = nullptr;
    /// Of a heap, whose largest is to be the earliest.
    friend bool operator<(const RetryTime& a, const RetryTime& b) { return a.at > b.at; }
  };

  // Timing of the engine.
  uint64_t NowNs() const override;
  void Kick(QpState& qp) override;
  bool HasWork() const override { return due_taken_ != due_.size(); }
  bool IsModelled(nic::Opcode opcode) const override;
  void BeginWqe(QpState& qp) override;
  bool BeginWork(QpState& qp, Work& work) override;
  bool HoldsEnable(QpState& qp, QpState& target, bool sends, uint16_t limit) override;
  bool HoldsStart(QpState& qp, Work& work) override;
  bool Depart(QpState& qp, Work& work) override;
  void Acknowledge(QpState& qp, Work& work) override;
  bool HoldsReturn(QpState& qp) override;
  void TryAgainLater(QpState& qp, Retry retry) override;
  void OnDoorbell(const NicState& nic, uint32_t qpn) override;
  void OnEnable(const QpState& target, uint16_t limit) override;
  void OnRetire(const QpState& qp, const Work& work) override;
  void OnCqe(const NicState& nic, const CqState& cq) override;
  void OnWake(const QpState& qp) override;

  // Of the clock.
  void OnTime(const TimedEvent& event) override;
  void Prefetch(const TimedEvent& event, size_t stage) const override;

  Picoseconds now() const { return time_.clock->now(); }
  const NicCosts& costs() const { return time_.costs; }
  TimeTrail* trail() const { return time_.trail; }
  bool CanProceed(QpState& qp) const {
    return CanFetch(qp) || CanTransmit(qp) || CanDeliver(qp) ||
           (!qp.work.empty() && qp.work.front().state >= Work::State::kDone);
  }
  void Proceed(QpState& qp);
  bool HostsAct();
  bool AdvanceTime();
  bool EndFlows();
  QpState& TakeDue();
  static uint16_t StagesOf(Due what);
  bool ScheduleDue(Picoseconds at, void* subject, Due what, uint64_t value);
  void EndFlow(QpState& qp);
  void LeaveWire(QpState& qp);
  void NoteLeaving(const QpState& qp);
  void Land(QpState& qp);
  emulated::CopyOutcome StoreTag(QpState& qp, const Work& work);
  void FinishReturn(QpState& qp, uint16_t wqe_index);
  void RetryAt(Picoseconds at, QpState& qp);
  static bool IsDue(const RetryTime& retry);
  RetryTime TakeRetry();
  bool RetrySenders();
  Picoseconds SkipRetries(Picoseconds next);

  TimedEngineOptions time_;
  std::vector<QpState*> due_;       // QPs that can do something now, oldest first
  size_t due_taken_ = 0;            // from the front of due_
  std::vector<RetryTime> retries_;  // a heap; some are out of date
  std::vector<RetryTime> skipped_;  // scratch
  std::vector<CqEvent> acted_on_;   // a host acts on these
};

}  // namespace prepost::sim

#endif  // PREPOST_SIM_NICS_TIMED_ENGINE_H_
