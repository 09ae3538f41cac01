// SPDX-License-Identifier: Apache-2.0
//
// Cluster: what a run in virtual time happens on: a clock, a network and NICs that share
// them. For RunPreposted() and RunCpuDriven(), which add the hosts.
#ifndef PREPOST_SIM_RUNS_CLUSTER_H_
#define PREPOST_SIM_RUNS_CLUSTER_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "backends/emulated/fabric.h"
#include "sim/clock/clock.h"
#include "sim/network/fluid_network.h"
#include "sim/network/long_paths.h"
#include "sim/nics/time.h"
#include "sim/nics/timed_engine.h"

namespace prepost::sim {

/// One thread. Pointers of `options` must outlive it.
struct Cluster {
  struct Options {
    NicCosts costs = {};
    HostHandler* hosts = nullptr;  ///< as in TimedEngineOptions, as the next
    TimeTrail* trail = nullptr;
    /// Of this network, which outlives the cluster, TCP's windows hold long paths back; null:
    /// nothing.
    const Network* tcp_over = nullptr;
    uint64_t seed = 0;  ///< of what they lose
    /// See Clock::set_prefetches(); none: from more than `cached_hosts` hosts on.
    std::optional<bool> prefetches = {};
    uint32_t cached_hosts = 0;  ///< whose memory mostly stays in the cache, as measured
  };

  /// `network_in` has `hosts` hosts, each with a NIC.
  Cluster(FluidNetwork network_in, uint32_t hosts, const Options& options)
      : network(std::move(network_in)),
        paths(options.tcp_over == nullptr
                  ? nullptr
                  : std::make_unique<LongPaths>(*options.tcp_over, options.seed, &clock, &network)),
        fabric(
            [&](const std::vector<ArenaPointer<NicState>>& nics) {
              return std::make_unique<TimedEngine>(nics, TimedEngineOptions{.clock = &clock,
                                                                            .network = &network,
                                                                            .costs = options.costs,
                                                                            .hosts = options.hosts,
                                                                            .trail = options.trail,
                                                                            .paths = paths.get()});
            },
            hosts) {
    clock.set_prefetches(options.prefetches.value_or(hosts > options.cached_hosts));
  }

  Picoseconds now() const { return clock.now(); }
  /// When the last block came to the node of `open`, which is on NIC `host`, over its QPs, and
  /// could be seen; 0 without one. After the run.
  Picoseconds LastBlockAt(NodeId host, const nic::OpenNode& open) const {
    Picoseconds last = 0;
    for (const nic::OpenQp& qp : open.qps) {
      const QpState* const state = fabric.state(host).FindQp(qp.qpn);
      if (qp.lane != Lane::kCredits && state != nullptr) last = std::max(last, state->landed_at);
    }
    return last;
  }

  Clock clock;
  FluidNetwork network;
  std::unique_ptr<LongPaths> paths;
  emulated::Fabric fabric;  // uses both
};

}  // namespace prepost::sim

#endif  // PREPOST_SIM_RUNS_CLUSTER_H_
