// SPDX-License-Identifier: Apache-2.0
//
// In a segment of P slots, slot s is played in the rounds t of [from, to) with t = s - phase (mod
// P). Its block there is floor((t + c) / w), w = rounds_per_block. It is 0 or more from t = -c on,
// and the last one, k - 1, from t = (k-1) w - c on, where the second stream of the slot begins.
// That one ends with the segment if it clamps, else w rounds after.
//
// Worked example, a chain's node 1 of 4 with 3 blocks: from = 0, to = 4, one slot that sends with
// c = -1: blocks 0 and 1 in rounds 1 and 2, the last one in round 3.
#include "ir/rolled/rolled_streams.h"

#include <algorithm>

namespace prepost {
namespace {

/// Rounds [begin, end) of which every period-th is meant, those with the residue of `slot`.
struct Rounds {
  int64_t begin;
  int64_t end;
};

}  // namespace

std::vector<SendStream> SendStreams(std::span<const Segment> segments, uint32_t blocks) {
  std::vector<SendStream> streams;
  for (const Segment& segment : segments) {
    if (blocks < segment.blocks_min || blocks > segment.blocks_max) continue;
    const int64_t from = std::clamp<int64_t>(segment.from.At(blocks), 0, UINT32_MAX);
    const int64_t to = std::clamp<int64_t>(segment.to.At(blocks), 0, UINT32_MAX);
    const auto period = static_cast<int64_t>(segment.slots.size());
    const int64_t phase = segment.phase.At(blocks);
    for (int64_t s = 0; s < period; ++s) {
      const std::optional<RolledTransfer>& send = segment.slots[static_cast<size_t>(s)].send;
      if (!send) continue;
      const int64_t offset = send->offset.At(blocks);
      const int64_t width = segment.rounds_per_block;
      const int64_t last_begin = (int64_t{blocks} - 1) * width - offset;
      const auto add = [&](Rounds rounds, bool is_last_block) {
        const int64_t residue = s - phase;
        const int64_t wait = ((residue - rounds.begin) % period + period) % period;
        const int64_t first = rounds.begin + wait;
        if (first >= rounds.end) return;
        const int64_t last = first + (rounds.end - 1 - first) / period * period;
        streams.push_back({.peer = send->peer,
                           .first = static_cast<uint32_t>(first),
                           .last = static_cast<uint32_t>(last),
                           .period = static_cast<uint32_t>(period),
                           .is_last_block = is_last_block});
      };
      add({std::max(from, -offset), std::min(to, last_begin)}, false);
      const int64_t last_end = segment.clamps ? to : std::min(to, last_begin + width);
      add({std::max({from, -offset, last_begin}), last_end}, true);
    }
  }
  return streams;
}

}  // namespace prepost
