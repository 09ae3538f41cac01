// SPDX-License-Identifier: Apache-2.0
//
// NoiseFlags: --delay, --slow, --preempt and --neighbours of prepost simulate: a modelled cluster
// with some of its links slow (slow_flag.h), hosts that stand still, and hosts that something else
// takes away at random or shares.
#ifndef PREPOST_PLANNING_FLAGS_NOISE_FLAGS_H_
#define PREPOST_PLANNING_FLAGS_NOISE_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "planning/flags/profile_settings.h"
#include "planning/flags/values.h"
#include "sim/hosts/host_costs.h"
#include "sim/simulation.h"

namespace prepost {

struct NoiseFlags {
  std::vector<std::string> delays;
  std::vector<std::string> slow;
  std::vector<std::string> preempt;     ///< hosts that none is for: as the profile says
  std::vector<std::string> neighbours;  ///< the same

  void AddTo(CLI::App& command);
  /// The delays of all --delay, on a network of `hosts`. Errors: kUsage.
  Result<std::vector<sim::HostDelay>> Delays(uint32_t hosts) const;
  /// What --preempt, and --neighbours of all hosts, set in a profile. Errors: kUsage.
  Result<std::vector<ProfileSetting>> Settings() const;
  /// Those that are given and concern hosts alone: "--delay".
  std::vector<std::string> OfHosts() const;
  /// Those of some hosts below `hosts`, not of all: rising, drawn from `seed` where they are not
  /// named. Errors: kUsage; kRejected: hosts that a larger plan would have.
  Result<std::vector<sim::HostPreemptions>> Preemptions(uint32_t hosts, uint64_t seed) const;
  Result<std::vector<sim::HostNeighbours>> Neighbours(uint32_t hosts, uint64_t seed) const;
  /// Whether something is drawn from the seed.
  bool IsDrawn() const;
  /// The hosts of each flag that draws some, in the order of the flags. Errors: as there.
  Result<std::vector<sim::DrawnHosts>> Drawn(uint32_t hosts, uint64_t seed) const;
};

}  // namespace prepost

#endif  // PREPOST_PLANNING_FLAGS_NOISE_FLAGS_H_
