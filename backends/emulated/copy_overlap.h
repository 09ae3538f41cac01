// SPDX-License-Identifier: Apache-2.0
//
// CopyOverlap: what a core has copied to and from sockets while it had nothing else to do: bytes of
// blocks that were on the wire meanwhile. Copying has what other work leaves of the core, first what
// sends still owe, in their order, then what a receive that has come takes afterwards of the time in
// which it came.
#ifndef PREPOST_BACKENDS_EMULATED_COPY_OVERLAP_H_
#define PREPOST_BACKENDS_EMULATED_COPY_OVERLAP_H_

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>

#include "prepost/backends/emulated/virtual_time.h"

namespace prepost::emulated {

/// Of one core. One thread.
class CopyOverlap {
 public:
  /// The core is at other work from `begin`, which never falls, to `end`.
  void NoteWork(Picoseconds begin, Picoseconds end) {
    if (begin > until_) AddIdle(until_, begin);
    until_ = std::max(until_, end);
  }
  /// A send has `amount` to copy while it is on the wire.
  void Owe(Picoseconds amount) { owed_ += amount; }
  /// What of that is not done by `now`; it is not owed any more.
  Picoseconds TakeOwed(Picoseconds now) {
    NoteWork(now, now);
    return std::exchange(owed_, 0);
  }
  /// A receive takes what is left of the time from `from` to `now`, `most` of it at most.
  Picoseconds Take(Picoseconds from, Picoseconds now, Picoseconds most) {
    NoteWork(now, now);
    Picoseconds taken = 0;
    while (!idle_.empty() && idle_.front().end <= from) idle_.pop_front();
    for (Idle& it : idle_) {
      it.begin = std::max(it.begin, std::min(from, it.end));
      const Picoseconds part = std::min(it.end - it.begin, most - taken);
      it.begin += part;
      taken += part;
    }
    return taken;
  }

 private:
  struct Idle {
    Picoseconds begin = 0;
    Picoseconds end = 0;
  };
  static constexpr size_t kIdleMax = 64;  ///< older ones are forgotten

  void AddIdle(Picoseconds begin, Picoseconds end) {
    const Picoseconds done = std::min(owed_, end - begin);
    owed_ -= done;
    begin += done;
    if (begin == end) return;
    if (idle_.size() == kIdleMax) idle_.pop_front();
    idle_.push_back({begin, end});
  }

  Picoseconds until_ = 0;
  Picoseconds owed_ = 0;
  std::deque<Idle> idle_;  ///< that nobody has taken, rising
};

}  // namespace prepost::emulated

#endif  // PREPOST_BACKENDS_EMULATED_COPY_OVERLAP_H_
