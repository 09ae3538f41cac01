// SPDX-License-Identifier: Apache-2.0
//
// The CPU side of prepost run: a RunJob as a local group of processes, with its progress shown.
#include <fmt/format.h>

#include <iostream>

#include "prepost/runtime/local_group.h"
#include "tools/run_job.h"

namespace prepost::tools {

Result<LocalRun> RunCpu(const RunJob& job) {
  LocalGroupOptions options;
  options.transport = job.transport;
  options.wait = job.wait;
  options.trace = job.trace;
  options.no_progress_max = job.no_progress_max;
  options.interrupt_fd = job.interrupt_fd;
  const double total =
      static_cast<double>(job.plan.header().message.bytes) * (job.plan.header().nodes - 1);
  if (job.show_progress && total > 0) {
    options.progress = [total](uint64_t received) {
      std::cerr << fmt::format("\r{:3.0f}% delivered ",
                               100 * static_cast<double>(received) / total);
    };
  }
  Result<LocalRun> run = RunLocalGroup(job.plan, job.input, job.outputs, options);
  if (job.show_progress) std::cerr << "\r\033[K";
  return run;
}

}  // namespace prepost::tools
