// SPDX-License-Identifier: Apache-2.0
//
// halving: reduce_scatter on a circulant graph, for any number of members, in q = ceil(log2 n)
// messages per member and (n - 1) / n of the bytes (J. L. Traeff, arXiv 2410.14234). A member has
// partial results of s shares, counted from its own; at first s = n. With h = ceil(s / 2) it sends
// those of h .. s - 1 to the member h further, which adds them to its first s - h; then s = h.
// allgather is that backwards, and allreduce one after the other.
//
// 5 members: s = 5, h = 3: v sends its shares v+3, v+4 to v+3; s = 3, h = 2: v+2 to v+2; s = 2,
// h = 1: v+1 to v+1.
#include <ranges>

#include "compiler/collectives/part_ranges.h"

namespace prepost {
namespace {

/// With `have` shares, those from `kept` on go to the member `kept` further.
struct Halving {
  uint32_t have;
  uint32_t kept;
};

std::vector<Halving> HalvingsOf(uint32_t members) {
  std::vector<Halving> all;
  for (uint32_t have = members; have > 1; have = all.back().kept)
    all.push_back({.have = have, .kept = (have + 1) / 2});
  return all;
}

class HalvingCollective final : public CollectiveSchedule {
 public:
  std::string_view name() const override { return "halving"; }
  std::string_view summary() const override {
    return "half of what is left goes over a circulant graph; q=ceil(log2 n) messages of (n-1)/n, "
           "twice for allreduce";
  }
  bool Serves(CollectiveKind kind) const override {
    return kind == CollectiveKind::kAllreduce || kind == CollectiveKind::kReduceScatter ||
           kind == CollectiveKind::kAllgather;
  }
  std::vector<PlannedTransfer> Transfers(const CollectiveExtent& extent) const override {
    const MemberShares shares(extent);
    const std::vector<Halving> halvings = HalvingsOf(extent.members);
    const uint32_t n = extent.members;
    std::vector<PlannedTransfer> all;
    uint32_t round = 0;
    if (Combines(extent.kind)) {
      for (const auto& [have, kept] : halvings) {
        for (uint32_t member = 0; member < n; ++member) {
          shares.Send({.round = round, .from = member, .to = (member + kept) % n, .combines = true},
                      member + kept, have - kept, &all);
        }
        ++round;
      }
    }
    if (extent.kind == CollectiveKind::kReduceScatter) return all;
    for (const auto& [have, kept] : halvings | std::views::reverse) {
      for (uint32_t member = 0; member < n; ++member) {
        shares.Send({.round = round, .from = member, .to = (member + n - kept) % n}, member,
                    have - kept, &all);
      }
      ++round;
    }
    return all;
  }
};

}  // namespace

const CollectiveSchedule& HalvingSchedule() {
  static const HalvingCollective schedule;
  return schedule;
}

}  // namespace prepost
