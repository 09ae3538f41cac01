// SPDX-License-Identifier: Apache-2.0
//
// CopyOverlap: what a core has copied to and from sockets while it had nothing else to do: bytes of
// blocks that were on the wire meanwhile. Copying has what other work leaves of the core, first
// what sends still owe, in their order, then what a receive that has come takes afterwards of the
// time in which it came. Delays that are given take the core from copying as well.
#ifndef PREPOST_SIM_HOSTS_COPY_OVERLAP_H_
#define PREPOST_SIM_HOSTS_COPY_OVERLAP_H_

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <utility>
#include <vector>

#include "sim/nics/time.h"

namespace prepost::sim {

/// Of one core. One thread.
class CopyOverlap {
 public:
  struct Interval {
    Picoseconds begin = 0;
    Picoseconds end = 0;
  };

  /// Before all else: when the core is not there; disjoint, rising.
  void KnowAbsences(std::vector<Interval> absences) { absences_ = std::move(absences); }
  /// The core is at other work from `begin`, which never falls, to `end`.
  void NoteWork(Picoseconds begin, Picoseconds end) {
    for (; next_absence_ < absences_.size() && absences_[next_absence_].begin < begin;
         ++next_absence_) {
      NoteBusy(absences_[next_absence_]);
    }
    NoteBusy({begin, end});
  }
  /// A send has `amount` to copy while it is on the wire.
  void Owe(Picoseconds amount) { owed_ += amount; }
  /// What of that is not done by `now`; it is not owed any more.
  Picoseconds TakeOwed(Picoseconds now) {
    NoteWork(now, now);
    return std::exchange(owed_, 0);
  }
  /// A receive takes what is left of the time from `from` to `now`, `most` of it at most. Others,
  /// which began before, have what is left before `from`.
  Picoseconds Take(Picoseconds from, Picoseconds now, Picoseconds most) {
    NoteWork(now, now);
    auto it = std::ranges::upper_bound(idle_, from, {}, &Interval::end);
    Picoseconds taken = 0;
    if (it != idle_.end() && it->begin < from) {
      it = std::next(idle_.insert(it, {it->begin, from}));
      it->begin = from;
    }
    const auto first = it;
    for (; it != idle_.end() && taken < most; ++it) {
      const Picoseconds part = std::min(it->end - it->begin, most - taken);
      it->begin += part;
      taken += part;
      if (it->begin != it->end) break;
    }
    idle_.erase(first, it);
    return taken;
  }

 private:
  /// From so many on, the two oldest become one, as long as both and ending with the later.
  static constexpr size_t kIdleMax = 256;

  void NoteBusy(const Interval& busy) {
    if (busy.begin > until_) AddIdle(until_, busy.begin);
    until_ = std::max(until_, busy.end);
  }

  void AddIdle(Picoseconds begin, Picoseconds end) {
    const Picoseconds done = std::min(owed_, end - begin);
    owed_ -= done;
    begin += done;
    if (begin == end) return;
    idle_.push_back({begin, end});
    if (idle_.size() <= kIdleMax) return;
    idle_[1].begin -= idle_[0].end - idle_[0].begin;
    idle_.pop_front();
  }

  Picoseconds until_ = 0;
  Picoseconds owed_ = 0;
  std::deque<Interval> idle_;  ///< that nobody has taken, rising
  std::vector<Interval> absences_;
  size_t next_absence_ = 0;
};

}  // namespace prepost::sim

#endif  // PREPOST_SIM_HOSTS_COPY_OVERLAP_H_
