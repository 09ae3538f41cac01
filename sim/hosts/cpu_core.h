// SPDX-License-Identifier: Apache-2.0
//
// CpuCore: one core of a host in virtual time: when work that begins now is done, with what takes
// the core away from it: given delays, preemptions drawn from a seed, and neighbours that always
// want it.
#ifndef PREPOST_SIM_HOSTS_CPU_CORE_H_
#define PREPOST_SIM_HOSTS_CPU_CORE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/clock/draws.h"
#include "sim/hosts/copy_overlap.h"
#include "sim/hosts/host_costs.h"
#include "sim/nics/time.h"

namespace prepost::sim {

/// One thread.
class CpuCore {
 public:
  /// Nothing but what `delays` say (of whichever host), in any order, they may overlap, and what
  /// `costs` say of preemptions and neighbours, who find the core in use from 0 on.
  CpuCore(const HostCosts& costs, const std::vector<HostDelay>& delays, uint64_t seed);

  /// When `work` that begins at `at` is done; kNever: beyond what can be shown. `at` never falls.
  /// Something that begins while the core is away, however short, is done after it is back. Takes a
  /// bounded time: of very many preemptions only the sum is drawn.
  Picoseconds WorkEnd(Picoseconds at, Picoseconds work) {
    if (at < there_from_ || at >= there_until_ || work > there_until_ - at) {
      return WorkEndAmongAbsences(at, work);
    }
    busy_ += work;
    return at + work;
  }

  /// The first time from `at` on when the core is there; `at` never falls here, either.
  Picoseconds WhenBack(Picoseconds at) {
    return at >= there_from_ && at < there_until_ ? at : WhenBackFromAbsence(at);
  }

  /// A thread that has slept wakes, and no other one is at work or polls: it has the core
  /// from its neighbours, and a slice before they have it again. `at` never falls.
  void Wake(Picoseconds at) {
    if (neighbours_length_ != 0) BeginSlice(at);
  }

  /// What it has copied besides, where hosts do that while bytes are on the wire.
  CopyOverlap& copies() { return copies_; }

  Picoseconds busy() const { return busy_; }  ///< work so far
  /// By which it ended later, or could begin later, than it could have.
  Picoseconds delayed() const { return delayed_; }

 private:
  struct Absence {
    Picoseconds begin = kNever;
    Picoseconds end = kNever;
  };

  Picoseconds WorkEndAmongAbsences(Picoseconds at, Picoseconds work);
  Picoseconds WhenBackFromAbsence(Picoseconds at);
  Picoseconds BackAt(Picoseconds at);
  Picoseconds NextAbsence() const;
  void BeginSlice(Picoseconds at);
  void SkipSlices(Picoseconds at);
  void WorkThroughSlices(Picoseconds* at, Picoseconds* left);
  void SkipPreemptions(Picoseconds at);
  Picoseconds WorkThroughMany(Picoseconds at, Picoseconds* left);
  void DrawPreemption(Picoseconds after);

  // What is used for each piece of work comes first.
  // The core is there in all of this time, as far as is known.
  Picoseconds there_from_ = kNever;
  Picoseconds there_until_ = kNever;
  Picoseconds busy_ = 0;
  const Picoseconds neighbours_length_;  // of all of them, a slice each; 0: there are none
  const Picoseconds slice_;
  Picoseconds delayed_ = 0;
  std::vector<Absence> delays_;  // disjoint, rising
  size_t next_delay_ = 0;        // the first that ends later than now
  double preemptions_per_picosecond_;
  Picoseconds preemption_length_;
  bool lengths_vary_;
  Absence preemption_;  // the next, or the one going on
  Absence neighbours_;  // the next, or the one going on
  CopyOverlap copies_;
  Draws draws_;
};

/// Core `index` of `host`, with what `noise` says of it; each draws by itself.
CpuCore CoreOf(const HostCosts& costs, const HostNoise& noise, NodeId host, size_t index);

}  // namespace prepost::sim

#endif  // PREPOST_SIM_HOSTS_CPU_CORE_H_
