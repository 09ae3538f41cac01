// SPDX-License-Identifier: Apache-2.0
#include "prepost/backends/emulated/cpu_core.h"

#include <algorithm>
#include <cmath>

namespace prepost::emulated {

CpuCore::CpuCore(const HostCosts& costs, const std::vector<HostDelay>& delays, uint64_t seed)
    : preemptions_per_second_(costs.preemptions_per_second),
      preemption_length_(costs.preemption_length),
      lengths_vary_(costs.preemption_lengths_vary),
      random_(seed) {
  for (const HostDelay& delay : delays) {
    if (delay.length > 0) delays_.push_back({delay.at, delay.at + delay.length});
  }
  std::ranges::sort(delays_, {}, &Absence::begin);
  size_t kept = 0;
  for (const Absence& absence : delays_) {
    if (kept != 0 && absence.begin <= delays_[kept - 1].end) {
      delays_[kept - 1].end = std::max(delays_[kept - 1].end, absence.end);
    } else {
      delays_[kept++] = absence;
    }
  }
  delays_.resize(kept);
  DrawPreemption(0);
}

Picoseconds CpuCore::WorkEnd(Picoseconds at, Picoseconds work) {
  const Picoseconds first = at;
  Picoseconds left = work;
  while (true) {
    at = BackAt(at);
    const Picoseconds delay = next_delay_ < delays_.size() ? delays_[next_delay_].begin : kNever;
    const Picoseconds until = std::min(delay, preemption_.begin);
    if (left <= until - at) break;
    left -= until - at;
    at = until;
  }
  at += left;
  busy_ += work;
  delayed_ += at - first - work;
  return at;
}

/// The first time from `at` on when the core is there. What is over by then is forgotten.
Picoseconds CpuCore::BackAt(Picoseconds at) {
  while (true) {
    while (next_delay_ < delays_.size() && delays_[next_delay_].end <= at) ++next_delay_;
    while (preemption_.end <= at) DrawPreemption(preemption_.end);
    if (next_delay_ < delays_.size() && delays_[next_delay_].begin <= at) {
      at = delays_[next_delay_].end;
    } else if (preemption_.begin <= at) {
      at = preemption_.end;
    } else {
      return at;
    }
  }
}

void CpuCore::DrawPreemption(Picoseconds after) {
  if (preemptions_per_second_ == 0 || preemption_length_ == 0) return;  // never
  const double mean = static_cast<double>(kPicosecondsPerSecond) / preemptions_per_second_;
  preemption_.begin = after + std::max<Picoseconds>(1, DrawExponential(mean));
  preemption_.end = preemption_.begin +
                    std::max<Picoseconds>(
                        1, lengths_vary_ ? DrawExponential(static_cast<double>(preemption_length_))
                                         : preemption_length_);
}

/// Made from bits here: what std's distributions make of them differs between libraries.
Picoseconds CpuCore::DrawExponential(double mean) {
  const double uniform = static_cast<double>((random_() >> 11) + 1) * 0x1p-53;  // (0, 1]
  return std::llround(-std::log(uniform) * mean);
}

}  // namespace prepost::emulated
