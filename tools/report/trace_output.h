// SPDX-License-Identifier: Apache-2.0
//
// TraceOutput: --trace FILE, for every subcommand that plays a plan: refuses a bad path before
// anything moves, and writes what happened, also when the run has failed.
#ifndef PREPOST_TOOLS_REPORT_TRACE_OUTPUT_H_
#define PREPOST_TOOLS_REPORT_TRACE_OUTPUT_H_

#include <memory>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "ir/plan.h"
#include "planning/flags/values.h"
#include "runtime/trace/op_times.h"
#include "runtime/trace/trace_file.h"

namespace prepost::tools {

class TraceOutput {
 public:
  /// Must outlive the parsing.
  void AddTo(CLI::App& command);
  bool is_wanted() const { return !path_.empty(); }
  /// Makes the table of `plan`, if --trace was given; without it `plan` may be null. `read` are the
  /// files that must not be replaced. Errors: kUsage; kRejected: the path cannot be written;
  /// kEnvironment.
  Status Prepare(const Plan* plan, const std::vector<std::string>& read);
  /// For the run to fill; null without --trace.
  RunTrace* table() { return table_.get(); }
  /// The trace of a run that ended with `outcome`, with the hosts' wake-ups that the table has.
  /// After an interruption there is none, as there is nothing else. To be called with signals held
  /// (InterruptSignals): the run is over.
  Status Write(const Plan* plan, TraceInfo info, const Status& outcome) const;

 private:
  std::string path_;                 // empty: none
  std::shared_ptr<RunTrace> table_;  // null: none
};

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_REPORT_TRACE_OUTPUT_H_
