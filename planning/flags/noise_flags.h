// SPDX-License-Identifier: Apache-2.0
//
// NoiseFlags: --delay, --slow, --preempt and --neighbours of prepost simulate: a modelled cluster
// with some of its links slow, hosts that stand still, and hosts that something else takes away at
// random or shares.
#ifndef PREPOST_PLANNING_FLAGS_NOISE_FLAGS_H_
#define PREPOST_PLANNING_FLAGS_NOISE_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/analysis/network.h"
#include "ir/base/status.h"
#include "planning/flags/profile_settings.h"
#include "planning/flags/values.h"
#include "sim/hosts/host_costs.h"

namespace prepost {

struct NoiseFlags {
  std::vector<std::string> delays;
  std::vector<std::string> slow;
  std::string preempt;                  ///< empty: as the profile says
  std::vector<std::string> neighbours;  ///< the same

  void AddTo(CLI::App& command);
  /// Slows parts of `network`, all by the rates that it comes with: "2->5=0.5" what node 2 sends to
  /// node 5, "3=0.5" the port of node 3 both ways, "random=0.05,factor=0.5" each pair with that
  /// probability, drawn from `seed` and the pair's numbers alone, so that the same pairs are slow
  /// with more nodes. Of a pair that is named twice the slower counts. Errors: kUsage, kRejected:
  /// too many pairs to draw for.
  Status Slow(uint64_t seed, Network* network) const;
  /// The delays of all --delay, on a network of `hosts`. Errors: kUsage.
  Result<std::vector<sim::HostDelay>> Delays(uint32_t hosts) const;
  /// What --preempt, and --neighbours of all hosts, set in a profile. Errors: kUsage.
  Result<std::vector<ProfileSetting>> Settings() const;
  /// Those that are given and concern hosts alone: "--delay".
  std::vector<std::string> OfHosts() const;
  /// Those of one host, below `hosts`, each. Errors: kUsage.
  Result<std::vector<sim::HostNeighbours>> Neighbours(uint32_t hosts) const;
};

}  // namespace prepost

#endif  // PREPOST_PLANNING_FLAGS_NOISE_FLAGS_H_
