// SPDX-License-Identifier: Apache-2.0
//
// SimulationInput: what prepost simulate is given to run: a plan, a rolled plan and a size, or a
// spec, which is compiled for the modelled network; PlanCache: plans that several rows of a sweep
// run, so that each is read or compiled once; Workload: a workload file with its plans.
#ifndef PREPOST_PLANNING_FLAGS_SIMULATION_INPUT_H_
#define PREPOST_PLANNING_FLAGS_SIMULATION_INPUT_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backends/nic/program/lower.h"
#include "compiler/topology/topology.h"
#include "ir/analysis/network.h"
#include "ir/base/status.h"
#include "ir/plan.h"
#include "ir/rolled/rolled_plan.h"
#include "ir/verify/verify.h"
#include "planning/flags/spec_flags.h"
#include "planning/flags/values.h"
#include "sim/cluster/profile.h"
#include "sim/runs/group.h"

namespace prepost {

/// A plan, and the topology that it is to run on if that is not the profile's network.
struct SimulatedPlan {
  VerifiedPlan plan;
  std::optional<Network> topology = {};
  std::string topology_path = {};

  /// Errors: kRejected: there are fewer hosts than nodes.
  Result<Network> NetworkIn(const sim::Profile& profile) const;
};

/// Compiles the spec of `path` (may be empty) and flags. Without a topology of its own it is
/// compiled for the network of `target`'s profile: what `auto` chooses, and what racks are. `bytes`
/// as in SpecFlags::Read(). `is_quiet`: no notes, no progress. Errors: kUsage, kRejected.
Result<SimulatedPlan> CompileFor(const AutoTarget& target, const SpecFlags& spec,
                                 const std::string& path, std::optional<uint64_t> bytes,
                                 bool is_quiet);

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
  /// A spec is compiled for `target`. `is_quiet`: no notes, no progress. Errors: kUsage, kRejected.
  Result<SimulatedPlan> Load(const AutoTarget& target, bool is_quiet) const;

 private:
  Result<VerifiedPlan> Unrolled() const;
};

/// What a plan depends on: flags, and the cluster that it is compiled for.
struct PlanKey {
  std::string flags;
  Network network;  ///< with rack_hosts, as in Profile
  uint32_t rack_hosts = 0;

  friend bool operator==(const PlanKey&, const PlanKey&) = default;
};

/// Plans that several rows of a sweep run, so that each is read or compiled once. Used by several
/// threads.
class PlanCache {
 public:
  using Make = std::function<Result<SimulatedPlan>()>;

  /// The plan of `key`: the one that is there, else what `make` gives. Those that were used least
  /// lately go when there are too many ops.
  Result<std::shared_ptr<const SimulatedPlan>> Get(const PlanKey& key, const Make& make);

 private:
  static constexpr size_t kOpsMax = size_t{1} << 23;  ///< of all plans, but for the last one

  struct Entry {
    PlanKey key;
    std::shared_ptr<const SimulatedPlan> plan;
    size_t ops = 0;
  };

  std::shared_ptr<const SimulatedPlan> Find(const PlanKey& key);

  std::mutex mutex_;
  std::list<Entry> entries_;  // guarded by mutex_; the last used first
};

/// A workload file with its plans, as RunSimulation() wants it. Move only: groups point to plans.
struct Workload {
  std::string name;  ///< the file's if it does not say one
  uint32_t hosts = 0;
  std::deque<VerifiedPlan> plans;  ///< each once, however many groups have it
  std::vector<sim::Group> groups;

  Workload() = default;
  Workload(Workload&&) = default;
  Workload& operator=(Workload&&) = default;
};

/// Reads the file `path` ("-": stdin), its plans, and compiles its specs; `lower` and `is_quiet` as
/// in CompileForDevice(). Errors: kRejected, with the place in the file.
Result<Workload> LoadWorkload(const std::string& path, const nic::LowerOptions* lower,
                              bool is_quiet);

}  // namespace prepost

#endif  // PREPOST_PLANNING_FLAGS_SIMULATION_INPUT_H_
