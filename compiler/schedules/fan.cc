// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedules/fan.h"

#include <algorithm>
#include <vector>

namespace prepost {

Fan FanOf(const Plan& plan) {
  std::vector<uint32_t> in(plan.header().nodes), out(plan.header().nodes);
  for (const Channel& channel : plan.channels()) {
    if (channel.carries_credits()) continue;
    ++in[channel.to.index()];
    ++out[channel.from.index()];
  }
  const auto several = [](uint32_t peers) { return peers > 1; };
  return {.in = std::ranges::any_of(in, several),
          .out = std::ranges::any_of(out, several),
          .ports = plan.header().ports};
}

Ready ReadyFor(const SpecReady& wanted, Fan fan) {
  if (!wanted.automatic) return wanted.ready;
  if (fan.in) return {.mode = ReadyMode::kWindow, .window = fan.ports};
  return {.mode = ReadyMode::kBarrier, .window = 0};
}

std::optional<uint32_t> SendWindowFor(const SpecSendWindow& wanted, Fan fan) {
  if (!wanted.automatic) return wanted.window;
  return fan.in || fan.out ? std::optional(fan.ports) : std::nullopt;
}

}  // namespace prepost
