// SPDX-License-Identifier: Apache-2.0
//
// bruck: alltoall with q = ceil(log2 n) peers per member (Bruck et al., IEEE TPDS 8(11), 1997). A
// part's distance d from its source is gone in powers of two, the largest first: in step k, from
// q - 1 down to 0, every member sends those of its parts whose remaining distance is 2^k or more
// to the member 2^k further. Parts of one source that move together are neighbours, so they are a
// range; a step has one of each source whose parts are there, one per round. Fewer peers than
// pairwise, more bytes: a part moves popcount(d) times.
//
// 4 members: step 1: v sends its parts for v+2, v+3 to v+2; step 0: its own for v+1, and that of
// v-2 for v+1, to v+1.
#include "compiler/collectives/part_ranges.h"

namespace prepost {
namespace {

class Bruck final : public CollectiveSchedule {
 public:
  std::string_view name() const override { return "bruck"; }
  std::string_view summary() const override {
    return "parts go their way in powers of two; q=ceil(log2 n) peers, log2(n)/2 times the bytes";
  }
  bool Serves(CollectiveKind kind) const override { return kind == CollectiveKind::kAlltoall; }
  std::vector<PlannedTransfer> Transfers(const CollectiveExtent& extent) const override {
    const uint32_t n = extent.members;
    std::vector<PlannedTransfer> all;
    uint32_t round = 0;
    for (uint32_t k = DoublingRounds(n); k-- > 0;) {
      const uint32_t step = 1u << k;
      // Distances that have been gone already are multiples of 2 step.
      for (uint32_t gone = 0; gone + step < n; gone += 2 * step) {
        const uint32_t count = std::min(step, n - gone - step);
        bool wraps = false;
        for (uint32_t member = 0; member < n; ++member) {
          const uint32_t source = (member + n - gone) % n;
          wraps |= Send(extent, {.round = round, .from = member, .to = (member + step) % n}, source,
                        (member + step) % n, count, &all);
        }
        round += wraps ? 2 : 1;
      }
    }
    return all;
  }

 private:
  /// The parts of `source` for `first`, `first + 1`, ... in the circle; true: in two rounds.
  static bool Send(const CollectiveExtent& extent, PlannedTransfer message, uint32_t source,
                   uint32_t first, uint32_t count, std::vector<PlannedTransfer>* all) {
    const uint32_t n = extent.members, straight = std::min(count, n - first);
    message.block = (source * n + first) * extent.blocks_per_part;
    message.count = straight * extent.blocks_per_part;
    all->push_back(message);
    if (straight == count) return false;
    ++message.round;
    message.block = source * n * extent.blocks_per_part;
    message.count = (count - straight) * extent.blocks_per_part;
    all->push_back(message);
    return true;
  }
};

}  // namespace

const CollectiveSchedule& BruckSchedule() {
  static const Bruck schedule;
  return schedule;
}

}  // namespace prepost
