// SPDX-License-Identifier: Apache-2.0
//
// The folder of a sharded plan: index.json and a file per node, written as one thing that is there
// whole or not at all, and read whole or by the node that needs its own part only. Every part is
// held against the index, and the index against itself, by hashes of what they say.
#ifndef PREPOST_RUNTIME_FILES_PLAN_FOLDER_H_
#define PREPOST_RUNTIME_FILES_PLAN_FOLDER_H_

#include <string>
#include <vector>

#include "ir/base/status.h"
#include "ir/json/plan_shard.h"
#include "ir/plan.h"
#include "runtime/files/plan_hash.h"

namespace prepost {

/// Whether `path` is a folder: a plan in one can only be one in shards.
bool IsPlanFolder(const std::string& path);

/// Whether WritePlanFolder() to `path` may begin: nothing is there, or a folder with nothing in it
/// but a sharded plan, which is going to be replaced. Errors: kRejected.
Status CheckPlanFolder(const std::string& path);

/// Writes the valid `plan` to a folder beside `path` that is given its name when it is complete; a
/// link stays a link. After an error or an interruption (`interrupt_fd` as in IsInterrupted()) what
/// was there is there still, and nothing else. Errors: kRejected, kInterrupted.
Status WritePlanFolder(const Plan& plan, const std::string& path, int interrupt_fd);

/// Puts the plan together; not verified. Programs are in the order of nodes. Errors (kRejected)
/// name the file: missing, damaged, another node's or another plan's.
Result<Plan> ReadPlanFolder(const std::string& path, std::vector<std::string>* warnings);

/// What one node needs: reads the index and its own file.
struct PlanOfNode {
  Plan plan;  ///< as NodePlan() makes it
  PlanHash hash;
};
/// Verifies what can be (VerifyShard()). Errors: as of ReadPlanFolder(); kRejected: there is no
/// such node.
Result<PlanOfNode> ReadPlanOfNode(const std::string& path, NodeId node,
                                  std::vector<std::string>* warnings);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_FILES_PLAN_FOLDER_H_
