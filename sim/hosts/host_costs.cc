// SPDX-License-Identifier: Apache-2.0
#include "sim/hosts/host_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>

namespace prepost::sim {
namespace {

constexpr double kPreemptionsMin = 1e-9;
constexpr double kPreemptionsMax = 1e9;
constexpr double kAwayMax = 100;

/// What HostNoise has in place of HostCosts, each of its host; `what`: "neighbours".
template <typename OfHost>
Status CheckHostsOf(const char* what, std::span<const OfHost> list, size_t hosts) {
  for (const OfHost& it : list) {
    if (it.host.index() >= hosts)
      return Rejected(fmt::format("{} of host {}", what, it.host.value));
  }
  const auto wrong = std::ranges::adjacent_find(list, std::greater_equal(), &OfHost::host);
  if (wrong == list.end()) return {};
  return Rejected(fmt::format("{} of host {} stand before those of host {}", what,
                              wrong->host.value, (wrong + 1)->host.value));
}

}  // namespace

Status CheckCosts(const HostCosts& costs) {
  if (costs.cores == 0) return Rejected("a host without cores");
  for (const Picoseconds cost :
       {costs.post_send, costs.post_receive, costs.poll, costs.completion, costs.credit,
        costs.interrupt, costs.hybrid_polling, costs.message_start, costs.message_setup,
        costs.combine, costs.system_call, costs.segment_calls, costs.preemption_length,
        costs.slice}) {
    if (cost < 0 || cost > kStepMax) {
      return Rejected(
          fmt::format("a host's step takes {} ps, expected from 0 to {}", cost, kStepMax));
    }
  }
  for (const double rate :
       {costs.copy_rate, costs.first_block_copy_rate, costs.system_copy_rate, costs.combine_rate}) {
    if (!std::isfinite(rate) || rate < 0 || (rate > 0 && rate < 1)) {
      return Rejected(
          fmt::format("a host copies or combines {} bytes/s, expected 1 or more, or 0", rate));
    }
  }
  const double preemptions = costs.preemptions_per_second;
  if (!std::isfinite(preemptions) || preemptions < 0 || preemptions > kPreemptionsMax ||
      (preemptions > 0 && preemptions < kPreemptionsMin)) {
    return Rejected(fmt::format("{} preemptions per second, expected from {} to {}, or 0",
                                preemptions, kPreemptionsMin, kPreemptionsMax));
  }
  if (costs.neighbours > kNeighboursMax) {
    return Rejected(
        fmt::format("{} neighbours on a core, the limit is {}", costs.neighbours, kNeighboursMax));
  }
  if (costs.neighbours != 0 && costs.slice == 0) return Rejected("neighbours have a slice of 0 s");
  const double away = preemptions * static_cast<double>(costs.preemption_length) /
                      static_cast<double>(kPicosecondsPerSecond);
  if (away > kAwayMax) {
    return Rejected(fmt::format(
        "cores are away {} times as long as they are there, expected at most {}", away, kAwayMax));
  }
  return {};
}

Status CheckNoise(const HostNoise& noise, size_t hosts) {
  for (const HostDelay& delay : noise.delays) {
    if (delay.host.index() >= hosts || delay.at < 0 || delay.length < 0) {
      return Rejected(fmt::format("a delay of host {} at {} ps for {} ps", delay.host.value,
                                  delay.at, delay.length));
    }
  }
  PREPOST_RETURN_IF_ERROR(CheckHostsOf("preemptions", noise.preemptions, hosts));
  for (const HostPreemptions& it : noise.preemptions) {
    PREPOST_RETURN_IF_ERROR(CheckCosts(
        HostCosts{.preemptions_per_second = it.per_second, .preemption_length = it.length}));
  }
  PREPOST_RETURN_IF_ERROR(CheckHostsOf("neighbours", noise.neighbours, hosts));
  for (const HostNeighbours& it : noise.neighbours) {
    PREPOST_RETURN_IF_ERROR(CheckCosts(HostCosts{.neighbours = it.count, .slice = it.slice}));
  }
  return {};
}

Picoseconds TimeOf(uint64_t bytes, double rate) {
  if (rate == 0) return 0;
  return ToPicoseconds(static_cast<double>(bytes) / rate *
                       static_cast<double>(kPicosecondsPerSecond));
}

}  // namespace prepost::sim
