// SPDX-License-Identifier: Apache-2.0
//
// RackLayout: what schedules of two levels are made of. They play one schedule among racks, each
// spoken for by its leader, its first node, and one inside each rack.
#ifndef PREPOST_COMPILER_SCHEDULES_RACK_LAYOUT_H_
#define PREPOST_COMPILER_SCHEDULES_RACK_LAYOUT_H_

#include <cstdint>
#include <span>

#include "compiler/schedules/rolled_schedule.h"

namespace prepost {

/// The racks of an extent, the root's being rack 0. The extent's racks outlive it.
class RackLayout {
 public:
  explicit RackLayout(const RolledExtent& extent);

  uint32_t count() const { return static_cast<uint32_t>(begin_.size()); }
  uint32_t leader(uint32_t rack) const { return begin_[rack]; }
  uint32_t size(uint32_t rack) const {
    return (rack + 1 < count() ? begin_[rack + 1] : nodes_) - begin_[rack];
  }
  uint32_t size_max() const;             ///< of all racks; cost: O(racks)
  uint32_t RackOf(uint32_t node) const;  ///< cost: O(log racks)

 private:
  uint32_t nodes_;
  std::span<const uint32_t> begin_;
};

}  // namespace prepost

#endif  // PREPOST_COMPILER_SCHEDULES_RACK_LAYOUT_H_
