// SPDX-License-Identifier: Apache-2.0
//
// RunOffload: the offload executor on emulated NICs. It arms every node, rings the doorbells,
// sleeps until each node's single final completion, and then checks what was received. All nodes'
// hosts are this one thread.
#ifndef PREPOST_BACKENDS_LOCAL_OFFLOAD_RUN_H_
#define PREPOST_BACKENDS_LOCAL_OFFLOAD_RUN_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/emulated/engine.h"
#include "backends/local/armed_group.h"
#include "backends/nic/nic_model.h"
#include "backends/nic/program/lower.h"
#include "ir/base/status.h"
#include "ir/plan.h"
#include "ir/verify/verify.h"
#include "runtime/executor/op_event.h"
#include "runtime/trace/op_times.h"
#include "runtime/trace/report.h"

namespace prepost::local {

struct OffloadOptions {
  std::string device = "emulated";  ///< for the report
  /// What stands in front of each NIC; empty: an EmulatedDevice.
  nic::DeviceFactory make_device = {};
  nic::LowerOptions lower = {};
  emulated::SchedulerMode scheduler = emulated::SchedulerMode::kRoundRobin;
  uint64_t seed = 1;  ///< of the scheduler: the same seed gives the same run
  FirstNumbers first = {};
  std::vector<emulated::QpFault> faults = {};  ///< QPs to break on the way
  /// The run has failed when nothing moves for so long; 0: never. Emulated NICs that cannot go on
  /// are idle, which ends the run at once.
  std::chrono::milliseconds no_progress_max{0};
  bool validate = true;   ///< false: rings for whatever stands in the queues, for tests
  bool sees_idle = true;  ///< false: as with devices that do not show it, for tests
  int interrupt_fd = -1;  ///< the run is interrupted when this is readable; -1: never. Not owned
  RunTrace* trace = nullptr;  ///< not owned; filled at the end, also when the run fails
  /// Called at the end, also when the run fails, with what the NICs did, as it happened. May be
  /// empty.
  OpObserver observer = {};
};

/// Lowers `plan` and runs it. No doorbell is rung before the bytes in all rings have been validated
/// (backends/nic/validate/validate.h). `message` is the root's; `node_buffers[v]` is node v's, of
/// the message's size (the root's is not used). The host is measured, not assumed: its figures are
/// the devices' counters (nic::DeviceCounters) from its doorbells to its final completion; posts
/// during the transfer are doorbells and requests for events. Errors: kRejected for a plan that is
/// not valid or does not fit, bytes that are not the plan's, buffers of the wrong size, a run that
/// is stuck (with the report) or fails, with the first cause; kInterrupted. On error buffers may be
/// partly written, and no QP moves any more.
Result<RunReport> RunOffload(const VerifiedPlan& plan, std::span<const std::byte> message,
                             std::span<const std::span<std::byte>> node_buffers,
                             const OffloadOptions& options = {});

/// The same for a program that exists: all nodes' of `plan`, in the order of node ids.
Result<RunReport> RunQueueProgram(const VerifiedPlan& plan, const nic::QueueProgram& program,
                                  std::span<const std::byte> message,
                                  std::span<const std::span<std::byte>> node_buffers,
                                  const OffloadOptions& options = {});

/// The same for several messages in sequence over the same queues: a node arms the next one as soon
/// as its own part of this one is complete and checked, while others may still be at it. The report
/// is of all messages together; a trace or observer gets all of them, too, so times are the last
/// one's.
Result<RunReport> RunQueueProgram(const VerifiedPlan& plan, const nic::QueueProgram& program,
                                  std::span<const MessageBuffers> transfers,
                                  const OffloadOptions& options = {});

}  // namespace prepost::local

#endif  // PREPOST_BACKENDS_LOCAL_OFFLOAD_RUN_H_
