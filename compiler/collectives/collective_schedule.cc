// SPDX-License-Identifier: Apache-2.0
//
// A multicast backwards is a reduce: what a member has received before it sends a block becomes
// what it must have been sent before it passes the block on, so that its round is later than those
// of all that it adds. Each node but the root sends each block once, as it received it once.
//
// Chain 0, 1, 2 of 2 blocks: 0>1:0 in round 0, 1>2:0 and 0>1:1 in 1, 1>2:1 in 2. Backwards: 2>1:1
// in round 0, 2>1:0 and 1>0:1 in 1, 1>0:0 in 2; blocks are renamed, so that the first comes first.
#include "compiler/collectives/collective_schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "ir/base/near_name.h"

namespace prepost {
namespace {

bool GoesByMulticast(CollectiveKind kind) {
  return kind == CollectiveKind::kReduce || kind == CollectiveKind::kAllreduce;
}

}  // namespace

std::span<const CollectiveSchedule* const> CollectiveSchedules() {
  static const CollectiveSchedule* const all[] = {
      &RingSchedule(),     &HalvingSchedule(),  &DoublingSchedule(), &DirectSchedule(),
      &BinomialSchedule(), &PairwiseSchedule(), &BruckSchedule(),    &DisseminationSchedule()};
  return all;
}

std::vector<std::string> ScheduleNames(CollectiveKind kind) {
  std::vector<std::string> names;
  for (const CollectiveSchedule* it : CollectiveSchedules()) {
    if (it->Serves(kind)) names.emplace_back(it->name());
  }
  if (kind == CollectiveKind::kMulticast || GoesByMulticast(kind)) {
    for (const std::string& name : ScheduleNames()) names.push_back(name);
  }
  return names;
}

Result<CollectiveAlgorithm> FindCollectiveAlgorithm(CollectiveKind kind, std::string_view name,
                                                    uint32_t members) {
  for (const CollectiveSchedule* it : CollectiveSchedules()) {
    if (it->name() != name || !it->Serves(kind)) continue;
    if (!it->TakesMembers(members)) {
      return Rejected(fmt::format("{} is not for {} members: {}", name, members, it->summary()));
    }
    return CollectiveAlgorithm{.own = it, .multicast = {}};
  }
  if (GoesByMulticast(kind)) {
    const Result<Algorithm> multicast = FindAlgorithm(name);
    if (multicast.ok()) return CollectiveAlgorithm{.own = nullptr, .multicast = *multicast};
  }
  const std::vector<std::string> names = ScheduleNames(kind);
  return Rejected(fmt::format("no schedule of {} is called '{}'{}; there are {}", Name(kind),
                              name.substr(0, 40), DidYouMean(std::string(name), names),
                              fmt::join(names, ", ")));
}

std::vector<PlannedTransfer> ByMulticast(const Algorithm& algorithm, const NodeOrder& order,
                                         const CollectiveExtent& extent) {
  const Extent multicast{.nodes = extent.members,
                         .blocks = extent.blocks_per_part,
                         .racks = order.rack_begin,
                         .fanout = algorithm.fanout};
  std::vector<PlannedTransfer> down;
  uint32_t rounds = 0;
  for (uint32_t vertex = 0; vertex < extent.members; ++vertex) {
    const std::unique_ptr<NodeSchedule> part = algorithm.schedule->ForNode(multicast, vertex);
    const RoundRange active = part->ActiveRounds();
    for (uint32_t round = active.begin; round < active.end; ++round) {
      const std::optional<Transfer> out = part->Outgoing(round);
      if (!out) continue;
      down.push_back({.round = round,
                      .from = order.node_at[vertex].value,
                      .to = order.node_at[out->peer].value,
                      .block = out->block});
      rounds = std::max(rounds, round + 1);
    }
  }
  std::vector<PlannedTransfer> all;
  all.reserve(down.size() * (extent.kind == CollectiveKind::kAllreduce ? 2 : 1));
  for (const PlannedTransfer& it : down) {
    all.push_back({.round = rounds - 1 - it.round,
                   .from = it.to,
                   .to = it.from,
                   .block = extent.blocks_per_part - 1 - it.block,
                   .combines = true});
  }
  if (extent.kind != CollectiveKind::kAllreduce) return all;
  for (PlannedTransfer it : down) {
    it.round += rounds;
    all.push_back(it);
  }
  return all;
}

std::vector<PlannedTransfer> ByWayOfFirst(const Algorithm& algorithm, const NodeOrder& order,
                                          const CollectiveExtent& extent) {
  CollectiveExtent to_first = extent;
  to_first.root = NodeId(0);
  std::vector<PlannedTransfer> all = ByMulticast(algorithm, order, to_first);
  std::vector<uint32_t> complete(extent.blocks_per_part);  // block -> the round after its last
  for (const PlannedTransfer& it : all) {
    if (it.to == 0) complete[it.block] = std::max(complete[it.block], it.round + 1);
  }
  for (uint32_t block = 0; block < extent.blocks_per_part; ++block) {
    all.push_back({.round = complete[block], .from = 0, .to = extent.root.value, .block = block});
  }
  return all;
}

}  // namespace prepost
