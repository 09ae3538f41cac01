// SPDX-License-Identifier: Apache-2.0
//
// Lower: a plan becomes queue programs, inline: every data send queue holds WAIT, WAIT, SEND, WAIT,
// SEND ..., each WAIT directly before its own send. The order of a send queue is its channel's
// order, which the plan already has, so lowering adds no edge to the plan graph: an acyclic plan
// cannot deadlock in it.
#ifndef PREPOST_BACKENDS_NIC_LOWER_H_
#define PREPOST_BACKENDS_NIC_LOWER_H_

#include <cstdint>
#include <optional>

#include "prepost/backends/nic/queue_program.h"
#include "prepost/ir/plan.h"
#include "prepost/ir/status.h"

namespace prepost::nic {

/// What the rings of one NIC hold. Defaults: common values of log_max_qp_sz = 15 and log_max_cq_sz
/// = 22 of mlx5 devices.
struct RingLimits {
  /// Of these at most 2^15 - 1 are used: 16-bit indices compare cyclically.
  uint32_t sq_wqebbs = 32768;
  uint32_t rq_wqes = 32768;
  /// CQs hold a whole run, so that the host can check every immediate afterwards.
  uint32_t cq_entries = 4194304;
  /// A block is one message.
  uint32_t block_bytes = kRcMessageBytesMax;
};

struct LowerOptions {
  RingLimits limits;
  std::optional<NodeId> node;  ///< only this node; programs of nodes do not depend on each other
};

/// Verifies `plan` and lowers it. Linear in its ops and `after` entries. Errors (kRejected): a plan
/// that is not valid, a node that does not exist, or a queue that does not fit, with node, queue,
/// what is needed and the limit.
Result<QueueProgram> Lower(const Plan& plan, const LowerOptions& options = {});

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_LOWER_H_
