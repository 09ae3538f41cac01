// SPDX-License-Identifier: Apache-2.0
//
// doubling: allreduce of 2^q members: in round r each exchanges all that it has with the member
// whose rank differs in bit r, and adds what comes. q messages of the whole, and the same
// expression everywhere: at each node the two halves of a balanced tree, of which either may be its
// own.
#include <bit>

#include "compiler/collectives/part_ranges.h"

namespace prepost {
namespace {

class Doubling final : public CollectiveSchedule {
 public:
  std::string_view name() const override { return "doubling"; }
  std::string_view summary() const override {
    return "pairs exchange all that they have; q=log2 n messages of the whole, n a power of two";
  }
  bool Serves(CollectiveKind kind) const override { return kind == CollectiveKind::kAllreduce; }
  bool TakesMembers(uint32_t members) const override { return std::has_single_bit(members); }
  std::vector<PlannedTransfer> Transfers(const CollectiveExtent& extent) const override {
    std::vector<PlannedTransfer> all;
    for (uint32_t round = 0; round < DoublingRounds(extent.members); ++round) {
      for (uint32_t member = 0; member < extent.members; ++member) {
        all.push_back({.round = round,
                       .from = member,
                       .to = member ^ (1u << round),
                       .count = extent.blocks_per_part,
                       .combines = true});
      }
    }
    return all;
  }
};

}  // namespace

const CollectiveSchedule& DoublingSchedule() {
  static const Doubling schedule;
  return schedule;
}

}  // namespace prepost
