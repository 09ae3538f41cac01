// SPDX-License-Identifier: Apache-2.0
//
// Page(): the page that a browser opens: plans, queues and runs in one file that needs no network.
// What it shows and how is viz/page/ (TypeScript, built into viz/page/dist/page.html); here its
// data is written.
//
// The data is base64 of a zlib stream: the bytes of a head, 4, little-endian; the head, JSON;
// columns of integers. A column has `count` values as zigzag LEB128, each the difference to the
// value before unless the column is plain; its name begins with the side it is of. What is in them:
// a plan's are the arrays of Plan; of collectives page_collective.h says it, of runs page_run.h, of
// queues page_queues.h.
#ifndef PREPOST_VIZ_PAGE_DATA_PAGE_H_
#define PREPOST_VIZ_PAGE_DATA_PAGE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/analysis/network.h"
#include "ir/verify/verify.h"
#include "runtime/trace/op_times.h"
#include "runtime/trace/trace_file.h"
#include "viz/queues/queues.h"
#include "viz/selection.h"

namespace prepost::viz {

/// Entries of queues that a side holds at most, of all engines and nodes together, and about the
/// bytes of what differs between them.
inline constexpr size_t kPageEntriesMax = 2'000'000;
inline constexpr size_t kPageStepBytesMax = 8u << 20;
/// Bytes of the times of runs, packed, of both sides together: times that would take more are
/// rounded. With a plan's own data it makes pages of at most 10 MB.
inline constexpr size_t kPageRunBytesMax = 5'000'000;
/// Rounds of a plan that a page shows at most.
inline constexpr uint32_t kPageRoundsMax = 1u << 22;

struct PageRun {
  std::string label;  ///< the file's name
  const RunTrace* trace = nullptr;
  TraceInfo info;
};

/// A plan, and a run of it if there is one. What it points at outlives the call.
struct PageSide {
  std::string label;  ///< the file's name
  const VerifiedPlan* plan = nullptr;
  const Network* network = nullptr;  ///< as for DrawSpacetime()
  std::optional<PageRun> run;
  std::string stats;  ///< what `prepost stats --json` prints; "": none
};

struct PageOptions {
  /// Whose queues a page holds.
  QueueEngines engines = {.deferred = true, .cpu = true};
  /// What it shows first. It holds the queues of these nodes, and of all others, as far as
  /// kPageEntriesMax goes.
  Selection selection;
  std::string view = "spacetime";
  size_t entries_max = kPageEntriesMax;  ///< as many as fit, of a side's queues
};

/// One side, or two that are shown beside each other, of kPageRoundsMax rounds at most (CHECK).
/// Engines that the plan does not fit are left out, and the page says why; of other plans than
/// plain multicasts all are. The same arguments give the same bytes.
std::string Page(const std::vector<PageSide>& sides, const PageOptions& options);

}  // namespace prepost::viz

#endif  // PREPOST_VIZ_PAGE_DATA_PAGE_H_
