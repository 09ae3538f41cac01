// SPDX-License-Identifier: Apache-2.0
//
// ring: member i sends to i + 1 all the time. reduce_scatter: the share of member p starts at p + 1
// and goes around, each member adding its own, until it is at p, n - 1 steps. allgather: each
// member's share goes around once. allreduce is both. Each link carries (n - 1) / n of the bytes
// per phase: the least that is possible with one port (Patarasuk, Yuan: Bandwidth optimal
// all-reduce algorithms, JPDC 2009).
//
// 3 members, shares A, B, C of 0, 1, 2, reduce_scatter:
//   step 0: 0>1 C, 1>2 A, 2>0 B   step 1: 0>1 B, 1>2 C, 2>0 A
#include "compiler/collectives/part_ranges.h"

namespace prepost {
namespace {

class Ring final : public CollectiveSchedule {
 public:
  std::string_view name() const override { return "ring"; }
  std::string_view summary() const override {
    return "shares go around the members; n-1 steps of 1/n, twice for allreduce";
  }
  bool Serves(CollectiveKind kind) const override {
    return kind == CollectiveKind::kAllreduce || kind == CollectiveKind::kReduceScatter ||
           kind == CollectiveKind::kAllgather;
  }
  std::vector<PlannedTransfer> Transfers(const CollectiveExtent& extent) const override {
    std::vector<PlannedTransfer> all;
    uint32_t round = 0;
    if (Combines(extent.kind)) GoAround(extent, /*combines=*/true, &round, &all);
    if (extent.kind != CollectiveKind::kReduceScatter)
      GoAround(extent, /*combines=*/false, &round, &all);
    return all;
  }

 private:
  /// A block of each share per round.
  static void GoAround(const CollectiveExtent& extent, bool combines, uint32_t* round,
                       std::vector<PlannedTransfer>* all) {
    const MemberShares shares(extent);
    const uint32_t n = extent.members;
    for (uint32_t step = 0; step + 1 < n; ++step) {
      for (uint32_t member = 0; member < n; ++member) {
        const uint32_t share = (member + 2 * n - step - (combines ? 1 : 0)) % n;
        for (uint32_t block = shares.Begin(share); block < shares.Begin(share + 1); ++block) {
          all->push_back({.round = *round + block - shares.Begin(share),
                          .from = member,
                          .to = (member + 1) % n,
                          .block = block,
                          .combines = combines});
        }
      }
      *round += shares.most();
    }
  }
};

}  // namespace

const CollectiveSchedule& RingSchedule() {
  static const Ring schedule;
  return schedule;
}

}  // namespace prepost
