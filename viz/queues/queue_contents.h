// SPDX-License-Identifier: Apache-2.0
//
// Internal to viz: which queues one node has and what is in them, for each engine that can execute
// its part of a plan: a NIC, a provider of libfabric with deferred work, a CPU.
#ifndef PREPOST_VIZ_QUEUES_QUEUE_CONTENTS_H_
#define PREPOST_VIZ_QUEUES_QUEUE_CONTENTS_H_

#include <span>
#include <string>
#include <vector>

#include "backends/nic/program/lower.h"
#include "backends/triggered/deferred_program.h"
#include "ir/plan.h"
#include "viz/queues/queue_layout.h"
#include "viz/selection.h"

namespace prepost::viz {

/// The ops of a node, by name, and which of them are to be shown.
class ShownOps {
 public:
  ShownOps(const Plan& plan, NodeId node, const Selection& selection);

  bool all() const { return selection_.blocks.empty() && !selection_.rounds; }
  bool Has(OpId op) const;
  /// "send b3 to 4", "recv credit from 2", "the end".
  std::string Name(OpId op) const;

 private:
  const Plan& plan_;
  const Selection& selection_;
  std::span<const Op> ops_;
};

// With a selection also what its sends depend on is shown.

/// `has_fields`: with what is in each WQE.
std::vector<DrawnQueue> QueuesOfNic(const Plan& plan, const Selection& selection,
                                    const nic::NodeProgram& program, bool has_fields = false);
/// A column per endpoint, and one for each counter that is added to.
std::vector<DrawnQueue> QueuesOfDeferredWork(const Plan& plan, const Selection& selection,
                                             const triggered::DeferredProgram& program);
/// A column per end of a channel, and between them the CPU's: what it posts after which completion.
std::vector<DrawnQueue> QueuesOfCpu(const Plan& plan, const Selection& selection, NodeId node);

}  // namespace prepost::viz

#endif  // PREPOST_VIZ_QUEUES_QUEUE_CONTENTS_H_
