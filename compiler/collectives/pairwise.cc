// SPDX-License-Identifier: Apache-2.0
//
// pairwise: alltoall in n - 1 steps: in step s member v sends its part for v + s to v + s, and gets
// one from v - s. Every part goes once: the least bytes, m (n - 1) / n through each port.
#include "compiler/collectives/part_ranges.h"

namespace prepost {
namespace {

class Pairwise final : public CollectiveSchedule {
 public:
  std::string_view name() const override { return "pairwise"; }
  std::string_view summary() const override {
    return "each part straight to its member, one after the other; n-1 parts through each port";
  }
  bool Serves(CollectiveKind kind) const override { return kind == CollectiveKind::kAlltoall; }
  std::vector<PlannedTransfer> Transfers(const CollectiveExtent& extent) const override {
    const uint32_t n = extent.members, blocks = extent.blocks_per_part;
    std::vector<PlannedTransfer> all;
    for (uint32_t step = 1; step < n; ++step) {
      for (uint32_t from = 0; from < n; ++from) {
        const uint32_t to = (from + step) % n;
        for (uint32_t j = 0; j < blocks; ++j) {
          all.push_back({.round = (step - 1) * blocks + j,
                         .from = from,
                         .to = to,
                         .block = (from * n + to) * blocks + j});
        }
      }
    }
    return all;
  }
};

}  // namespace

const CollectiveSchedule& PairwiseSchedule() {
  static const Pairwise schedule;
  return schedule;
}

}  // namespace prepost
