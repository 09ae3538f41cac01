// SPDX-License-Identifier: Apache-2.0
//
// The CPU side of prepost run: a RunJob as a local group of processes, with its progress shown.
#include "runtime/group/local_group.h"
#include "tools/commands/run_job.h"
#include "tools/flags/play_flags.h"

namespace prepost::tools {

Result<LocalRun> RunCpu(const RunJob& job) {
  LocalGroupOptions options;
  options.transport = job.transport;
  options.wait = job.wait;
  options.trace = job.trace;
  options.no_progress_max = job.no_progress_max;
  options.interrupt_fd = job.interrupt_fd;
  options.progress = DeliveryProgress(job.plan.header(), job.show_progress);
  Result<LocalRun> run = RunLocalGroup(job.plan.playable(), job.input, job.outputs, options);
  ClearProgress(job.show_progress);
  return run;
}

}  // namespace prepost::tools
