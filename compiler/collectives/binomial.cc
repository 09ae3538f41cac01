// SPDX-License-Identifier: Apache-2.0
//
// binomial: gather and scatter over a binomial tree, in q = ceil(log2 n) rounds. Members are
// counted from the root: member w of which bit j is the lowest that is set gathers the parts of w
// .. w + 2^j
// - 1 and sends them to w - 2^j in round j, as one range. Scatter is that backwards.
#include "compiler/collectives/part_ranges.h"

namespace prepost {
namespace {

class Binomial final : public CollectiveSchedule {
 public:
  std::string_view name() const override { return "binomial"; }
  std::string_view summary() const override {
    return "ranges of parts over a binomial tree; q=ceil(log2 n) messages at the root";
  }
  bool Serves(CollectiveKind kind) const override {
    return kind == CollectiveKind::kGather || kind == CollectiveKind::kScatter;
  }
  std::vector<PlannedTransfer> Transfers(const CollectiveExtent& extent) const override {
    const MemberShares shares(extent);
    const uint32_t n = extent.members, root = extent.root.value, rounds = DoublingRounds(n);
    const bool gathers = extent.kind == CollectiveKind::kGather;
    std::vector<PlannedTransfer> all;
    for (uint32_t round = 0; round < rounds; ++round) {
      const uint32_t step = 1u << (gathers ? round : rounds - 1 - round);
      for (uint32_t w = step; w < n; w += 2 * step) {
        const uint32_t low = (root + w - step) % n, high = (root + w) % n;
        shares.Send({.round = round, .from = gathers ? high : low, .to = gathers ? low : high},
                    high, std::min(step, n - w), &all);
      }
    }
    return all;
  }
};

}  // namespace

const CollectiveSchedule& BinomialSchedule() {
  static const Binomial schedule;
  return schedule;
}

}  // namespace prepost
