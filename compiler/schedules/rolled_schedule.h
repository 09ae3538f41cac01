// SPDX-License-Identifier: Apache-2.0
//
// RolledSchedule: a schedule whose nodes repeat what they do, so that it is written down once for
// every number of blocks, as the segments of ir/rolled/rolled_plan.h. What it does for one number
// of blocks is read off these segments and nowhere else.
#ifndef PREPOST_COMPILER_SCHEDULES_ROLLED_SCHEDULE_H_
#define PREPOST_COMPILER_SCHEDULES_ROLLED_SCHEDULE_H_

#include <cstdint>
#include <memory>
#include <span>

#include "compiler/schedules/fan.h"
#include "compiler/schedules/schedule.h"
#include "ir/rolled/rolled_plan.h"

namespace prepost {

/// An Extent for every number of blocks; all as there.
struct RolledExtent {
  uint32_t nodes = 1;
  std::span<const uint32_t> racks = {};
  uint32_t fanout = 0;

  RolledExtent() = default;
  explicit RolledExtent(const Extent& extent)
      : nodes(extent.nodes), racks(extent.racks), fanout(extent.fanout) {}
};

class RolledSchedule : public Schedule {
 public:
  /// Rounds as a function of the blocks, for nodes >= 2. At most so many; a schedule that takes
  /// fewer for some numbers of blocks says how many in Rounds().
  virtual LinearInBlocks RoundsOf(RolledExtent extent) const = 0;
  /// What FanOf() finds in a plan of it with the following numbers of blocks or more; with fewer,
  /// that there is none.
  virtual Fan FanOf(RolledExtent extent) const = 0;
  virtual uint32_t BlocksForFanIn(RolledExtent) const { return 2; }
  virtual uint32_t BlocksForFanOut(RolledExtent) const { return 1; }
  /// Whether a period is O(log nodes), so that it is no more work to go through its slots than
  /// through the rounds of a message of many blocks.
  virtual bool HasShortPeriods() const { return true; }
  /// Whether programs of `extent` are within the limits of the form. The Status has no place.
  virtual Status CheckExtent(RolledExtent) const { return {}; }
  /// What `node` < nodes does, in time and memory that do not depend on other nodes' programs.
  /// Only asked for nodes >= 2.
  virtual std::vector<Segment> SegmentsOf(RolledExtent extent, uint32_t node) const = 0;

  uint32_t Rounds(Extent extent) const override;
  std::unique_ptr<NodeSchedule> ForNode(Extent extent, uint32_t node) const override;
  const RolledSchedule* rolled() const final { return this; }
};

/// Plays a rolled program, whose peers are the numbers that come out. Owns it.
std::unique_ptr<NodeSchedule> PlayRolled(RolledProgram program, uint32_t blocks);

}  // namespace prepost

#endif  // PREPOST_COMPILER_SCHEDULES_ROLLED_SCHEDULE_H_
