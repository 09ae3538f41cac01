// SPDX-License-Identifier: Apache-2.0
//
// TimeExecutor: what the CPU executor and its endpoints take on this machine, step by step: real
// code with a stopwatch between executor, endpoint and device. Over NICs it writes real WQEs and
// reads real CQEs; the NICs are emulated, and what they take is not counted, nor the way of a
// doorbell to a real one (PCIe). Over TCP bytes go over the loopback interface; system calls are
// not counted, which runtime/calibration/host_timing.h times.
#ifndef PREPOST_SIM_CALIBRATION_EXECUTOR_TIMING_H_
#define PREPOST_SIM_CALIBRATION_EXECUTOR_TIMING_H_

#include <cstdint>

#include "ir/base/status.h"
#include "ir/plan.h"
#include "ir/verify/verify.h"
#include "runtime/base/checkpoint.h"

namespace prepost::sim {

/// What the executor is timed over.
enum class TimedTransport : uint8_t {
  kNics,  ///< nic::DeviceEndpoint on emulated NICs
  kTcp    ///< TcpEndpoint, without what it does in polls: mostly system calls
};

/// Seconds, of one core with warm caches: means of the middle half. Over TCP the executor's part of
/// a poll and of completions alone.
struct ExecutorTimes {
  double poll = 0;          ///< a poll that finds nothing
  double completion = 0;    ///< that of a block, sent or received, without the posts that follow
  double credit = 0;        ///< that of a credit
  double post_send = 0;     ///< NICs: a WQE and a doorbell; TCP: a note of what is to be written
  double post_receive = 0;  ///< NICs: a WQE; TCP: a note of where bytes go
  double start = 0;         ///< a transfer's start at the root, without its posts
  uint64_t samples = 0;     ///< of the step that was seen least often, `start` aside
};

/// Plays the verified `plan` `transfers` times on the calling thread. It should have credits and
/// small blocks, for they are copied in between. Errors: kRejected: a step that the plan never
/// takes, what endpoints refuse; kEnvironment; those of `checkpoint`.
Result<ExecutorTimes> TimeExecutor(const VerifiedPlan& plan, uint32_t transfers,
                                   TimedTransport transport, const Checkpoint& checkpoint = {});

}  // namespace prepost::sim

#endif  // PREPOST_SIM_CALIBRATION_EXECUTOR_TIMING_H_
