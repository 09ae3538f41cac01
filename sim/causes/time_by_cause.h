// SPDX-License-Identifier: Apache-2.0
//
// What the time of a run in virtual time went to, from its trail: by the parts in which the RDMC
// paper reports a node's time (its Table 1), and along the critical path: the chain of what each
// thing waited for, from the start of the run to any point. Both add up exactly.
#ifndef PREPOST_SIM_CAUSES_TIME_BY_CAUSE_H_
#define PREPOST_SIM_CAUSES_TIME_BY_CAUSE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/ids.h"
#include "runtime/trace/op_times.h"
#include "sim/causes/time_trail.h"
#include "sim/network/link_traffic.h"
#include "sim/nics/time.h"

namespace prepost::sim {

/// A node's time from its group's start to its own end. Remote is what comes before its first block
/// is there, local what comes after; at the root all is local. docs/simulate.md defines each part.
struct NodeTimes {
  Picoseconds remote_setup = 0;
  Picoseconds remote_transfers = 0;  ///< blocks on the wire, on the chain to its first block
  Picoseconds local_setup = 0;       ///< the host's, once per message
  Picoseconds transfers = 0;         ///< one of its blocks is on the wire
  Picoseconds copy = 0;              ///< the host copies its first block, and none is
  Picoseconds waiting = 0;           ///< nothing of these
  Picoseconds sum() const {
    return remote_setup + remote_transfers + local_setup + transfers + copy + waiting;
  }

  friend bool operator==(const NodeTimes&, const NodeTimes&) = default;
};

/// Of a run that is over. `start`: the group's.
NodeTimes TimesOf(const TimeTrail& trail, uint32_t group, NodeId node, Picoseconds start = 0);

struct PathPart {
  TimeCause cause = TimeCause::kOther;
  Picoseconds time = 0;  ///< > 0

  friend bool operator==(const PathPart&, const PathPart&) = default;
};

/// What it took from when one message was there (or the start) to when the next one on the path
/// was, in the order in which causes come first.
struct PathLink {
  MessageId message = kNoMessage;  ///< none: what came after the last one
  Picoseconds until = 0;
  std::vector<PathPart> parts;  ///< a cause once
};

/// From `from`, else the start of the run, to `end`: all parts together take as long as that.
/// `traffic`: may be null; else what is shared with other groups is told apart.
std::vector<PathLink> CriticalPath(const TimeTrail& trail, StepId end, Picoseconds from = 0,
                                   const LinkTraffic* traffic = nullptr);

/// Of a group, when its last block was there at its last receiver; its start, if it has none.
StepId CompletionOf(const TimeTrail& trail, uint32_t group);
/// Of a group, when the last host knew that its part was over.
StepId KnownOf(const TimeTrail& trail, uint32_t group);

/// When each op of the only group was posted, started and completed, and when its hosts woke up, in
/// `trace`, which is of its plan: for the files and pictures of runs. Times are cut to whole ns; a
/// preposted op counts as posted at the start.
void FillTrace(const TimeTrail& trail, RunTrace* trace);

/// By TimeCause.
using CauseTimes = std::array<Picoseconds, kTimeCauseNames.size()>;
CauseTimes SumOf(const std::vector<PathLink>& path);

/// `count` links from `first` on, and the same again, `times` times in all: the same but for which
/// nodes and blocks, and for how soon a polling host polled.
struct PathRun {
  size_t first = 0;
  size_t count = 1;
  size_t times = 1;
};

/// All of `path`, in order, with what repeats folded.
std::vector<PathRun> Fold(const TimeTrail& trail, const std::vector<PathLink>& path);

}  // namespace prepost::sim

#endif  // PREPOST_SIM_CAUSES_TIME_BY_CAUSE_H_
