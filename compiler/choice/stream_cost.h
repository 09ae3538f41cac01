// SPDX-License-Identifier: Apache-2.0
//
// StreamCost: how long a schedule takes over connections that buffer, such as TCP's, from hosts
// that go on as soon as they can, and what is best by that. CostModel (cost_model.h) is of NICs,
// where every round begins with a latency; here latencies pass while other blocks are under way,
// and hosts that several peers send to do not keep step with all of them.
#ifndef PREPOST_COMPILER_CHOICE_STREAM_COST_H_
#define PREPOST_COMPILER_CHOICE_STREAM_COST_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compiler/schedules/node_order.h"
#include "compiler/schedules/schedule.h"
#include "ir/analysis/network.h"
#include "ir/base/status.h"

namespace prepost {

/// Fitted to bench/network/run.py, 8 nodes at 100 and 400 Mbit/s and 32 at 25 Mbit/s, of messages
/// of 256 KiB to 64 MiB (docs/benchmarks.md), but for the rate, which is assumed.
struct StreamParameters {
  double rate = 10e9 / 8;  ///< bytes/s of a node's port, each way
  double hop = 30e-6;      ///< seconds from the last byte of a block to the first that is passed on
  double block_overhead = 10e-6;  ///< seconds of hosts and packets for a block of any size
  /// Blocks per node that are late because a node receives from several peers, which share its port
  /// as chance will have it.
  double drift = 0.8;
  /// Seconds one way over the paths between racks or sites that the first block crosses one after
  /// the other: they pass once, while other blocks are under way.
  double latency = 0;
  bool is_path_rate = false;  ///< the rate is that of a path between racks
};
/// `base` for the network of `topology`, over which racks pass each block of `bytes` bytes on, one
/// after the other in `order`: the rate of the slowest that carries all blocks, over long paths as
/// TCP fills them (ir/analysis/tcp_rate.h), and latencies.
StreamParameters ParametersFor(const Network& topology, const NodeOrder& order, uint64_t bytes,
                               StreamParameters base);

/// What a schedule does with `blocks` blocks.
struct StreamShape {
  uint32_t nodes = 1;
  uint32_t blocks = 1;
  uint32_t rounds = 0;
  bool has_fan_in = false;  ///< some node receives from several peers
};

/// latency + rounds x step + hops + drift, where a step is a block's time on a port and its
/// overhead; hops are the rounds beyond one per block. Seconds, modelled.
double StreamSeconds(const StreamShape& shape, uint64_t block_bytes,
                     const StreamParameters& parameters);

/// A schedule that may be chosen.
struct StreamCandidate {
  std::string algorithm;
  const Schedule* schedule = nullptr;
  uint32_t fanout = 0;
  bool has_fan_in = false;
};
/// The schedules that come into question for `nodes` nodes in `racks` racks: of several only those
/// that take a block to each rack once.
std::vector<std::string> StreamAlgorithms(uint32_t nodes, size_t racks = 1);
/// Errors: those of FindAlgorithm() and Compile() for `nodes` nodes.
Result<StreamCandidate> MakeStreamCandidate(const std::string& algorithm, uint32_t nodes);

struct StreamChoice {
  size_t candidate = 0;
  /// If it was to be chosen, a power of two, from kStreamBlockMin to kStreamBlockMax.
  uint64_t block_bytes = 0;
  double seconds = 0;
};
inline constexpr uint64_t kStreamBlockMin = uint64_t{16} << 10;
inline constexpr uint64_t kStreamBlockMax = uint64_t{1} << 20;

/// The best for `bytes` bytes in blocks of `block_bytes`, or, if that is 0, of what is best; of
/// near equals the first candidate, with the largest blocks. `candidates`: at least one. `racks`:
/// as Extent::racks.
StreamChoice ChooseStream(const std::vector<StreamCandidate>& candidates, uint32_t nodes,
                          uint64_t bytes, uint64_t block_bytes, const StreamParameters& parameters,
                          std::span<const uint32_t> racks = {});

/// How long a message of `bytes` bytes takes down a binomial tree, without blocks: a hop for each
/// level, on which the root's port carries it once more. Seconds, modelled.
double EagerSeconds(uint32_t nodes, uint64_t bytes, const StreamParameters& parameters);

/// Up to how many bytes, at most `bytes_max`, that takes no longer than the best of `candidates`.
uint64_t EagerMax(const std::vector<StreamCandidate>& candidates, uint32_t nodes,
                  uint64_t bytes_max, const StreamParameters& parameters);

}  // namespace prepost

#endif  // PREPOST_COMPILER_CHOICE_STREAM_COST_H_
