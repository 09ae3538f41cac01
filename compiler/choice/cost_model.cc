// SPDX-License-Identifier: Apache-2.0
//
// The model is that of MeasureLoad() (network_load.h): rounds come one after the other, and each
// takes
//     the largest of bytes / rate of all that is used in it, ports, ToRs' links, the core or links,
//     + the largest latency of its transfers + the overhead of a block.
// On a flat network that is rounds x (latency + overhead + block / rate). Nothing is said of
// credits, of pauses, or of nodes that run ahead of others; it is for comparing, and the figures
// are modelled.
//
// A plan is what MeasureLoad() needs, and a plan has a transfer per block and node. Here the time
// of a schedule is found without one.
//
// Rolled schedules. A slot of a segment sends in rounds first, first + P, .., last: a stream
// (ir/rolled/rolled_streams.h), of which there are O(n log n), however many the blocks are. Rounds
// are taken by their residue mod P. In those of one residue the same streams send from one
// beginning or end of a stream to the next, so all rounds in between cost the same: that much times
// their number. Worked example, a chain of 4 nodes and 100 blocks, P = 1: streams 0>1 in rounds
// 0..98 and 99 (the last block's is a stream of its own), 1>2 in 1..99 and 100, 2>3 in 2..100 and
// 101: six streams, costs change at rounds 0, 1, 2, 99, 100, 101 and 102, where nothing is left.
//
// What a round costs. One port: a node sends one block at most, so a transfer's own time is bytes /
// min(rate out, rate in), and the nodes' part is that of the slowest transfer, found by counting
// transfers by that rate. For ToRs and the core blocks are counted, and the racks gone through.
// Links that carry what all nodes behind them can send at once are never what a round waits for,
// and are left out.
//
// Other schedules, and rolled ones with long periods, are gone through round by round, if nodes x
// rounds is not too much. If it is: time is linear in the size of blocks, T = b W(k) + L(k), and W
// and L grow, but for what a period does to them, linearly with the number of blocks k. Both are
// found for two smaller k and drawn on.
//
// Source of the rounds' costs: the one-port model of Bar-Noy and Kipnis with a latency per round
// (alpha + beta m / k in the literature on MPI broadcast).
#include "compiler/choice/cost_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "compiler/schedules/rolled_schedule.h"
#include "ir/rolled/rolled_streams.h"

namespace prepost {
namespace {

/// Between two k of which costs are drawn on: after so many blocks many periods of circulants
/// end together. The largest that there is time for.
constexpr uint32_t kSteps[] = {5040, 2520, 840, 120};

/// Above so many nodes the cost of few blocks is estimated from that of many, too.
constexpr uint32_t kPlayedNodesMax = 8192;

/// scatter_allgather, whose costs repeat with n blocks, is gone through for so many nodes.
constexpr uint32_t kRingNodesMax = 512;

/// Bytes of full blocks and of the last one.
struct BlockSizes {
  double full = 0;
  double last = 0;
};

BlockSizes SizesOf(const Payload& payload) {
  return {.full = static_cast<double>(payload.BlockSize(0)),
          .last = static_cast<double>(payload.BlockSize(payload.blocks - 1))};
}

/// Whether its segments go around a ring: its costs repeat with as many blocks as there are nodes.
bool IsRing(const Algorithm& algorithm) {
  return algorithm.schedule == &ScatterAllgatherSchedule();
}

/// How many transfers there are of full blocks and of last ones.
struct Counts {
  uint32_t full = 0;
  uint32_t last = 0;

  void Add(bool is_last_block, int32_t change) {
    uint32_t& count = is_last_block ? last : full;
    count = static_cast<uint32_t>(static_cast<int64_t>(count) + change);
  }
  bool IsEmpty() const { return full == 0 && last == 0; }
  double Bytes(BlockSizes sizes) const { return full * sizes.full + last * sizes.last; }
};

}  // namespace

const char* Name(CostShare share) {
  switch (share) {
    case CostShare::kLatency:
      return "latency and overhead";
    case CostShare::kNodes:
      return "nodes' ports";
    case CostShare::kRackUp:
      return "racks' uplinks";
    case CostShare::kRackDown:
      return "racks' downlinks";
    case CostShare::kLinks:
      return "paths";
    case CostShare::kCore:
      return "the core";
  }
  PREPOST_CHECK(false);
  return "";
}

CostShare ScheduleCost::largest_share() const {
  return static_cast<CostShare>(std::ranges::max_element(shares) - shares.begin());
}

Result<Network> CostNetwork(const Spec& spec, const CostParameters& parameters) {
  if (!std::isfinite(parameters.rate) || parameters.rate <= 0)
    return Rejected(fmt::format("a rate is more than 0 bytes/s, found {}", parameters.rate));
  for (const double seconds : {parameters.latency, parameters.block_overhead}) {
    if (!std::isfinite(seconds) || seconds < 0)
      return Rejected(fmt::format("latency and overhead are 0 s or more, found {}", seconds));
  }
  Network network = Network::Uniform(spec.nodes);
  if (spec.topology) {
    Result<Network> given = spec.topology->First(spec.nodes);
    if (!given.ok()) return given;
    network = *std::move(given);
  } else {
    for (Network::Node& node : network.nodes)
      node = {.rack = 0, .out_rate = parameters.rate, .in_rate = parameters.rate};
    network.rack_latency = network.core_latency = parameters.latency;
  }
  network.rack_latency += parameters.block_overhead;
  network.core_latency += parameters.block_overhead;
  return network;
}

/// What the transfers of one round cost together. By vertex.
class CostModel::RoundCost {
 public:
  RoundCost(const Network& network, const NodeOrder& order) : core_rate_(network.core_rate) {
    for (const Network::Node& node : network.nodes) {
      rates_.insert(rates_.end(), {node.out_rate, node.in_rate});
    }
    std::ranges::sort(rates_);
    rates_.erase(std::unique(rates_.begin(), rates_.end()), rates_.end());
    const auto place = [&](double rate) {
      return static_cast<uint32_t>(std::ranges::lower_bound(rates_, rate) - rates_.begin());
    };
    std::vector<double> out(network.racks.size()), in(network.racks.size());
    for (const NodeId id : order.node_at) {
      const Network::Node& node = network.nodes[id.index()];
      vertices_.push_back({place(node.out_rate), place(node.in_rate), node.rack});
      out[node.rack] += node.out_rate;
      in[node.rack] += node.in_rate;
    }
    by_rate_.resize(rates_.size());
    up_.resize(network.racks.size());
    down_.resize(network.racks.size());
    for (uint32_t rack = 0; rack < network.racks.size(); ++rack) {
      const Network::Rack& it = network.racks[rack];
      if (it.up_rate < out[rack]) limiting_up_.push_back({rack, it.up_rate});
      if (it.down_rate < in[rack]) limiting_down_.push_back({rack, it.down_rate});
    }
    for (const Network::Link& link : network.links) links_.push_back({.rate = link.capacity()});
    route_begin_ = network.route_begin;
    route_links_ = network.route_links;
    AddLatencies(network);
    fastest_ = rates_.back();
  }

  double fastest() const { return fastest_; }
  double lowest_latency() const { return lowest_latency_; }

  /// A transfer more, or with -1 one less.
  void Add(uint32_t from, uint32_t to, bool is_last_block, int32_t change) {
    const Vertex& sender = vertices_[from];
    const Vertex& receiver = vertices_[to];
    by_rate_[std::min(sender.out, receiver.in)].Add(is_last_block, change);
    const bool crosses = sender.rack != receiver.rack;
    const auto add = [&](uint32_t& transfers) {
      transfers = static_cast<uint32_t>(static_cast<int64_t>(transfers) + change);
    };
    const size_t latency = LatencyOf(sender.rack, receiver.rack);
    if (transfers_[latency] == 0) used_latencies_.push_back(latency);
    add(transfers_[latency]);
    add(crosses ? crossing_ : staying_);
    if (!crosses) return;
    if (!links_.empty()) {
      const size_t route = size_t{receiver.rack} * up_.size() + sender.rack;
      for (uint32_t at = route_begin_[route]; at < route_begin_[route + 1]; ++at) {
        Link& link = links_[route_links_[at]];
        link.counts.Add(is_last_block, change);
        if (!std::exchange(link.is_listed, true)) used_links_.push_back(route_links_[at]);
      }
    }
    up_[sender.rack].Add(is_last_block, change);
    down_[receiver.rack].Add(is_last_block, change);
    core_.Add(is_last_block, change);
  }

  /// Adds what `rounds` rounds of these transfers cost.
  void Charge(BlockSizes sizes, uint32_t rounds, ScheduleCost* cost) {
    if (staying_ + crossing_ == 0) return;
    CostShare share = CostShare::kNodes;
    double seconds = SlowestTransfer(sizes);
    const auto consider = [&](CostShare which, double needed) {
      if (needed <= seconds) return;
      seconds = needed;
      share = which;
    };
    if (crossing_ != 0) {
      for (const ToRLink& link : limiting_up_)
        consider(CostShare::kRackUp, up_[link.rack].Bytes(sizes) / link.rate);
      for (const ToRLink& link : limiting_down_)
        consider(CostShare::kRackDown, down_[link.rack].Bytes(sizes) / link.rate);
      if (core_rate_) consider(CostShare::kCore, core_.Bytes(sizes) / *core_rate_);
      std::erase_if(used_links_, [&](uint32_t index) {
        Link& link = links_[index];
        link.is_listed = !link.counts.IsEmpty();
        return !link.is_listed;
      });
      for (const uint32_t index : used_links_)
        consider(CostShare::kLinks, links_[index].counts.Bytes(sizes) / links_[index].rate);
    }
    double latency = 0;
    std::erase_if(used_latencies_, [&](size_t it) { return transfers_[it] == 0; });
    std::ranges::sort(used_latencies_);  // one that was emptied and used again is there twice
    const auto again = std::ranges::unique(used_latencies_);
    used_latencies_.erase(again.begin(), again.end());
    for (const size_t it : used_latencies_) latency = std::max(latency, latencies_[it]);
    cost->shares[static_cast<size_t>(share)] += rounds * seconds;
    cost->shares[static_cast<size_t>(CostShare::kLatency)] += rounds * latency;
  }

 private:
  struct Vertex {
    uint32_t out;  // place of its rate in rates_
    uint32_t in;
    uint32_t rack;
  };
  struct ToRLink {
    uint32_t rack;
    double rate;
  };
  /// Between racks.
  struct Link {
    double rate;
    Counts counts = {};
    bool is_listed = false;  ///< in used_links_
  };

  /// In a rack, and between racks: of links by the pair of racks, of a core one.
  void AddLatencies(const Network& network) {
    latencies_ = {network.rack_latency};
    if (network.links.empty()) {
      latencies_.push_back(network.core_latency);
    } else {
      const auto racks = static_cast<uint32_t>(network.racks.size());
      for (uint32_t to = 0; to < racks; ++to)
        for (uint32_t from = 0; from < racks; ++from)
          latencies_.push_back(network.LatencyBetween(from, to));
    }
    lowest_latency_ = std::ranges::min(latencies_);
    transfers_.resize(latencies_.size());
  }
  size_t LatencyOf(uint32_t from_rack, uint32_t to_rack) const {
    if (from_rack == to_rack) return 0;
    return route_begin_.empty() ? 1 : 1 + size_t{to_rack} * up_.size() + from_rack;
  }

  double SlowestTransfer(BlockSizes sizes) const {
    double seconds = 0;
    bool has_full = false, has_last = false;
    for (size_t i = 0; i < rates_.size() && !has_full; ++i) {
      if (by_rate_[i].full != 0) {
        seconds = std::max(seconds, sizes.full / rates_[i]);
        has_full = true;  // what is faster, and last ones, take no longer
      }
      if (by_rate_[i].last != 0 && !has_last) {
        seconds = std::max(seconds, sizes.last / rates_[i]);
        has_last = true;
      }
    }
    return seconds;
  }

  std::vector<double> rates_;    // of ports, rising, each once
  std::vector<Counts> by_rate_;  // transfers, by the rate of the slower port
  std::vector<Vertex> vertices_;
  std::vector<ToRLink> limiting_up_, limiting_down_;
  std::vector<Counts> up_, down_;
  Counts core_;
  std::optional<double> core_rate_;
  std::vector<uint32_t> route_begin_, route_links_;  // as in Network
  std::vector<Link> links_;
  std::vector<uint32_t> used_links_;  // with transfers, and some that have none any more
  std::vector<double> latencies_;     // by LatencyOf()
  double lowest_latency_ = 0;
  std::vector<uint32_t> transfers_;     // by LatencyOf()
  std::vector<size_t> used_latencies_;  // with transfers, and some that have none any more
  uint32_t staying_ = 0;                // in racks
  uint32_t crossing_ = 0;               // between them
  double fastest_ = 0;
};

struct CostModel::Estimate {
  uint32_t blocks = 0;  ///< of `at`; more of them cost `more` each
  ScheduleCost at, more;
};

/// A stream in the rounds of one residue: from `index` on there is a transfer more or less.
struct CostModel::Stretch {
  uint32_t residue;
  uint32_t index;  ///< of the round, among those of the residue
  uint32_t from;
  uint32_t to;
  int32_t change;
  bool is_last_block;
};

CostModel::CostModel(Network network, NodeOrder order, uint64_t steps_max)
    : network_(std::move(network)),
      order_(std::move(order)),
      steps_max_(steps_max),
      round_(std::make_unique<RoundCost>(network_, order_)) {}
CostModel::~CostModel() = default;
CostModel::CostModel(CostModel&&) noexcept = default;

uint32_t CostModel::racks() const {
  return std::max<uint32_t>(1, static_cast<uint32_t>(order_.rack_begin.size()));
}

double CostModel::fastest_rate() const { return round_->fastest(); }
double CostModel::lowest_latency() const { return round_->lowest_latency(); }

Extent CostModel::ExtentOf(const Algorithm& algorithm, uint32_t blocks) const {
  return {
      .nodes = nodes(), .blocks = blocks, .racks = order_.rack_begin, .fanout = algorithm.fanout};
}

double CostModel::RoughSeconds(const Algorithm& algorithm, const Payload& payload) const {
  const double rounds = algorithm.schedule->Rounds(ExtentOf(algorithm, payload.blocks));
  const double block = static_cast<double>(payload.bytes) / payload.blocks;
  return rounds * (lowest_latency() + block / fastest_rate());
}

bool CostModel::IsTooLarge(const Algorithm& algorithm) const {
  return IsRing(algorithm) && nodes() > kRingNodesMax;
}

uint32_t CostModel::EstimateStep(const Algorithm& algorithm) const {
  if (IsRing(algorithm)) return nodes();
  for (const uint32_t step : kSteps) {
    if (2 * uint64_t{step} * nodes() <= 4 * steps_max_) return step;
  }
  return std::ranges::min(kSteps);
}

uint32_t CostModel::EstimatedBlocksMin(const Algorithm& algorithm) const {
  return 2 * std::min(EstimateStep(algorithm), std::ranges::min(kSteps));
}

ScheduleCost CostModel::CostOf(const Algorithm& algorithm, const Payload& payload) {
  if (nodes() == 1) return {};
  const RolledSchedule* const rolled = algorithm.schedule->rolled();
  if (rolled != nullptr && rolled->HasShortPeriods()) return SweepStreams(algorithm, payload);
  const uint64_t rounds = algorithm.schedule->Rounds(ExtentOf(algorithm, payload.blocks));
  const bool is_long = payload.blocks > EstimatedBlocksMin(algorithm) || nodes() > kPlayedNodesMax;
  if (rounds * nodes() > steps_max_ && is_long) return EstimateCost(algorithm, payload);
  return PlayRounds(algorithm, payload);
}

ScheduleCost CostModel::SweepStreams(const Algorithm& algorithm, const Payload& payload) {
  const RolledExtent extent(ExtentOf(algorithm, payload.blocks));
  const RolledSchedule& schedule = *algorithm.schedule->rolled();
  struct Sent {
    uint32_t from;
    SendStream stream;
  };
  std::vector<Sent> sent;
  uint32_t period = 1;
  for (uint32_t vertex = 0; vertex < nodes(); ++vertex) {
    for (SendStream& stream : SendStreams(schedule.SegmentsOf(extent, vertex), payload.blocks)) {
      period = std::lcm(period, stream.period);
      sent.push_back({vertex, std::move(stream)});
    }
  }
  std::vector<Stretch> stretches;
  stretches.reserve(2 * sent.size());
  for (const auto& [from, stream] : sent) {
    const uint32_t to = stream.peer.value;
    for (uint64_t first = stream.first;
         first <= stream.last && first < uint64_t{stream.first} + period; first += stream.period) {
      const auto residue = static_cast<uint32_t>(first % period);
      const auto begin = static_cast<uint32_t>(first / period);
      const auto end = static_cast<uint32_t>((stream.last - first) / period + begin + 1);
      stretches.push_back({residue, begin, from, to, 1, stream.is_last_block});
      stretches.push_back({residue, end, from, to, -1, stream.is_last_block});
    }
  }
  std::ranges::sort(stretches, {},
                    [](const Stretch& it) { return uint64_t{it.residue} << 32 | it.index; });
  ScheduleCost cost{.rounds = schedule.Rounds(ExtentOf(algorithm, payload.blocks))};
  const BlockSizes sizes = SizesOf(payload);
  for (size_t i = 0; i < stretches.size(); ++i) {
    const Stretch& it = stretches[i];
    round_->Add(it.from, it.to, it.is_last_block, it.change);
    if (i + 1 == stretches.size() || stretches[i + 1].residue != it.residue) continue;
    const uint32_t rounds = stretches[i + 1].index - it.index;
    if (rounds != 0) round_->Charge(sizes, rounds, &cost);
  }
  cost.seconds = std::accumulate(cost.shares.begin(), cost.shares.end(), 0.0);
  return cost;
}

ScheduleCost CostModel::PlayRounds(const Algorithm& algorithm, const Payload& payload) {
  const Extent extent = ExtentOf(algorithm, payload.blocks);
  struct Player {
    uint32_t vertex;
    RoundRange active;
    std::unique_ptr<NodeSchedule> part;
  };
  std::vector<Player> players;
  for (uint32_t vertex = 0; vertex < extent.nodes; ++vertex) {
    std::unique_ptr<NodeSchedule> part = algorithm.schedule->ForNode(extent, vertex);
    const RoundRange active = part->ActiveRounds();
    players.push_back({vertex, active, std::move(part)});
  }
  ScheduleCost cost{.rounds = algorithm.schedule->Rounds(extent)};
  const BlockSizes sizes = SizesOf(payload);
  std::vector<std::pair<uint32_t, Transfer>> transfers;
  const auto add_all = [&](int32_t change) {
    for (const auto& [from, transfer] : transfers)
      round_->Add(from, transfer.peer, transfer.block + 1 == payload.blocks, change);
  };
  for (uint32_t round = 0; round < cost.rounds; ++round) {
    transfers.clear();
    for (const Player& player : players) {
      if (round < player.active.begin || round >= player.active.end) continue;
      if (const std::optional<Transfer> out = player.part->Outgoing(round))
        transfers.emplace_back(player.vertex, *out);
    }
    add_all(1);
    round_->Charge(sizes, 1, &cost);
    add_all(-1);
  }
  cost.seconds = std::accumulate(cost.shares.begin(), cost.shares.end(), 0.0);
  return cost;
}

const CostModel::Estimate& CostModel::EstimateOf(const Algorithm& algorithm, uint32_t blocks) {
  const auto [place, is_new] = estimates_.try_emplace({algorithm.schedule, algorithm.fanout});
  if (!is_new) return place->second;
  // As many blocks as there is time for, so that what happens once has happened.
  const uint32_t unit = EstimateStep(algorithm);
  uint32_t most = blocks;
  while (most > 4 * unit &&
         uint64_t{algorithm.schedule->Rounds(ExtentOf(algorithm, most))} * nodes() > steps_max_)
    most /= 2;
  most = std::max(most / unit, 2u) * unit;
  const uint32_t step = most / 2 / unit * unit;
  const auto cost_of = [&](uint32_t count) {  // of blocks of 1 byte
    return PlayRounds(algorithm, *MakePayload(count, 1));
  };
  Estimate& estimate = place->second;
  estimate.blocks = most;
  estimate.at = cost_of(most);
  const ScheduleCost before = cost_of(most - step);
  for (size_t i = 0; i < kCostShares; ++i)
    estimate.more.shares[i] = (estimate.at.shares[i] - before.shares[i]) / step;
  return estimate;
}

ScheduleCost CostModel::EstimateCost(const Algorithm& algorithm, const Payload& payload) {
  const Estimate& estimate = EstimateOf(algorithm, payload.blocks);
  ScheduleCost cost{.rounds = algorithm.schedule->Rounds(ExtentOf(algorithm, payload.blocks)),
                    .is_exact = false};
  // The segments of a ring are all as long as the longest.
  const uint32_t unit = EstimateStep(algorithm);
  const uint32_t blocks =
      IsRing(algorithm) ? (payload.blocks - 1) / unit * unit + unit : payload.blocks;
  const double more = static_cast<double>(blocks) - estimate.blocks;
  const double block_bytes = SizesOf(payload).full;
  for (size_t i = 0; i < kCostShares; ++i) {
    const double shares = estimate.at.shares[i] + more * estimate.more.shares[i];
    cost.shares[i] = shares * (static_cast<CostShare>(i) == CostShare::kLatency ? 1 : block_bytes);
    cost.seconds += cost.shares[i];
  }
  return cost;
}

}  // namespace prepost
