// SPDX-License-Identifier: Apache-2.0
//
// With n members, of which k are in a set S, what must leave S for the others, in parts:
//
//   reduce          1 if the root is not in S      their sum
//   allreduce       1                              the same; the sum of the others must come back
//   reduce_scatter  n - k                          their sum of each part that another member gets
//   allgather       k                              their parts
//   gather          k if the root is not in S
//   scatter         n - k if the root is in S
//   alltoall        k (n - k)
//   barrier         0                              but who waits hears of it: the latency
//
// and nothing where S has no member, or all. All nodes together must send 2 (n - 1) parts of an
// allreduce (Harary and Schwenk 1974), n - 1 of a reduce, gather or scatter, n (n - 1) of the
// others.
//
// Sets are single nodes, whose ports carry it, racks and sites. A port carries no more than it can
// both ways together, where it has such a limit. The last byte that passes arrives a latency later:
// between racks that of the core, else the network's lowest.
#include "ir/analysis/collective_bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "ir/base/count.h"

namespace prepost {
namespace {

class CollectiveCuts {
 public:
  CollectiveCuts(const Network& network, const PlanHeader& header)
      : network_(network), header_(header), lowest_(LowestLatency(network)) {}

  std::vector<CutBound> Take() && {
    AddPorts();
    if (network_.OccupiedRacks() > 1) AddRacks();
    std::ranges::stable_sort(cuts_, std::greater(), &CutBound::seconds);
    return std::move(cuts_);
  }

 private:
  /// Of what nothing passes, nothing is said; but who waits at a barrier hears of the others.
  void Add(bool is_rack, std::string cut, uint64_t copies, double bytes, double rate) {
    if (copies == 0 && header_.collective.kind != CollectiveKind::kBarrier) return;
    CutBound bound = {.is_rack = is_rack, .cut = std::move(cut), .copies = copies, .rate = rate};
    bound.latency = is_rack && network_.links.empty() ? network_.core_latency : lowest_;
    bound.bytes = bytes;
    bound.seconds = bytes / rate;
    cuts_.push_back(std::move(bound));
  }

  void AddPorts() {
    double out_rate = 0, in_rate = 0, both_rate = 0;
    const std::vector<Passing> passing = PassingOfNodes(header_);
    for (uint32_t i = 0; i < network_.nodes.size(); ++i) {
      const Network::Node& node = network_.nodes[i];
      const Passing& it = passing[i];
      const double both = network_.RateOf({ResourceKind::kNodeBoth, i});
      Add(false, fmt::format("port out of node {}", i), it.copies_out, it.bytes_out, node.out_rate);
      Add(false, fmt::format("port into node {}", i), it.copies_in, it.bytes_in, node.in_rate);
      if (both < node.out_rate + node.in_rate)
        Add(false, fmt::format("port of node {} both ways", i), it.copies_out + it.copies_in,
            it.bytes_out + it.bytes_in, both);
      out_rate += node.out_rate;
      in_rate += node.in_rate;
      both_rate += std::min(both, node.out_rate + node.in_rate);
    }
    const uint64_t all = CopiesInAll(header_);
    const double bytes = BytesInAll(header_);
    Add(false, "ports out of all nodes together", all, bytes, out_rate);
    Add(false, "ports into all nodes together", all, bytes, in_rate);
    Add(false, "ports of all nodes both ways", 2 * all, 2 * bytes, both_rate);
  }

  void AddRacks() {
    const auto racks = static_cast<uint32_t>(network_.racks.size());
    std::vector<uint32_t> rack_of;
    std::vector<uint64_t> members(racks);
    std::vector<bool> is_occupied(racks);
    for (const Network::Node& node : network_.nodes) {
      if (rack_of.size() < header_.roles().members()) ++members[node.rack];
      rack_of.push_back(node.rack);
      is_occupied[node.rack] = true;
    }
    const std::vector<Passing> passing = PassingOf(header_, rack_of, racks);
    for (uint32_t r = 0; r < racks; ++r) {
      if (members[r] == 0 || members[r] == header_.roles().members()) continue;
      const std::string name = fmt::format("{} {}", network_.RackWord(), network_.racks[r].name);
      const Passing& it = passing[r];
      Add(true, "out of " + name, it.copies_out, it.bytes_out, RateOf(r, is_occupied, true));
      Add(true, "into " + name, it.copies_in, it.bytes_in, RateOf(r, is_occupied, false));
    }
  }

  /// Of the uplinks or downlinks of a rack; over paths, of those that are first, or last, on the
  /// ways between it and the others.
  double RateOf(uint32_t rack, const std::vector<bool>& is_occupied, bool is_out) const {
    if (network_.links.empty())
      return is_out ? network_.racks[rack].up_rate : network_.racks[rack].down_rate;
    std::set<uint32_t> links;
    for (uint32_t other = 0; other < is_occupied.size(); ++other) {
      if (!is_occupied[other] || other == rack) continue;
      links.insert(is_out ? network_.LinksBetween(rack, other).front()
                          : network_.LinksBetween(other, rack).back());
    }
    double rate = 0;
    for (const uint32_t link : links) rate += network_.links[link].capacity();
    return rate;
  }

  const Network& network_;
  const PlanHeader& header_;
  const double lowest_;
  std::vector<CutBound> cuts_;
};

}  // namespace

uint64_t CopiesOut(const PlanHeader& header, const NodeSet& set) {
  const uint64_t members = header.roles().members();
  const uint64_t others = members - set.members;
  const CollectiveKind kind = header.collective.kind;
  if (set.members == 0 || others == 0) return 0;
  switch (kind) {
    case CollectiveKind::kMulticast:
      return set.has_root ? 1 : 0;
    case CollectiveKind::kReduce:
      return set.has_root ? 0 : 1;
    case CollectiveKind::kAllreduce:
      return 1;
    case CollectiveKind::kReduceScatter:
      return others;
    case CollectiveKind::kAllgather:
      return set.members;
    case CollectiveKind::kGather:
      return set.has_root ? 0 : set.members;
    case CollectiveKind::kScatter:
      return set.has_root ? others : 0;
    case CollectiveKind::kAlltoall:
      return set.members * others;
    case CollectiveKind::kBarrier:
      return 0;
  }
  PREPOST_CHECK(false);
  return 0;
}

uint64_t CopiesIn(const PlanHeader& header, const NodeSet& set) {
  return CopiesOut(header,
                   {.members = header.roles().members() - set.members, .has_root = !set.has_root});
}

uint64_t CopiesInAll(const PlanHeader& header) {
  const uint64_t members = header.roles().members();
  switch (header.collective.kind) {
    case CollectiveKind::kMulticast:
    case CollectiveKind::kReduce:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
      return members - 1;
    case CollectiveKind::kAllreduce:
      return 2 * (members - 1);
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllgather:
    case CollectiveKind::kAlltoall:
      return members * (members - 1);
    case CollectiveKind::kBarrier:
      return 0;
  }
  PREPOST_CHECK(false);
  return 0;
}

namespace {

/// Of parts of sizes of their own: bytes of those that are each set's, by the table above.
void SetUnevenBytes(const PlanHeader& header, const std::vector<uint32_t>& group_of,
                    const std::vector<NodeSet>& sets, std::vector<Passing>* passing) {
  const uint32_t members = header.roles().members();
  const CollectiveKind kind = header.collective.kind;
  const auto size = [&](uint32_t part) {
    return static_cast<double>(header.payload.PartSize(part));
  };
  if (kind == CollectiveKind::kAlltoall) {
    for (uint32_t from = 0; from < members; ++from) {
      for (uint32_t to = 0; to < members; ++to) {
        if (group_of[from] == group_of[to]) continue;
        (*passing)[group_of[from]].bytes_out += size(from * members + to);
        (*passing)[group_of[to]].bytes_in += size(from * members + to);
      }
    }
    return;
  }
  std::vector<double> own(sets.size());
  double all = 0;
  for (uint32_t member = 0; member < members; ++member) {
    own[group_of[member]] += size(member);
    all += size(member);
  }
  for (size_t g = 0; g < sets.size(); ++g) {
    Passing& it = (*passing)[g];
    const double others = all - own[g];
    // Parts of the set's members go out, or come in, and those of the others the other way.
    const bool is_out = kind == CollectiveKind::kAllgather || kind == CollectiveKind::kGather;
    const bool is_one_way = kind == CollectiveKind::kGather || kind == CollectiveKind::kScatter;
    const bool is_apart = sets[g].members != 0 && sets[g].members != members;
    if (!is_apart) continue;
    const double out = is_out ? own[g] : others, in = is_out ? others : own[g];
    if (!is_one_way || sets[g].has_root != is_out) it.bytes_out = out;
    if (!is_one_way || sets[g].has_root == is_out) it.bytes_in = in;
  }
}

}  // namespace

std::vector<Passing> PassingOf(const PlanHeader& header, const std::vector<uint32_t>& group_of,
                               uint32_t groups) {
  std::vector<NodeSet> sets(groups);
  for (uint32_t node = 0; node < group_of.size(); ++node) {
    NodeSet& set = sets[group_of[node]];
    set.members += node < header.roles().members() ? 1u : 0u;
    set.has_root |= header.collective.IsRoot(NodeId(node));
  }
  std::vector<Passing> passing;
  const auto bytes = static_cast<double>(header.payload.bytes);
  for (const NodeSet& set : sets) {
    Passing& it = passing.emplace_back();
    it.copies_out = CopiesOut(header, set);
    it.copies_in = CopiesIn(header, set);
    if (header.payload.is_uneven()) continue;
    it.bytes_out = static_cast<double>(it.copies_out) * bytes;
    it.bytes_in = static_cast<double>(it.copies_in) * bytes;
  }
  if (header.payload.is_uneven()) SetUnevenBytes(header, group_of, sets, &passing);
  return passing;
}

std::vector<Passing> PassingOfNodes(const PlanHeader& header) {
  std::vector<uint32_t> group_of(header.nodes);
  std::iota(group_of.begin(), group_of.end(), 0u);
  return PassingOf(header, group_of, header.nodes);
}

double BytesInAll(const PlanHeader& header) {
  if (!header.payload.is_uneven())
    return static_cast<double>(CopiesInAll(header)) * static_cast<double>(header.payload.bytes);
  double out = 0, in = 0;
  for (const Passing& it : PassingOfNodes(header)) {
    out += it.bytes_out;
    in += it.bytes_in;
  }
  // Of a reduce_scatter each part is sent by all but one, of an allgather to all but one; of the
  // others both sums are the same.
  return std::max(out, in);
}

std::vector<CutBound> BoundSeconds(const Network& network, const PlanHeader& header) {
  if (header.collective.kind == CollectiveKind::kMulticast)
    return BoundSeconds(network, header.collective.root, header.payload.bytes);
  if (header.roles().members() == 1) return {};
  return CollectiveCuts(network, header).Take();
}

NetworkBound BoundNetwork(const Network& network, const PlanHeader& header) {
  if (header.collective.kind == CollectiveKind::kMulticast)
    return BoundNetwork(network, header.collective.root, header.payload.bytes);
  NetworkBound bound;
  for (const CutBound& cut : BoundSeconds(network, header)) {
    if (cut.seconds + cut.latency > bound.seconds)
      bound = {.seconds = cut.seconds + cut.latency, .latency_seconds = cut.latency};
  }
  return bound;
}

}  // namespace prepost
