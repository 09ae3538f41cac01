// SPDX-License-Identifier: Apache-2.0
#include "sim/hosts/cpu_core.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <random>
#include <span>

namespace prepost::sim {
namespace {

/// From so many on, preemptions are not drawn one by one.
constexpr double kMany = 1000;

/// Different for every core of a cluster.
uint64_t SeedOf(uint64_t seed, NodeId host, size_t core) {
  std::seed_seq mix{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), host.value,
                    static_cast<uint32_t>(core)};
  std::array<uint32_t, 2> words = {};
  mix.generate(words.begin(), words.end());
  return uint64_t{words[0]} << 32 | words[1];
}

/// What `list`, which rises by hosts, has of `host`; null: nothing.
template <typename OfHost>
const OfHost* FindHost(std::span<const OfHost> list, NodeId host) {
  const auto found = std::ranges::lower_bound(list, host, {}, &OfHost::host);
  return found != list.end() && found->host == host ? &*found : nullptr;
}

}  // namespace

CpuCore::CpuCore(const HostCosts& costs, const std::vector<HostDelay>& delays, uint64_t seed)
    : neighbours_length_(costs.neighbours * costs.slice),
      slice_(costs.slice),
      preemptions_per_picosecond_(costs.preemptions_per_second /
                                  static_cast<double>(kPicosecondsPerSecond)),
      preemption_length_(costs.preemption_length),
      lengths_vary_(costs.preemption_lengths_vary),
      draws_(seed) {
  for (const HostDelay& delay : delays) {
    if (delay.length > 0) delays_.push_back({delay.at, After(delay.at, delay.length)});
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
  std::vector<CopyOverlap::Interval> absences;
  for (const Absence& delay : delays_) absences.push_back({delay.begin, delay.end});
  copies_.KnowAbsences(std::move(absences));
  DrawPreemption(0);
  Wake(0);
}

Picoseconds CpuCore::WorkEndAmongAbsences(Picoseconds at, Picoseconds work) {
  const Picoseconds first = at;
  Picoseconds left = work;
  while (true) {
    at = BackAt(at);
    if (at != kNever && preemption_.begin != kNever) at = WorkThroughMany(at, &left);
    if (at == kNever) return kNever;
    const Picoseconds until = NextAbsence();
    there_from_ = at;
    there_until_ = until;
    if (left <= until - at) break;
    left -= until - at;
    at = until;
    if (until == neighbours_.begin) WorkThroughSlices(&at, &left);
  }
  at = After(at, left);
  if (at == kNever) return kNever;
  busy_ += work;
  delayed_ += at - first - work;
  return at;
}

/// Of those that have not been forgotten.
Picoseconds CpuCore::NextAbsence() const {
  const Picoseconds delay = next_delay_ < delays_.size() ? delays_[next_delay_].begin : kNever;
  return std::min({delay, preemption_.begin, neighbours_.begin});
}

void CpuCore::BeginSlice(Picoseconds at) {
  neighbours_.begin = After(at, slice_);
  neighbours_.end = After(neighbours_.begin, neighbours_length_);
  there_from_ = kNever;  // what is known of the core is of before
}

/// To the first that ends after `at`.
void CpuCore::SkipSlices(Picoseconds at) {
  const Picoseconds cycle = slice_ + neighbours_length_;
  const Picoseconds cycles = (at - neighbours_.end) / cycle + 1;
  neighbours_.begin = After(neighbours_.begin, cycles * cycle);
  neighbours_.end = After(neighbours_.begin, neighbours_length_);
}

/// Long work, when neighbours begin: all their turns that nothing else comes between, at once. Work
/// is left.
void CpuCore::WorkThroughSlices(Picoseconds* at, Picoseconds* left) {
  const Picoseconds delay = next_delay_ < delays_.size() ? delays_[next_delay_].begin : kNever;
  const Picoseconds other = std::min(delay, preemption_.begin);
  if (neighbours_.end >= other) return;
  const Picoseconds cycle = slice_ + neighbours_length_;
  const Picoseconds cycles = std::min((*left - 1) / slice_, (other - neighbours_.end) / cycle);
  *left -= cycles * slice_;
  *at = neighbours_.end + cycles * cycle;
  BeginSlice(*at);
}

Picoseconds CpuCore::WhenBackFromAbsence(Picoseconds at) {
  const Picoseconds back = BackAt(at);
  if (back == kNever) return kNever;
  delayed_ += back - at;
  there_from_ = back;
  there_until_ = NextAbsence();
  return back;
}

/// Long work, with many preemptions in it and nothing else: they take about as long as they do on
/// the average. The rest of the work, and what comes shortly before something else, is left. When
/// the work done ends, the core being there; kNever: beyond what can be shown.
Picoseconds CpuCore::WorkThroughMany(Picoseconds at, Picoseconds* left) {
  const auto length = static_cast<double>(preemption_length_);
  const double slower = 1 + preemptions_per_picosecond_ * length;
  while (true) {
    double work = static_cast<double>(*left);
    Picoseconds other = neighbours_.begin;
    if (next_delay_ < delays_.size()) other = std::min(other, delays_[next_delay_].begin);
    if (other != kNever) {
      // Half of the way there: by far nearer than a sum of many may be off.
      work = std::min(work, static_cast<double>(other - at) / slower / 2);
    }
    const double expected = work * preemptions_per_picosecond_;
    if (expected < kMany) return at;
    // As many as a Poisson distribution has, each with its length: about normal.
    const double count = std::max(1.0, expected + std::sqrt(expected) * draws_.Normal());
    double away = count * length;
    if (lengths_vary_) away += std::sqrt(count) * length * draws_.Normal();
    const Picoseconds done = std::min(*left, ToPicoseconds(work));
    const Picoseconds end = After(After(at, done), ToPicoseconds(std::max(away, 0.0)));
    *left -= done;
    if (end == kNever) return kNever;
    at = end;
    DrawPreemption(at);
  }
}

/// The first time from `at` on when the core is there. What is over by then is forgotten.
Picoseconds CpuCore::BackAt(Picoseconds at) {
  while (true) {
    if (at == kNever) return kNever;
    while (next_delay_ < delays_.size() && delays_[next_delay_].end <= at) ++next_delay_;
    if (preemption_.end <= at) SkipPreemptions(at);
    if (neighbours_.end <= at) SkipSlices(at);
    if (next_delay_ < delays_.size() && delays_[next_delay_].begin <= at) {
      at = delays_[next_delay_].end;
    } else if (preemption_.begin <= at) {
      at = preemption_.end;
    } else if (neighbours_.begin <= at) {
      at = neighbours_.end;
    } else {
      return at;
    }
  }
}

/// To the first that ends after `at`. After very many, what the core is at does not depend on what
/// it was at in the beginning: it is away with the share of time that it is away at all.
void CpuCore::SkipPreemptions(Picoseconds at) {
  const auto length = static_cast<double>(preemption_length_);
  const double cycle = 1 / preemptions_per_picosecond_ + length;
  if (static_cast<double>(at - preemption_.end) > kMany * cycle) {
    if (draws_.Uniform() * cycle > length) return DrawPreemption(at);
    const Picoseconds rest = lengths_vary_ ? ToPicoseconds(draws_.Exponential() * length)
                                           : ToPicoseconds(length * draws_.Uniform());
    preemption_ = {.begin = at, .end = After(at, std::max<Picoseconds>(1, rest))};
    return;
  }
  while (preemption_.end <= at) DrawPreemption(preemption_.end);
}

void CpuCore::DrawPreemption(Picoseconds after) {
  if (preemptions_per_picosecond_ == 0 || preemption_length_ == 0) return;  // never
  const double between = 1 / preemptions_per_picosecond_;
  preemption_.begin =
      After(after, std::max<Picoseconds>(1, ToPicoseconds(draws_.Exponential() * between)));
  const Picoseconds length =
      lengths_vary_ ? ToPicoseconds(draws_.Exponential() * static_cast<double>(preemption_length_))
                    : preemption_length_;
  preemption_.end = After(preemption_.begin, std::max<Picoseconds>(1, length));
}

CpuCore CoreOf(const HostCosts& costs, const HostNoise& noise, NodeId host, size_t index) {
  std::vector<HostDelay> delays;
  std::ranges::copy_if(noise.delays, std::back_inserter(delays),
                       [&](const HostDelay& delay) { return delay.host == host; });
  HostCosts own = costs;
  if (const HostPreemptions* it = FindHost(noise.preemptions, host)) {
    own.preemptions_per_second = it->per_second;
    own.preemption_length = it->length;
    own.preemption_lengths_vary = it->lengths_vary;
  }
  if (const HostNeighbours* it = FindHost(noise.neighbours, host)) {
    own.neighbours = it->count;
    own.slice = it->slice;
  }
  return CpuCore(own, delays, SeedOf(noise.seed, host, index));
}

}  // namespace prepost::sim
