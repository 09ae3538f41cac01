// SPDX-License-Identifier: Apache-2.0
//
// The plans of a session's groups, made by the compiler for the members at hand.
#ifndef PREPOST_LIBRARY_GROUP_PLANS_H_
#define PREPOST_LIBRARY_GROUP_PLANS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "ir/ids.h"
#include "ir/rolled/rolled_plan.h"
#include "runtime/session/group_plans.h"
#include "runtime/transport/tcp/tcp_mesh.h"

namespace prepost {

struct GroupPlanSpec {
  uint32_t nodes = 1;
  NodeId self;
  NodeId root;
  std::string algorithm = "auto";
  uint64_t block_bytes = 0;  ///< 0: chosen for each message
  /// The site of each node, numbered from 0 by the first of its nodes; empty: all are at one.
  std::vector<uint32_t> sites;
  std::vector<std::string> site_names = {};  ///< by number
  /// A file or folder with the plan, flat or rolled, instead of `algorithm` and `block_bytes`.
  std::string plan_path;
  bool is_flat = false;  ///< FlatFor() is to be called
};

/// Of a schedule that has a rolled plan, one of these for each block size that is used, of this
/// node alone; of others flat plans, of all nodes. No credits and no windows: over a transport that
/// holds early blocks back without loss they only add waiting. Of a file: see ReadGroupPlans().
/// Errors (kUsage): the algorithm or the block size is none, or what is wrong with the file.
Result<std::unique_ptr<GroupPlans>> MakeGroupPlans(const GroupPlanSpec& spec);

/// The connections of what `plan` has programs of, for every message size, sorted.
std::vector<TcpConnection> RolledConnections(const RolledPlan& plan);

}  // namespace prepost

#endif  // PREPOST_LIBRARY_GROUP_PLANS_H_
