// SPDX-License-Identifier: Apache-2.0
//
// direct: gather and scatter without relays: the root's port carries each other member's part once,
// one block per round; the least for large parts.
#include "compiler/collectives/part_ranges.h"

namespace prepost {
namespace {

class Direct final : public CollectiveSchedule {
 public:
  std::string_view name() const override { return "direct"; }
  std::string_view summary() const override {
    return "every part goes straight to, or from, the root; n-1 parts through its port";
  }
  bool Serves(CollectiveKind kind) const override {
    return kind == CollectiveKind::kGather || kind == CollectiveKind::kScatter;
  }
  std::vector<PlannedTransfer> Transfers(const CollectiveExtent& extent) const override {
    std::vector<PlannedTransfer> all;
    uint32_t round = 0;
    for (uint32_t i = 1; i < extent.members; ++i) {
      const uint32_t member = (extent.root.value + i) % extent.members;
      const bool gathers = extent.kind == CollectiveKind::kGather;
      for (uint32_t j = 0; j < extent.blocks_per_part; ++j) {
        all.push_back({.round = round++,
                       .from = gathers ? member : extent.root.value,
                       .to = gathers ? extent.root.value : member,
                       .block = member * extent.blocks_per_part + j});
      }
    }
    return all;
  }
};

}  // namespace

const CollectiveSchedule& DirectSchedule() {
  static const Direct schedule;
  return schedule;
}

}  // namespace prepost
