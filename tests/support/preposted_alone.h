// SPDX-License-Identifier: Apache-2.0
//
// RunPrepostedAlone: one plan, preposted, in virtual time, whose node i is host i.
#ifndef PREPOST_TESTS_SUPPORT_PREPOSTED_ALONE_H_
#define PREPOST_TESTS_SUPPORT_PREPOSTED_ALONE_H_

#include <utility>
#include <vector>

#include "backends/nic/program/lower.h"
#include "backends/nic/program/queue_program.h"
#include "ir/analysis/network.h"
#include "ir/verify/verify.h"
#include "sim/runs/preposted.h"

namespace prepost::sim {

/// What RunPreposted() finds of the only group.
struct PrepostedAlone : PrepostedResult::Group {
  using Node = PrepostedResult::Node;
  std::vector<UsedLink> links;
  emulated::EngineCounters counters;
};

/// `program`: of all nodes of `plan`.
inline Result<PrepostedAlone> RunPrepostedAlone(const VerifiedPlan& plan,
                                                const nic::QueueProgram& program,
                                                const Network& network,
                                                const PrepostedOptions& options = {}) {
  // Every host has a node, as a plan for this network has it.
  PREPOST_RETURN_IF_ERROR(CheckNetwork(network, plan.header().nodes));
  const Group group = {.plan = &plan};
  const nic::QueueProgram* const programs[] = {&program};
  Result<PrepostedResult> run = RunPreposted({&group, 1}, programs, network, options);
  if (!run.ok()) return run.status();
  return PrepostedAlone{std::move(run->groups.front()), std::move(run->links), run->counters};
}

/// Lowers it, too.
inline Result<PrepostedAlone> RunPrepostedAlone(const VerifiedPlan& plan, const Network& network,
                                                const PrepostedOptions& options = {}) {
  PREPOST_RETURN_IF_ERROR(CheckNetwork(network, plan.header().nodes));
  const Group group = {.plan = &plan};
  Result<PrepostedResult> run = RunPreposted({&group, 1}, network, options);
  if (!run.ok()) return run.status();
  return PrepostedAlone{std::move(run->groups.front()), std::move(run->links), run->counters};
}

}  // namespace prepost::sim

#endif  // PREPOST_TESTS_SUPPORT_PREPOSTED_ALONE_H_
