// SPDX-License-Identifier: Apache-2.0
//
// TimeExecutor: what the CPU executor and its endpoint for NICs take on this machine, step by step:
// real code that writes real WQEs and reads real CQEs, with a stopwatch between executor, endpoint
// and device. The NICs are emulated; what they take is not counted, nor the way of a doorbell to a
// real one (PCIe).
#ifndef PREPOST_BACKENDS_EMULATED_EXECUTOR_TIMING_H_
#define PREPOST_BACKENDS_EMULATED_EXECUTOR_TIMING_H_

#include <cstdint>

#include "prepost/ir/plan.h"
#include "prepost/ir/status.h"
#include "prepost/runtime/checkpoint.h"

namespace prepost::emulated {

/// Seconds, of one core with warm caches: means of the middle half.
struct ExecutorTimes {
  double poll = 0;          ///< a look that finds nothing
  double completion = 0;    ///< the CQE of a block, sent or received, without the posts that follow
  double credit = 0;        ///< the CQE of a credit
  double post_send = 0;     ///< a WQE and a doorbell
  double post_receive = 0;  ///< a WQE
  double start = 0;         ///< a transfer's start at the root, without its posts
  uint64_t samples = 0;     ///< of the step that was seen least often, `start` aside
};

/// Plays the verified `plan` `transfers` times on the calling thread. It should have credits and
/// small blocks, for they are copied in between. Errors: kRejected: a step that the plan never takes,
/// what endpoints refuse; kEnvironment; those of `checkpoint`.
Result<ExecutorTimes> TimeExecutor(const Plan& plan, uint32_t transfers,
                                   const Checkpoint& checkpoint = {});

}  // namespace prepost::emulated

#endif  // PREPOST_BACKENDS_EMULATED_EXECUTOR_TIMING_H_
