// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedules/rolled_compose.h"

#include "ir/base/status.h"

namespace prepost {
namespace {

LinearInBlocks operator-(const LinearInBlocks& linear) {
  return {.per_block = -linear.per_block, .constant = -linear.constant};
}

/// stride * linear + begin.
LinearInBlocks Stretched(const LinearInBlocks& linear, int64_t stride, int64_t begin) {
  PREPOST_CHECK(linear.divisor == 1);
  return {.per_block = stride * linear.per_block, .constant = stride * linear.constant + begin};
}

}  // namespace

LinearInBlocks operator+(const LinearInBlocks& a, const LinearInBlocks& b) {
  PREPOST_CHECK(a.divisor == 1 && b.divisor == 1);
  return {.per_block = a.per_block + b.per_block, .constant = a.constant + b.constant};
}

std::vector<Segment> ProgramIn(const Schedule& schedule, uint32_t nodes, uint32_t node) {
  if (nodes == 1) return {};
  return schedule.rolled()->SegmentsOf(RolledExtent({.nodes = nodes}), node);
}

LinearInBlocks RoundsIn(const Schedule& schedule, uint32_t nodes) {
  return nodes == 1 ? LinearInBlocks()
                    : schedule.rolled()->RoundsOf(RolledExtent({.nodes = nodes}));
}

Segment Delayed(Segment segment, const LinearInBlocks& later) {
  PREPOST_CHECK(segment.rounds_per_block == 1);
  segment.from = segment.from + later;
  segment.to = segment.to + later;
  segment.phase = segment.phase + -later;
  for (RolledSlot& slot : segment.slots) {
    if (slot.send) slot.send->offset = slot.send->offset + -later;
    if (slot.recv) slot.recv->offset = slot.recv->offset + -later;
  }
  return segment;
}

// Round t = stride s + begin plays slot (s + phase) mod P, at stride times that place of a period
// of stride P, and block s + c = (t + stride c - begin) / stride.
Segment Stretched(const Segment& segment, uint32_t stride, uint32_t begin) {
  PREPOST_CHECK(segment.rounds_per_block == 1);
  Segment stretched = segment;
  stretched.from = Stretched(segment.from, stride, begin);
  stretched.to = Stretched(segment.to, stride, begin);
  stretched.phase = Stretched(segment.phase, stride, -int64_t{begin});
  stretched.rounds_per_block = stride;
  stretched.slots.assign(segment.slots.size() * stride, RolledSlot());
  for (size_t i = 0; i < segment.slots.size(); ++i) {
    RolledSlot& slot = stretched.slots[i * stride] = segment.slots[i];
    for (auto* transfer : {&slot.send, &slot.recv}) {
      if (*transfer) (*transfer)->offset = Stretched((*transfer)->offset, stride, -int64_t{begin});
    }
  }
  return stretched;
}

}  // namespace prepost
