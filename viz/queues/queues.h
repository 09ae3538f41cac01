// SPDX-License-Identifier: Apache-2.0
//
// The queue pictures: what one node's part of a plan is for each engine that can execute it. For a
// NIC a column per send and receive queue with its WQEs in order, the CQE that each gives, an arrow
// to each WAIT from what it waits for, and an arrow from each SEND_EN to the WQE up to which it
// enables a managed queue; for a provider of libfabric its deferred work; for a CPU what it posts
// after what. The only pictures that know of queues.
#ifndef PREPOST_VIZ_QUEUES_QUEUES_H_
#define PREPOST_VIZ_QUEUES_QUEUES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "backends/nic/program/lower.h"
#include "ir/verify/verify.h"
#include "viz/selection.h"

namespace prepost::viz {

/// More entries than this make no readable picture; DrawQueues() refuses them.
inline constexpr uint32_t kQueueEntriesMax = 400;

/// Arrows with more lines than this side by side cannot be followed: then none are drawn, which the
/// title says.
inline constexpr int kArrowsSideBySideMax = 16;

/// Whose queues are drawn; at least one's.
struct QueueEngines {
  std::optional<nic::LowerOptions> nic = nic::LowerOptions();
  bool deferred = false;  ///< a provider of libfabric with deferred work
  bool cpu = false;       ///< the CPU executor
};

/// An SVG file of the queues of the one selected node, of several engines below each other; with
/// blocks or rounds, of the entries for these, and what is left out is counted. `selection` is from
/// CheckSelection(). `shown`, if not null, gets how many entries these are: 0 is an empty picture.
/// `engines.nic->node` is the selection's, whatever it says. The same arguments give the same
/// bytes. Errors: kUsage for no or several nodes; kRejected above kQueueEntriesMax entries of an
/// engine, and those of nic::Lower() and triggered::LowerDeferred().
Result<std::string> DrawQueues(const VerifiedPlan& plan, const Selection& selection,
                               const QueueEngines& engines = {}, size_t* shown = nullptr);

}  // namespace prepost::viz

#endif  // PREPOST_VIZ_QUEUES_QUEUES_H_
