// SPDX-License-Identifier: Apache-2.0
#include "sim/nics/time.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "sim/clock/clock.h"
#include "sim/network/fluid_network.h"

namespace prepost::sim {
namespace {

std::string BeyondTime() {
  return fmt::format(
      "it goes on beyond {} s, the last that the clock can show: what is modelled takes too long",
      kNever / kPicosecondsPerSecond);
}

}  // namespace

Picoseconds ToPicoseconds(double picoseconds) {
  // As a double kNever is 2^63, which no Picoseconds is.
  return picoseconds < static_cast<double>(kNever) ? std::llround(picoseconds) : kNever;
}

Picoseconds FromSeconds(double seconds) {
  return ToPicoseconds(seconds * static_cast<double>(kPicosecondsPerSecond));
}

Status CheckCosts(const NicCosts& costs) {
  for (const Picoseconds cost :
       {costs.wqe, costs.wait, costs.cqe, costs.doorbell, costs.doorbell_interval}) {
    if (cost < 0 || cost > kStepMax) {
      return Rejected(
          fmt::format("a NIC's step takes {} ps, expected from 0 to {}", cost, kStepMax));
    }
  }
  for (const Picoseconds timer : {costs.rnr_timer, costs.ack_timeout}) {
    if (timer < 1 || timer > kStepMax) {
      return Rejected(fmt::format("a timer of {} ps, expected from 1 to {}", timer, kStepMax));
    }
  }
  return {};
}

Status CheckWithinTime(const Clock& clock, const FluidNetwork& network) {
  PREPOST_RETURN_IF_ERROR(network.CheckShares());
  if (!clock.has_missed() && network.flows() == 0) return {};
  return Rejected(BeyondTime());
}

bool IsBeyondTime(const Status& status) { return status.message().ends_with(BeyondTime()); }

}  // namespace prepost::sim
