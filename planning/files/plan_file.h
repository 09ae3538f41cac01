// SPDX-License-Identifier: Apache-2.0
//
// The plans that arguments name, in any encoding, flat or rolled, from files, folders of shards and
// pipes; where a subcommand writes the plan that it made; and the topologies beside them.
#ifndef PREPOST_PLANNING_FILES_PLAN_FILE_H_
#define PREPOST_PLANNING_FILES_PLAN_FILE_H_

#include <cstdint>
#include <string>

#include "compiler/topology/topology.h"
#include "ir/analysis/network.h"
#include "ir/base/status.h"
#include "ir/plan.h"
#include "ir/rolled/rolled_plan.h"
#include "ir/verify/verify.h"
#include "planning/flags/values.h"

namespace prepost {

enum class FileKind : uint8_t {
  kPlan,  ///< or a folder, which can only be one in shards
  kRolledPlan,
  kSpec,
  kPlanPart,  ///< the index of a folder of shards, or a shard
  kTrace,
  kGoal  ///< a GOAL text
};

/// By the file's "format" key, or how a text begins, up to which it is read; stdin ("-") too, which
/// can then be read from its beginning. What says nothing or is no JSON counts as a plan: its
/// reader reports what is wrong. Errors: kRejected: it cannot be read.
Result<FileKind> KindOf(const std::string& path);

/// Reads a plan ("-": stdin), prints warnings to stderr; does not verify it.
Result<Plan> ReadPlanFile(const std::string& path);
/// Reads a rolled plan; the same.
Result<RolledPlan> ReadRolledPlanFile(const std::string& path);
/// Reads a plan of any collective and verifies it; the Status holds the first finding and how many
/// more there are.
Result<VerifiedPlan> LoadAnyPlan(const std::string& path);
/// Whether CPUs play `plan`. Errors (kRejected): it is a multicast that is not plain.
Status ExpectPlayed(const Plan& plan);
/// Whether `plan` can be drawn, with its queues if `has_queues`: only plain multicasts have some.
/// Errors (kRejected): of ExpectPlainMulticast(), with what is drawn of all plans.
Status ExpectDrawn(const Plan& plan, bool has_queues);
/// LoadAnyPlan() of what CPUs play. Errors: also ExpectPlayed().
Result<VerifiedPlan> LoadPlayedPlan(const std::string& path);
/// The same of what a device carries out by itself. Errors: also WhyNotPreposted(), with what takes
/// such a plan.
Result<VerifiedPlan> LoadPrepostedPlan(const std::string& path);
/// The same of a plain multicast. Errors: also ExpectPlainMulticast().
Result<VerifiedPlan> LoadPlan(const std::string& path);

/// Where a subcommand writes the plan that it made, and in which form.
struct PlanOutput {
  std::string path = "-";
  std::string encoding = "auto";
  bool dump = false;

  /// -o, --encoding and --dump.
  void AddTo(CLI::App& command);
  /// What does not go together or cannot be written, before the plan is made.
  Status Check() const;
  /// The same for a rolled plan, which has one encoding. Errors: kUsage: another is asked for.
  Status CheckRolled() const;

  Status Write(const Plan& plan) const;
  Status Write(const RolledPlan& plan) const;
};

/// Reads and checks a topology file ("-": stdin); prints warnings to stderr.
Result<Network> LoadTopology(const std::string& path);
/// The network of `topology`, from the file `path`, under a plan of `nodes` nodes; errors name the
/// file.
Result<Network> NetworkOfFile(const Network& topology, const std::string& path, uint32_t nodes);

}  // namespace prepost

#endif  // PREPOST_PLANNING_FILES_PLAN_FILE_H_
