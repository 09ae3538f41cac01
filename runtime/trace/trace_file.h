// SPDX-License-Identifier: Apache-2.0
//
// Trace files: the times of a run in the Chrome trace event format, which Perfetto and
// chrome://tracing open. A process per node, a thread per channel, a slice per op from its start to
// its completion, an instant where it was posted, and an arrow from each send to its receive. The
// file's form beyond that of the format is in trace.schema.json.
#ifndef PREPOST_RUNTIME_TRACE_TRACE_FILE_H_
#define PREPOST_RUNTIME_TRACE_TRACE_FILE_H_

#include <iosfwd>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "ir/plan.h"
#include "runtime/trace/op_times.h"
#include "runtime/trace/report.h"

namespace prepost {

/// How the detail of a run in virtual time begins.
inline constexpr const char* kModelled = "modelled";
inline constexpr size_t kTraceDetailMax = 2048;  ///< bytes

/// What the host of a node did for a run; see NodeReport. The times of its wake-ups are by the
/// clock of the RunTrace that it comes with; of a file, shifted to kTraceOriginNs as those of ops.
struct TraceHost {
  NodeId node;
  uint64_t posts = 0;
  uint64_t posts_during = 0;  ///< after the start
  uint64_t wakeups = 0;
  uint64_t cpu_ns = 0;
  /// Sorted. Of `wakeups`, those that were recorded: the first ones, or none.
  std::vector<uint64_t> wakeups_ns = {};

  friend bool operator==(const TraceHost&, const TraceHost&) = default;
};
/// Without the times of wake-ups.
std::vector<TraceHost> HostsOf(const RunReport& report);
/// Adds what `trace` has of them.
void AddWakeups(const RunTrace& trace, std::vector<TraceHost>* hosts);

/// What a trace file says about its run beyond the times.
struct TraceInfo {
  std::string executor;               ///< "cpu" or "offload"
  std::string detail;                 ///< transport or device; modelled: kModelled and with what
  std::string outcome = "completed";  ///< or why the run failed
  std::vector<TraceHost> hosts = {};  ///< those that are known
};

/// Writes what `trace` holds; nodes and ops of which nothing is known are left out, so that the
/// trace of one node, or of a run that failed, is a file like any other. `trace` is of `plan`,
/// which must be verified. Streams: about 500 bytes per op to `out`, 16 in memory, and 10 per
/// wake-up. Failures are the stream's.
void WriteTrace(const Plan& plan, const RunTrace& trace, const TraceInfo& info, std::ostream& out);

/// The start of the transfer in traces that were read.
inline constexpr uint64_t kTraceOriginNs = uint64_t{1} << 62;

/// Adds the times of a trace file of `plan` to `trace`, shifted so that the transfer starts at
/// kTraceOriginNs. So files of several nodes, whose clocks may differ, can be read into one trace:
/// they are aligned by their starts. Errors (kRejected): not JSON or not of the form, with place; a
/// trace of another plan; times that cannot be; an op that `trace` has other times of; more times
/// of wake-ups than wake-ups. `info`, if not null, gets what the file says of its run.
Status ReadTrace(std::istream& in, const std::string& name, const Plan& plan, RunTrace* trace,
                 TraceInfo* info = nullptr);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRACE_TRACE_FILE_H_
