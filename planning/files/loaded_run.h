// SPDX-License-Identifier: Apache-2.0
//
// LoadedRun: a run as its trace files say it.
#ifndef PREPOST_PLANNING_FILES_LOADED_RUN_H_
#define PREPOST_PLANNING_FILES_LOADED_RUN_H_

#include <optional>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "ir/plan.h"
#include "runtime/trace/op_times.h"
#include "runtime/trace/trace_file.h"

namespace prepost {

struct LoadedRun {
  std::string label;  ///< the first file's name, and how many there are
  RunTrace trace;
  TraceInfo info;
};

/// The files together, as of several nodes of one run of `plan`; none when there are none. "-" is
/// stdin. What they say of the run is the last one's, but for a failure, which is the first one's,
/// and for hosts, which are all of them. Errors: those of ReadTrace(); kRejected: they are of
/// different executors.
Result<std::optional<LoadedRun>> LoadTraces(const std::vector<std::string>& paths,
                                            const Plan& plan);

/// Whether a file is a trace, by how it begins; of a pipe nothing is taken. One that cannot be read
/// is none.
bool IsTrace(const std::string& path);

}  // namespace prepost

#endif  // PREPOST_PLANNING_FILES_LOADED_RUN_H_
