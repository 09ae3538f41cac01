// SPDX-License-Identifier: Apache-2.0
//
// Clock: the time of a run in virtual time, and what is due later. It goes from one event to
// the next and never waits. Whoever acts at times is a TimeHandler: the engine of the NICs, and
// hosts that share the clock with it.
#ifndef PREPOST_SIM_CLOCK_CLOCK_H_
#define PREPOST_SIM_CLOCK_CLOCK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ir/base/status.h"
#include "sim/clock/time_queue.h"
#include "sim/nics/prefetch.h"
#include "sim/nics/time.h"

namespace prepost::sim {

/// An event of a handler's own, which it is called with when it is due.
struct TimedEvent {
  void* subject = nullptr;
  uint64_t value = 0;
  uint16_t what = 0;
  uint16_t stages = 0;   ///< with which Prefetch() is called: 0 up to before this one
  uint32_t handler = 0;  ///< the clock's
};

class TimeHandler {
 public:
  virtual void OnTime(const TimedEvent& event) = 0;
  /// This event comes soon: prefetches what it needs. Called with stage 0, then 1, up to the
  /// event's last, while other things happen: each stage prefetches what is found through the one
  /// before. Its subject is in the cache, mostly. Some stages, or all, may be left out.
  virtual void Prefetch(const TimedEvent&, size_t /*stage*/) const {}

 protected:
  ~TimeHandler() = default;
};

/// One thread.
class Clock {
 public:
  Picoseconds now() const { return now_; }
  /// Whether handlers prefetch. It changes nothing else, and costs more than it gives while all
  /// that they work on stays in the cache.
  void set_prefetches(bool prefetches) { prefetches_ = prefetches; }
  bool prefetches() const { return prefetches_; }
  /// Calls `handler`, one of a few, which must still be there, at `at` >= now(). Of equal times in
  /// the order of the calls. False: that is never.
  bool Schedule(Picoseconds at, TimeHandler& handler, const TimedEvent& event) {
    if (at == kNever) {
      NoteMissed();
      return false;
    }
    stages_max_ = std::max<size_t>(stages_max_, event.stages);
    due_.Push(at, {{event.subject, event.value, event.what, event.stages, IndexOf(handler)}});
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
    if (prefetches_) PrefetchAhead();
    handlers_[due.handler]->OnTime(due);
    return true;
  }
  /// Whoever acts outside of the handlers' calls holds time back before it has: it is
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
  struct Due : TimedEvent {
    void Prefetch() const { PrefetchLines(subject, 256); }
  };

  uint32_t IndexOf(TimeHandler& handler) {
    const auto found = std::ranges::find(handlers_, &handler);
    if (found == handlers_.end()) {
      handlers_.push_back(&handler);
      return static_cast<uint32_t>(handlers_.size() - 1);
    }
    return static_cast<uint32_t>(found - handlers_.begin());
  }

  /// An event has all stages behind it before it is next. Those that are far off come first.
  void PrefetchAhead() const {
    const auto ahead = due_.ahead();
    for (size_t i = std::min(ahead.size(), stages_max_ + 1); i-- > 1;) {
      const Due& due = ahead[i].thing;
      if (i <= due.stages) handlers_[due.handler]->Prefetch(due, due.stages - i);
    }
  }

  Picoseconds now_ = 0;
  bool is_held_ = false;
  bool has_missed_ = false;
  bool prefetches_ = true;
  size_t stages_max_ = 0;  // of any event so far
  std::vector<TimeHandler*> handlers_;
  TimeQueue<Due> due_;
};

}  // namespace prepost::sim

#endif  // PREPOST_SIM_CLOCK_CLOCK_H_
