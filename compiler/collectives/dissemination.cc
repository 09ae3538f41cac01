// SPDX-License-Identifier: Apache-2.0
//
// dissemination: barrier in q = ceil(log2 n) rounds: in round r member v tells v + 2^r that all of
// which it has heard are there (Hensgen, Finkel, Manber: Two algorithms for barrier
// synchronization, IJPP 1988). Messages are empty.
#include "compiler/collectives/part_ranges.h"

namespace prepost {
namespace {

class Dissemination final : public CollectiveSchedule {
 public:
  std::string_view name() const override { return "dissemination"; }
  std::string_view summary() const override {
    return "each tells the member 2^r further; q=ceil(log2 n) rounds of empty messages";
  }
  bool Serves(CollectiveKind kind) const override { return kind == CollectiveKind::kBarrier; }
  std::vector<PlannedTransfer> Transfers(const CollectiveExtent& extent) const override {
    std::vector<PlannedTransfer> all;
    for (uint32_t round = 0; round < DoublingRounds(extent.members); ++round) {
      for (uint32_t member = 0; member < extent.members; ++member) {
        all.push_back({.round = round,
                       .from = member,
                       .to = (member + (1u << round)) % extent.members,
                       .combines = true});
      }
    }
    return all;
  }
};

}  // namespace

const CollectiveSchedule& DisseminationSchedule() {
  static const Dissemination schedule;
  return schedule;
}

}  // namespace prepost
