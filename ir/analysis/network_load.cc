// SPDX-License-Identifier: Apache-2.0
//
// The block messages are sorted by round; each round adds its messages to the resources on
// their way, and only those are read and cleared at its end, so that the rest is linear however
// many racks and rounds there are.
//
// Every block enters each rack but the root's at least once, so if no block crosses racks more
// often than there are other racks, each rack is entered exactly once per block.
#include "ir/analysis/network_load.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ir/analysis/bounds.h"

namespace prepost {
namespace {

class LoadMeter {
 public:
  LoadMeter(const PlanTables& tables, const Network& network)
      : tables_(tables), network_(network), header_(tables.plan().header()) {
    for (const ResourceKind kind : kResourceKinds) {
      const uint32_t count = network.CountOf(kind);
      load_.loads[Index(kind)].resize(count);
      round_[Index(kind)].resize(count);
    }
    load_.crossings.assign(header_.payload.blocks, 0);
  }

  NetworkLoad Run() {
    const std::vector<std::pair<uint32_t, uint32_t>> messages = BlocksByRound();
    uint32_t busy_rounds = 0;
    for (auto next = messages.begin(); next != messages.end(); ++busy_rounds) {
      const uint32_t round = next->first;
      double latency = 0;
      for (; next != messages.end() && next->first == round; ++next) {
        latency = std::max(latency, AddMessage(next->second));
      }
      EndRound(latency);
    }
    AddLimitedRounds(header_.rounds - busy_rounds);
    for (const ResourceKind kind : kResourceKinds) {
      std::vector<ResourceLoad>& loads = load_.loads[Index(kind)];
      for (uint32_t i = 0; i < loads.size(); ++i) {
        loads[i].seconds = loads[i].bytes.ToDouble() / network_.RateOf({kind, i});
      }
    }
    const uint32_t other_racks = network_.OccupiedRacks() - 1;
    load_.enters_racks_once = std::ranges::max(load_.crossings) <= other_racks;
    return std::move(load_);
  }

 private:
  struct RoundLoad {
    uint32_t blocks = 0;
    ByteSum bytes;
  };

  static size_t Index(ResourceKind kind) { return static_cast<size_t>(kind); }

  /// (round, message) of each block, in order. A plan may have few messages in many rounds.
  std::vector<std::pair<uint32_t, uint32_t>> BlocksByRound() const {
    std::vector<std::pair<uint32_t, uint32_t>> messages;
    for (uint32_t m = 0; m < tables_.messages().size(); ++m) {
      const Op& send = tables_.SendOf(m);
      if (!send.is_credit()) messages.emplace_back(send.round, m);
    }
    std::ranges::sort(messages);
    return messages;
  }

  /// To all resources on its way; its latency.
  double AddMessage(uint32_t message) {
    const Op& send = tables_.SendOf(message);
    const Channel& channel = tables_.ChannelOf(message);
    const uint64_t bytes = header_.payload.RangeSize(send.block, send.count);
    network_.ForEachOnWay(channel.from, channel.to,
                          [&](Resource resource) { Add(resource, send.count, bytes); });
    if (!load_.of(ResourceKind::kNodeBoth).empty()) {
      Add({ResourceKind::kNodeBoth, channel.from.value}, send.count, bytes);
      Add({ResourceKind::kNodeBoth, channel.to.value}, send.count, bytes);
    }
    const uint32_t from_rack = network_.nodes[channel.from.index()].rack;
    const uint32_t to_rack = network_.nodes[channel.to.index()].rack;
    if (from_rack != to_rack) {
      for (uint32_t i = 0; i < send.count; ++i) ++load_.crossings[send.block + i];
    }
    return network_.LatencyBetween(from_rack, to_rack);
  }

  void Add(Resource resource, uint32_t blocks, uint64_t bytes) {
    RoundLoad& round = round_[Index(resource.kind)][resource.index];
    if (round.blocks == 0) touched_.push_back(resource);
    round.blocks += blocks;
    round.bytes += bytes;
  }

  void EndRound(double latency) {
    const double block_rate = network_.nodes[header_.collective.root.index()].out_rate;
    double seconds = 0;
    uint64_t rounds = 1;
    for (const Resource resource : touched_) {
      RoundLoad& round = round_[Index(resource.kind)][resource.index];
      ResourceLoad& total = load_.loads[Index(resource.kind)][resource.index];
      total.blocks += round.blocks;
      total.bytes += round.bytes;
      total.peak_blocks = std::max(total.peak_blocks, round.blocks);
      const double rate = network_.RateOf(resource);
      seconds = std::max(seconds, round.bytes.ToDouble() / rate);
      const bool is_shared =
          resource.kind == ResourceKind::kRackUp || resource.kind == ResourceKind::kRackDown ||
          resource.kind == ResourceKind::kCore || resource.kind == ResourceKind::kLink;
      if (is_shared) {
        rounds = std::max(rounds, CeilOf(round.blocks * block_rate / rate));
      }
      round = {};
    }
    touched_.clear();
    load_.seconds += seconds + latency;
    load_.latency_seconds += latency;
    AddLimitedRounds(rounds);
  }

  /// At most UINT64_MAX, on links so slow that only the limit of numbers ends it.
  void AddLimitedRounds(uint64_t rounds) {
    load_.limited_rounds += std::min(rounds, UINT64_MAX - load_.limited_rounds);
  }

  const PlanTables& tables_;
  const Network& network_;
  const PlanHeader& header_;
  NetworkLoad load_;
  std::array<std::vector<RoundLoad>, kResourceKinds.size()> round_;  // of the round in hand
  std::vector<Resource> touched_;                                    // in it
};

}  // namespace

NetworkLoad MeasureLoad(const PlanTables& tables, const Network& network) {
  return LoadMeter(tables, network).Run();
}

std::vector<Resource> Busiest(const NetworkLoad& load) {
  // A message of no bytes keeps nobody busy; then blocks count.
  const auto busyness = [](const ResourceLoad& it) { return std::pair(it.seconds, it.blocks); };
  std::vector<Resource> busiest;
  for (const ResourceKind kind : kResourceKinds) {
    const std::vector<ResourceLoad>& loads = load.of(kind);
    const auto most = std::ranges::max_element(loads, {}, busyness);
    if (most == loads.end() || most->blocks == 0) continue;
    busiest.push_back({kind, static_cast<uint32_t>(most - loads.begin())});
  }
  std::ranges::stable_sort(busiest, std::greater(),
                           [&](Resource resource) { return busyness(load.of(resource)); });
  return busiest;
}

}  // namespace prepost
