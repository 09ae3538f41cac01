// SPDX-License-Identifier: Apache-2.0
//
// Worked example, a chain of 8 nodes, 1 MiB in blocks of 16 KiB at 50 MB/s: 64 + 6 rounds of 0.33
// ms, and 10 us, and 6 hops of 30 us: 23.8 ms, where the bytes alone take 21.0. The binomial
// pipeline has 64 + 2 rounds and 2 hops, but 0.8 x 8 blocks come late: 24.5 ms.
#include "compiler/choice/stream_cost.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <set>
#include <utility>

#include "compiler/compile.h"
#include "compiler/schedules/fan.h"
#include "ir/analysis/tcp_rate.h"

namespace prepost {
namespace {

/// A later candidate has to be so much better: earlier ones depend less on what hosts and ports do.
constexpr double kWorthwhile = 0.95;

/// Of many paths only so many are played of those that are slowest by what CUBIC carries in the
/// long run, and of the longest.
constexpr size_t kPlayedMax = 16;

/// At which `bytes` pass the slowest of some paths, bytes/s.
double SlowestRate(std::vector<Network::Link> paths, uint64_t bytes) {
  const auto foretold = [](const Network::Link& path) { return LongRunRate(path); };
  std::ranges::stable_sort(paths, {}, foretold);
  const auto looks_same = [](const Network::Link& a, const Network::Link& b) {
    Network::Link other = b;
    other.from = a.from;
    other.to = a.to;
    return a == other;
  };
  paths.erase(std::unique(paths.begin(), paths.end(), looks_same), paths.end());
  if (paths.size() > 2 * kPlayedMax) {
    std::ranges::stable_sort(paths.begin() + kPlayedMax, paths.end(), std::greater(),
                             &Network::Link::latency);
    paths.resize(2 * kPlayedMax);
  }
  double slowest = std::numeric_limits<double>::infinity();
  for (const Network::Link& path : paths)
    slowest = std::min(slowest, static_cast<double>(bytes) / TcpSecondsOf(path, bytes));
  return slowest;
}

}  // namespace

double StreamSeconds(const StreamShape& shape, uint64_t block_bytes,
                     const StreamParameters& parameters) {
  const double step =
      static_cast<double>(block_bytes) / parameters.rate + parameters.block_overhead;
  const double hops = shape.rounds > shape.blocks ? shape.rounds - shape.blocks : 0;
  const double late =
      shape.has_fan_in ? std::min(parameters.drift * shape.nodes, double{1} * shape.blocks) : 0;
  return parameters.latency + (shape.rounds + late) * step + hops * parameters.hop;
}

StreamParameters ParametersFor(const Network& topology, const NodeOrder& order, uint64_t bytes,
                               StreamParameters base) {
  base.rate = std::numeric_limits<double>::infinity();
  const auto rack_at = [&](uint32_t vertex) {
    return topology.nodes[order.node_at[vertex].index()].rack;
  };
  std::set<uint32_t> racks;
  for (uint32_t vertex = 0; vertex < order.node_at.size(); ++vertex) {
    const Network::Node& host = topology.nodes[order.node_at[vertex].index()];
    base.rate = std::min({base.rate, host.out_rate, host.in_rate});
    racks.insert(rack_at(vertex));
  }
  base.hop += topology.rack_latency;
  const size_t others = racks.size() - 1;
  if (others == 0) return base;
  for (const uint32_t rack : racks)
    base.rate = std::min({base.rate, topology.racks[rack].up_rate, topology.racks[rack].down_rate});
  if (topology.links.empty()) {
    if (topology.core_rate)
      base.rate = std::min(base.rate, *topology.core_rate / static_cast<double>(others));
    base.latency = static_cast<double>(others) * topology.core_latency;
    return base;
  }
  base.latency = 0;
  std::vector<Network::Link> paths;  // one after the other
  for (uint32_t vertex = 1; vertex < order.node_at.size(); ++vertex) {
    const uint32_t from = rack_at(vertex - 1), to = rack_at(vertex);
    if (from == to) continue;
    Network::Link path = PathOf(topology, topology.LinksBetween(from, to));
    path.rate = std::min(path.rate, base.rate);  // what ports send, at most, is in flight
    paths.push_back(path);
    base.latency += topology.LatencyBetween(from, to);
  }
  const double rate = SlowestRate(std::move(paths), std::max<uint64_t>(bytes, 1));
  base.is_path_rate = rate < base.rate;
  base.rate = std::min(base.rate, rate);
  return base;
}

std::vector<std::string> StreamAlgorithms(uint32_t nodes, size_t racks) {
  if (racks > 1) return {"chain", "rack_circulant"};
  if (nodes <= 2) return {"chain"};  // both are the same
  return {"chain", "binomial_pipeline"};
}

Result<StreamCandidate> MakeStreamCandidate(const std::string& algorithm, uint32_t nodes) {
  const Result<Algorithm> found = FindAlgorithm(algorithm);
  if (!found.ok()) return found.status();
  StreamCandidate candidate = {
      .algorithm = algorithm, .schedule = found->schedule, .fanout = found->fanout};
  Spec spec;
  spec.nodes = nodes;
  spec.algorithm = algorithm;
  spec.block_bytes = 1;
  spec.message_bytes = 2;  // blocks show by which ways they come
  const Result<VerifiedPlan> plan = Compile(spec);
  if (!plan.ok()) return plan.status();
  candidate.has_fan_in = FanOf(*plan).in;
  return candidate;
}

StreamChoice ChooseStream(const std::vector<StreamCandidate>& candidates, uint32_t nodes,
                          uint64_t bytes, uint64_t block_bytes, const StreamParameters& parameters,
                          std::span<const uint32_t> racks) {
  const uint64_t largest = block_bytes != 0 ? block_bytes : kStreamBlockMax;
  const uint64_t smallest = block_bytes != 0 ? block_bytes : kStreamBlockMin;
  StreamChoice best = {.block_bytes = largest, .seconds = std::numeric_limits<double>::infinity()};
  for (size_t i = 0; i < candidates.size(); ++i) {
    for (uint64_t size = largest; size >= smallest; size /= 2) {
      const uint64_t blocks = bytes == 0 ? 1 : (bytes - 1) / size + 1;
      const auto counted = static_cast<uint32_t>(std::min<uint64_t>(blocks, UINT32_MAX));
      if (!CheckTransfers(nodes, counted).ok()) break;
      const uint32_t rounds = candidates[i].schedule->Rounds(
          {.nodes = nodes, .blocks = counted, .racks = racks, .fanout = candidates[i].fanout});
      const double seconds =
          StreamSeconds({.nodes = nodes,
                         .blocks = counted,
                         .rounds = rounds,
                         .has_fan_in = candidates[i].has_fan_in},
                        std::min(size, std::max<uint64_t>(bytes, 1)), parameters);
      const double worth = i == best.candidate ? 1 : kWorthwhile;
      if (seconds < worth * best.seconds)
        best = {.candidate = i, .block_bytes = size, .seconds = seconds};
    }
  }
  return best;
}

double EagerSeconds(uint32_t nodes, uint64_t bytes, const StreamParameters& parameters) {
  const double levels = std::bit_width(nodes - 1u);
  const double step = static_cast<double>(bytes) / parameters.rate + parameters.block_overhead;
  return parameters.latency + levels * step + std::max(levels - 1, 0.0) * parameters.hop;
}

uint64_t EagerMax(const std::vector<StreamCandidate>& candidates, uint32_t nodes,
                  uint64_t bytes_max, const StreamParameters& parameters) {
  uint64_t most = 0;
  for (uint64_t bytes = 1; bytes <= bytes_max; bytes *= 2) {
    const StreamChoice best = ChooseStream(candidates, nodes, bytes, 0, parameters);
    if (EagerSeconds(nodes, bytes, parameters) <= best.seconds * (1 + 1e-9)) most = bytes;
  }
  return most;
}

}  // namespace prepost
