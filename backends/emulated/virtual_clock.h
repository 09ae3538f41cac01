// SPDX-License-Identifier: Apache-2.0
//
// VirtualClock: the time of a run in virtual time, and what is due later. It goes from one event to
// the next and never waits. Whoever acts at times is a TimeHandler: the engine of the NICs, and
// hosts that share the clock with it.
#ifndef PREPOST_BACKENDS_EMULATED_VIRTUAL_CLOCK_H_
#define PREPOST_BACKENDS_EMULATED_VIRTUAL_CLOCK_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "prepost/backends/emulated/prefetch.h"
#include "prepost/backends/emulated/time_queue.h"
#include "prepost/backends/emulated/virtual_time.h"
#include "prepost/ir/status.h"

namespace prepost::emulated {

/// What a handler asked to be told: its own words.
struct TimedEvent {
  void* subject = nullptr;
  uint64_t value = 0;
  uint32_t what = 0;
};

inline constexpr size_t kForeseeStages = 6;

class TimeHandler {
 public:
  virtual void OnTime(const TimedEvent& event) = 0;
  /// This comes soon: to ask for memory that it needs. Called with stage 0, then 1, up to
  /// kForeseeStages - 1, while other things happen: each stage asks for what is found through what
  /// those before have asked for. Its subject is in the cache. For some events some stages, or all,
  /// are left out.
  virtual void Foresee(const TimedEvent&, size_t /*stage*/) const {}

 protected:
  ~TimeHandler() = default;
};

/// One thread.
class VirtualClock {
 public:
  Picoseconds now() const { return now_; }
  /// Calls `handler`, which must still be there, at `at` >= now(). Of equal times in the order of
  /// the calls. False: that is never.
  bool Schedule(Picoseconds at, TimeHandler& handler, const TimedEvent& event) {
    if (at == kNever) {
      NoteMissed();
      return false;
    }
    due_.Push(at, {&handler, event});
    return true;
  }
  void NoteMissed() { has_missed_ = true; }
  /// Something would have happened beyond what can be shown.
  bool has_missed() const { return has_missed_; }
  /// When the next event is due; kNever: none is.
  Picoseconds next_at() const { return due_.next_at(); }
  size_t events() const { return due_.size(); }
  /// Lets the first of the events that are due now happen. False when none is.
  bool RunDue() {
    if (due_.next_at() != now_) return false;
    const Due due = due_.Pop();
    for (size_t stage = 0; stage < kForeseeStages; ++stage) {
      const Due* later = due_.Ahead(kForeseeStages - 1 - stage);
      if (later != nullptr) later->handler->Foresee(later->event, stage);
    }
    due.handler->OnTime(due.event);
    return true;
  }
  /// Whoever acts outside of the handlers' calls asks that time does not go on before it has: it is
  /// called when all else that happens now has happened.
  void Hold() { is_held_ = true; }
  /// True after Hold(), once.
  bool TakeHold() { return std::exchange(is_held_, false); }
  /// Needs now() <= at <= next_at() < kNever.
  void AdvanceTo(Picoseconds at) {
    PREPOST_CHECK(at >= now_ && at <= next_at());
    now_ = at;
  }

 private:
  struct Due {
    TimeHandler* handler = nullptr;
    TimedEvent event;

    void Foresee() const { PrefetchLines(event.subject, 256); }
  };

  Picoseconds now_ = 0;
  bool is_held_ = false;
  bool has_missed_ = false;
  TimeQueue<Due> due_;
};

}  // namespace prepost::emulated

#endif  // PREPOST_BACKENDS_EMULATED_VIRTUAL_CLOCK_H_
