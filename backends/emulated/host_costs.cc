// SPDX-License-Identifier: Apache-2.0
#include "prepost/backends/emulated/host_costs.h"

#include <fmt/format.h>

#include <cmath>

namespace prepost::emulated {
namespace {

/// Sums of some of these stay below 2^63.
constexpr Picoseconds kCostMax = 3600 * kPicosecondsPerSecond;
constexpr double kPreemptionsMax = 1e9;
constexpr double kAwayMax = 100;

}  // namespace

Status CheckCosts(const HostCosts& costs) {
  if (costs.cores == 0) return Rejected("a host without cores");
  for (const Picoseconds cost :
       {costs.post_send, costs.post_receive, costs.poll, costs.completion, costs.credit,
        costs.interrupt, costs.hybrid_polling, costs.message_start, costs.message_setup,
        costs.system_call, costs.preemption_length}) {
    if (cost < 0 || cost > kCostMax) {
      return Rejected(
          fmt::format("a host's step takes {} ps, expected from 0 to {}", cost, kCostMax));
    }
  }
  for (const double rate : {costs.first_block_copy_rate, costs.system_copy_rate}) {
    if (!std::isfinite(rate) || rate < 0 || (rate > 0 && rate < 1)) {
      return Rejected(fmt::format("a host copies {} bytes/s, expected 1 or more, or 0", rate));
    }
  }
  const double preemptions = costs.preemptions_per_second;
  if (!std::isfinite(preemptions) || preemptions < 0 || preemptions > kPreemptionsMax) {
    return Rejected(fmt::format("{} preemptions per second, expected from 0 to {}", preemptions,
                                kPreemptionsMax));
  }
  const double away = preemptions * static_cast<double>(costs.preemption_length) /
                      static_cast<double>(kPicosecondsPerSecond);
  if (away > kAwayMax) {
    return Rejected(fmt::format(
        "cores are away {} times as long as they are there, expected at most {}", away, kAwayMax));
  }
  return {};
}

Picoseconds TimeOf(uint64_t bytes, double rate) {
  if (rate == 0) return 0;
  return std::llround(static_cast<double>(bytes) / rate *
                      static_cast<double>(kPicosecondsPerSecond));
}

}  // namespace prepost::emulated
