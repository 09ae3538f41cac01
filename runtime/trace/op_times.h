// SPDX-License-Identifier: Apache-2.0
//
// RunTrace: when each op of a plan was posted, started and completed in one run, and when each
// node's host woke up. It is a table in memory that node processes share with the launcher, so
// recording costs a clock and a store.
#ifndef PREPOST_RUNTIME_TRACE_OP_TIMES_H_
#define PREPOST_RUNTIME_TRACE_OP_TIMES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "ir/plan.h"
#include "runtime/base/mapping.h"
#include "runtime/executor/op_event.h"

namespace prepost {

/// By MonotonicNs(); 0: it did not happen, or nobody saw it (a credit's receive has no start).
struct OpTimes {
  uint64_t posted_ns = 0;
  uint64_t started_ns = 0;
  uint64_t completed_ns = 0;
};

/// There is room for the times of so many wake-ups: of all nodes together, shared evenly, but for
/// some of each.
inline constexpr size_t kWakeupTimesMax = size_t{1} << 22;
inline constexpr size_t kWakeupTimesLeast = 64;  ///< per node

/// Move only. Each node's times are written by one thread or process, and read by others after it
/// has finished.
class RunTrace {
 public:
  /// `plan` must be verified and outlive it. To be made before node processes are forked, which
  /// then share it. Errors: kEnvironment: no memory.
  static Result<RunTrace> Make(const Plan& plan);

  /// By op id of `node`.
  std::span<OpTimes> times(NodeId node);
  std::span<const OpTimes> times(NodeId node) const;
  /// When the host of `node` came back from waiting, in order: the first times, as many as there is
  /// room for.
  std::span<const uint64_t> wakeups(NodeId node) const;
  /// Records what happens at any node, with the time of the call. `this` must outlive it.
  OpObserver Observer();
  void Record(const OpEvent& event, uint64_t time_ns);

  /// The start of the transfer, for all nodes.
  uint64_t start_ns = 0;
  /// For a run in virtual time, which reads no clock: kModelled (trace_file.h) and with what.
  std::string modelled = {};

 private:
  RunTrace(const Plan& plan, Mapping table, Mapping wakeups);

  static size_t WakeupsMax(size_t nodes);
  /// How many times are recorded, and then the times.
  std::span<uint64_t> WakeupRow(NodeId node) const;
  void RecordWakeup(NodeId node, uint64_t time_ns);

  std::vector<Program> programs_;  ///< by node
  Mapping table_;                  ///< OpTimes in the order of the plan's ops
  Mapping wakeups_;                ///< a row per node; what is not recorded takes no memory
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRACE_OP_TIMES_H_
