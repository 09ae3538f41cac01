// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedules/fan.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "ir/analysis/tcp_rate.h"

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

uint32_t BlocksOnPath(const Spec& spec) {
  constexpr double kMost = 1024;  // of windows of rolled plans, too
  if (!spec.topology || spec.topology->racks.size() < 2) return 1;
  const Network& topology = *spec.topology;
  double host = 0;
  std::set<uint32_t> racks;
  for (uint32_t node = 0; node < std::min<size_t>(spec.nodes, topology.nodes.size()); ++node) {
    const Network::Node& it = topology.nodes[node];
    host = std::max(host, std::min(it.out_rate, it.in_rate));
    racks.insert(it.rack);
  }
  if (racks.size() < 2) return 1;
  double bytes = 0;
  const auto consider = [&](double rate, double latency) {
    if (2 * latency >= kLongRoundTrip) bytes = std::max(bytes, std::min(rate, host) * 2 * latency);
  };
  double up = 0, down = 0;
  for (const uint32_t rack : racks) {
    up = std::max(up, topology.racks[rack].up_rate);
    down = std::max(down, topology.racks[rack].down_rate);
  }
  if (topology.links.empty()) consider(std::min(up, down), topology.core_latency);
  for (const uint32_t from : racks) {
    for (const uint32_t to : racks) {
      if (from == to || topology.links.empty()) continue;
      const Network::Link path = PathOf(topology, topology.LinksBetween(from, to));
      consider(path.capacity(), path.latency);
    }
  }
  if (bytes == 0) return 1;
  return static_cast<uint32_t>(
      std::min(1 + std::ceil(bytes / static_cast<double>(spec.block_bytes)), kMost));
}

Ready ReadyFor(const SpecReady& wanted, Fan fan) {
  if (!wanted.automatic) return wanted.ready;
  if (fan.in)
    return {.mode = ReadyMode::kWindow, .window = std::max(fan.ports, wanted.path_blocks)};
  return {.mode = ReadyMode::kBarrier, .window = 0};
}

std::optional<uint32_t> SendWindowFor(const SpecSendWindow& wanted, Fan fan) {
  if (!wanted.automatic) return wanted.window;
  return fan.in || fan.out ? std::optional(std::max(fan.ports, wanted.path_blocks)) : std::nullopt;
}

}  // namespace prepost
