// SPDX-License-Identifier: Apache-2.0
//
// SimulationInput: what prepost simulate is given to run: a plan, a rolled plan and a size, or a
// spec, which is compiled for the modelled network.
#ifndef PREPOST_TOOLS_FLAGS_SIMULATION_INPUT_H_
#define PREPOST_TOOLS_FLAGS_SIMULATION_INPUT_H_

#include <optional>
#include <string>

#include "backends/nic/program/lower.h"
#include "compiler/topology/topology.h"
#include "ir/analysis/network.h"
#include "ir/plan.h"
#include "ir/rolled/rolled_plan.h"
#include "ir/status.h"
#include "ir/verify/verify.h"
#include "sim/profile.h"
#include "tools/flags/cli_forward.h"
#include "tools/flags/message_size.h"
#include "tools/flags/spec_flags.h"

namespace prepost::tools {

/// A plan, and the topology that it is to run on if that is not the profile's network.
struct SimulatedPlan {
  VerifiedPlan plan;
  std::optional<Topology> topology = {};
  std::string topology_path = {};

  /// Errors: kRejected: there are fewer hosts than nodes.
  Result<Network> NetworkIn(const sim::NetworkProfile& profile) const;
};

/// Compiles the spec of `path` (may be empty) and flags. Without a topology of its own it is compiled
/// for `network`: what `auto` chooses, and what racks are. `bytes` as in SpecFlags::Read(), `lower` as in
/// CompileForDevice(). `is_quiet`: no notes, no progress. Errors: kUsage, kRejected.
Result<SimulatedPlan> CompileFor(const sim::NetworkProfile& network, const SpecFlags& spec,
                                 const std::string& path, std::optional<uint64_t> bytes,
                                 const nic::LowerOptions* lower, bool is_quiet);

/// The plan of `rolled`, of the file `path`, for a message of `bytes`, which `flag` says. Errors:
/// kUsage, kRejected.
Result<VerifiedPlan> UnrollFor(const RolledPlan& rolled, const std::string& path, uint64_t bytes,
                               const std::string& flag);

/// "--order 3,0,1"; long ones are cut off.
std::string OrderText(const std::string& order);

struct SimulationInput {
  std::string path;
  SpecFlags spec;
  MessageSize size;

  /// PLAN and the flags of a spec.
  void AddTo(CLI::App& command);
  /// A spec without a topology is compiled for `network`; `lower` as in CompileForDevice().
  /// `is_quiet`: no notes, no progress. Errors: kUsage, kRejected.
  Result<SimulatedPlan> Load(const sim::NetworkProfile& network, const nic::LowerOptions* lower,
                             bool is_quiet) const;

 private:
  Result<VerifiedPlan> Unrolled() const;
};

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_FLAGS_SIMULATION_INPUT_H_
