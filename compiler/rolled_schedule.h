// SPDX-License-Identifier: Apache-2.0
//
// RolledSchedule: a schedule whose nodes repeat what they do, so that it is written down once for
// every number of blocks, as the segments of ir/rolled_plan.h. What it does for one number of
// blocks is read off these segments and nowhere else.
#ifndef PREPOST_COMPILER_ROLLED_SCHEDULE_H_
#define PREPOST_COMPILER_ROLLED_SCHEDULE_H_

#include <cstdint>
#include <memory>

#include "prepost/compiler/fan.h"
#include "prepost/compiler/schedule.h"
#include "prepost/ir/rolled_plan.h"

namespace prepost {

/// A schedule for `nodes` >= 1; `fanout` as in Extent.
struct RolledExtent {
  uint32_t nodes = 1;
  uint32_t fanout = 0;
};

class RolledSchedule : public Schedule {
 public:
  /// Rounds as a function of the blocks, for nodes >= 2.
  virtual LinearInBlocks RoundsOf(RolledExtent extent) const = 0;
  /// What FanOf() finds in a plan of it with 2 blocks or more.
  virtual Fan FanOf(RolledExtent extent) const = 0;
  /// What `node` < nodes does, in time and memory that do not depend on other nodes' programs.
  /// Only asked for nodes >= 2.
  virtual std::vector<Segment> SegmentsOf(RolledExtent extent, uint32_t node) const = 0;

  uint32_t Rounds(Extent extent) const final;
  std::unique_ptr<NodeSchedule> ForNode(Extent extent, uint32_t node) const final;
  const RolledSchedule* rolled() const final { return this; }
};

/// Plays a rolled program, whose peers are the numbers that come out. Owns it.
std::unique_ptr<NodeSchedule> PlayRolled(RolledProgram program, uint32_t blocks);

}  // namespace prepost

#endif  // PREPOST_COMPILER_ROLLED_SCHEDULE_H_
