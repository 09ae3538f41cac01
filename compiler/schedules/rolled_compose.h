// SPDX-License-Identifier: Apache-2.0
//
// Schedules of two levels are composed from rolled programs of one: played by other nodes, later,
// slower. rack_chain.cc and rack_hybrid.cc do so with the binomial pipeline.
#ifndef PREPOST_COMPILER_SCHEDULES_ROLLED_COMPOSE_H_
#define PREPOST_COMPILER_SCHEDULES_ROLLED_COMPOSE_H_

#include <cstdint>
#include <vector>

#include "compiler/schedules/rolled_schedule.h"
#include "ir/rolled/rolled_plan.h"

namespace prepost {

/// a + b, of divisor 1 both.
LinearInBlocks operator+(const LinearInBlocks& a, const LinearInBlocks& b);

/// Calls `change` with every RolledTransfer of `segments`.
template <typename Change>
void ForEachTransfer(std::vector<Segment>& segments, Change change) {
  for (Segment& segment : segments) {
    for (RolledSlot& slot : segment.slots) {
      if (slot.send) change(*slot.send);
      if (slot.recv) change(*slot.recv);
    }
  }
}

/// The program of `node` in `schedule` of `nodes`, which is rolled; nothing for a node alone.
std::vector<Segment> ProgramIn(const Schedule& schedule, uint32_t nodes, uint32_t node);
/// Its rounds; 0 for a node alone.
LinearInBlocks RoundsIn(const Schedule& schedule, uint32_t nodes);

/// `segment`, `later` rounds later. Its numbers have divisor 1, and 1 round per block.
Segment Delayed(Segment segment, const LinearInBlocks& later);

/// `segment` with round t played in round `stride` t + `begin`, and nothing in between. Its ends
/// and phase are constants or multiples of the blocks, of divisor 1; 1 round per block.
Segment Stretched(const Segment& segment, uint32_t stride, uint32_t begin);

}  // namespace prepost

#endif  // PREPOST_COMPILER_SCHEDULES_ROLLED_COMPOSE_H_
