// SPDX-License-Identifier: Apache-2.0
//
// RunJob: one message to be carried by one plan, whichever executor does it; and the two ways to do
// it.
#ifndef PREPOST_TOOLS_COMMANDS_RUN_JOB_H_
#define PREPOST_TOOLS_COMMANDS_RUN_JOB_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "backends/emulated/scheduler.h"
#include "backends/nic/program/queue_program.h"
#include "backends/registry.h"
#include "ir/base/status.h"
#include "planning/flags/play_flags.h"
#include "runtime/executor/executor_choice.h"
#include "runtime/files/message_file.h"
#include "runtime/files/output_set.h"
#include "runtime/run/local_group.h"

namespace prepost::tools {

/// A plan, flat to be offloaded, a message of its size, and where copies go.
struct RunJob {
  const PlayedPlan& plan;
  const MappedInput& input;
  OutputSet* outputs;  ///< null: nowhere
  int interrupt_fd;
  TransportKind transport;  ///< CPUs only, as is the next
  WaitPolicy wait;
  std::chrono::milliseconds no_progress_max;
  std::chrono::milliseconds failure_max;  ///< of nodes in processes of their own
  bool show_progress;
  const SoftwareDevice& device;  ///< offload only, as are the next three
  emulated::SchedulerMode scheduler;
  uint64_t seed;                     ///< of the scheduler
  const nic::QueueProgram* program;  ///< the plan, lowered; CPUs: null. Not owned
  RunTrace* trace;                   ///< null: none; filled, also when the run fails. Not owned
  /// Of the registry, instead of all that is for emulated NICs: one in each node's process; "":
  /// none.
  std::string player_device = {};
  Executor executor = Executor::kAuto;  ///< over it
  bool is_sealed = false;               ///< by RunCpu() over kTcp
};

/// A process per node over a local transport. Errors: those of RunLocalGroup.
Result<LocalRun> RunCpu(const RunJob& job);

/// A process per node over `player_device`, preposted or driven. The note says which, for auto.
/// Errors: those of OpenPlayerDevice(), of lowering, and of RunLocalGroup.
struct DeviceRun {
  LocalRun run;
  std::string note;
};
Result<DeviceRun> RunOverDevice(const RunJob& job);

/// Preposted to emulated NICs, all in this process. Message and copies are in memory during the
/// transfer, as a NIC's registration would pin them; copies are written to their files afterwards.
/// Errors: those of RunQueueProgram and of the files.
Result<LocalRun> RunOffloaded(const RunJob& job);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_COMMANDS_RUN_JOB_H_
