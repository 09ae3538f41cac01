// SPDX-License-Identifier: Apache-2.0
//
// CollectiveSchedule: an algorithm for collectives other than multicast, as the transfers of all
// members with their rounds. Reduce and allreduce also go by any multicast schedule
// (ByMulticast()): a multicast backwards in time is a reduce, and allreduce is both, one after the
// other. What an op waits for follows from the transfers (ir/planned_transfers.h).
//
// In a round a member sends one message and receives one; where a range of parts goes around the
// end of the ranks it is two messages of one round.
#ifndef PREPOST_COMPILER_COLLECTIVES_COLLECTIVE_SCHEDULE_H_
#define PREPOST_COMPILER_COLLECTIVES_COLLECTIVE_SCHEDULE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/schedules/node_order.h"
#include "compiler/schedules/schedule.h"
#include "ir/collective.h"
#include "ir/planned_transfers.h"

namespace prepost {

/// Size of a collective: members >= 1, and blocks of each of PartsOf() parts, >= 1.
struct CollectiveExtent {
  CollectiveKind kind = CollectiveKind::kAllreduce;
  uint32_t members = 1;
  uint32_t blocks_per_part = 1;
  NodeId root;
};

/// Immutable; may be used by any number of threads.
class CollectiveSchedule {
 public:
  virtual ~CollectiveSchedule() = default;
  virtual std::string_view name() const = 0;
  /// One line for people, with its cost.
  virtual std::string_view summary() const = 0;
  virtual bool Serves(CollectiveKind kind) const = 0;
  /// Whether it is for so many members.
  virtual bool TakesMembers(uint32_t /*members*/) const { return true; }
  /// Of what Serves() and TakesMembers() allow.
  virtual std::vector<PlannedTransfer> Transfers(const CollectiveExtent& extent) const = 0;
};

/// All, in the order in which help lists them. Immutable, for the life of the program.
std::span<const CollectiveSchedule* const> CollectiveSchedules();

/// The schedules of a collective by name: these and, of reduce and allreduce, those of multicasts.
std::vector<std::string> ScheduleNames(CollectiveKind kind);

/// What a spec's algorithm is for a collective other than multicast: one of the two.
struct CollectiveAlgorithm {
  const CollectiveSchedule* own = nullptr;
  Algorithm multicast;  ///< without `own`
};
/// Errors (kRejected): there is none of that name for `kind`, with the near name; it is not for so
/// many members.
Result<CollectiveAlgorithm> FindCollectiveAlgorithm(CollectiveKind kind, std::string_view name,
                                                    uint32_t members);

/// Reduce: the schedule of a multicast of `extent.blocks_per_part` blocks backwards in time;
/// allreduce: that, then the multicast. `order`: the nodes by vertex, the root first.
std::vector<PlannedTransfer> ByMulticast(const Algorithm& algorithm, const NodeOrder& order,
                                         const CollectiveExtent& extent);

/// A reduce to `extent.root` whose operands are in the order of ranks: to member 0, which has them
/// all in that order if its schedule does (as chain), and from there block by block to the root.
std::vector<PlannedTransfer> ByWayOfFirst(const Algorithm& algorithm, const NodeOrder& order,
                                          const CollectiveExtent& extent);

// Defined in the file of the same name.
const CollectiveSchedule& RingSchedule();
const CollectiveSchedule& HalvingSchedule();
const CollectiveSchedule& DoublingSchedule();
const CollectiveSchedule& DirectSchedule();
const CollectiveSchedule& BinomialSchedule();
const CollectiveSchedule& PairwiseSchedule();
const CollectiveSchedule& BruckSchedule();
const CollectiveSchedule& DisseminationSchedule();

}  // namespace prepost

#endif  // PREPOST_COMPILER_COLLECTIVES_COLLECTIVE_SCHEDULE_H_
