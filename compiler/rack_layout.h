// SPDX-License-Identifier: Apache-2.0
//
// RackLayout and SubSchedule: what schedules of two levels are made of. They play one schedule
// among racks, each spoken for by its leader, its first node, and one inside each rack.
#ifndef PREPOST_COMPILER_RACK_LAYOUT_H_
#define PREPOST_COMPILER_RACK_LAYOUT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "prepost/compiler/schedule.h"

namespace prepost {

/// The racks of an extent, the root's being rack 0. The extent's racks outlive it.
class RackLayout {
 public:
  explicit RackLayout(Extent extent);

  uint32_t count() const { return static_cast<uint32_t>(begin_.size()); }
  uint32_t leader(uint32_t rack) const { return begin_[rack]; }
  uint32_t size(uint32_t rack) const {
    return (rack + 1 < count() ? begin_[rack + 1] : nodes_) - begin_[rack];
  }
  uint32_t RackOf(uint32_t node) const;  ///< cost: O(log racks)

 private:
  uint32_t nodes_;
  std::span<const uint32_t> begin_;
};

/// One node's part in a schedule among fewer nodes than there are. May be asked for any step.
class SubSchedule {
 public:
  SubSchedule(const Schedule& schedule, Extent extent, uint32_t node)
      : steps_(schedule.Rounds(extent)), part_(schedule.ForNode(extent, node)) {}

  uint32_t steps() const { return steps_; }
  std::optional<Transfer> Outgoing(uint32_t step) const {
    return step < steps_ ? part_->Outgoing(step) : std::nullopt;
  }
  std::optional<Transfer> Incoming(uint32_t step) const {
    return step < steps_ ? part_->Incoming(step) : std::nullopt;
  }

 private:
  uint32_t steps_;
  std::unique_ptr<NodeSchedule> part_;
};

}  // namespace prepost

#endif  // PREPOST_COMPILER_RACK_LAYOUT_H_
