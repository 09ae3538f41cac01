// SPDX-License-Identifier: Apache-2.0
//
// Lower bounds on what any multicast of a message needs, each with its argument in words: rounds,
// from what a port carries; seconds, from what the cuts of a network carry.
#ifndef PREPOST_IR_ANALYSIS_BOUNDS_H_
#define PREPOST_IR_ANALYSIS_BOUNDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/analysis/network.h"
#include "ir/plan.h"

namespace prepost {

struct RoundBound {
  uint64_t rounds = 0;
  std::string formula;  ///< "8 - 1 + ceil(log2 8) = 10"
  std::string because;  ///< the argument, in two parts
  std::string therefore;
};

/// No schedule in which a node has at most `ports` transfers out and in per round has fewer rounds:
/// ceil(blocks / ports) - 1 + ceil(log_(ports+1) nodes); with one port Bar-Noy and Kipnis, Discrete
/// Applied Mathematics 55 (1994). All arguments >= 1.
RoundBound BoundRounds(uint32_t nodes, uint32_t blocks, uint32_t ports);

/// The same of the collective of `header`, of which the multicast is one. `has_ranges`: messages
/// carry several blocks; then only those who know of something, which grow as above, bound rounds.
/// For members m, blocks k of a part (of the whole where there is one) and a block that needs c
/// messages, all of them c k / (m ports) rounds: c is 2(m - 1) of an allreduce (Harary and Schwenk,
/// Journal of the Franklin Institute 297 (1974)).
RoundBound BoundRounds(const PlanHeader& header, bool has_ranges);

/// Blocks that the port of some node must carry one way, at least, with the argument in words.
struct PortBound {
  uint64_t blocks = 0;
  std::string because;
};
PortBound BoundPort(const PlanHeader& header);

/// What must pass a part of the network takes at least this long.
struct CutBound {
  bool is_rack = false;  ///< between racks: ToRs' links, the core or links; else nodes' ports
  bool is_root = false;  ///< the port out of the root
  std::string cut;       ///< "port out of the root", "downlinks of rack r1", ...
  uint64_t copies = 1;   ///< of the message that must pass
  double rate = 0;       ///< bytes/s
  double latency = 0;    ///< between racks: seconds that come on top, at least
  double bytes = 0;      ///< of all copies
  double seconds = 0;    ///< bytes / rate
};

/// The fluid bound: no multicast of `bytes` bytes without switch replication ends sooner than the
/// longest of these (Kumar and Ross 2006, and the same argument for racks). Longest first; none for
/// one node. Needs a network that CheckNetwork() accepts.
std::vector<CutBound> BoundSeconds(const Network& network, NodeId root, uint64_t bytes);

/// The network bound: what no multicast takes less than, in rounds or not. The cut, of
/// BoundSeconds(), for which that is most, and what latency adds to it at least; nothing for one
/// node. Costs of hosts and NICs only add to it.
struct NetworkBound {
  double seconds = 0;
  double latency_seconds = 0;  ///< of these
};
NetworkBound BoundNetwork(const Network& network, NodeId root, uint64_t bytes);
/// The lowest latency between two nodes; 0 of one node.
double LowestLatency(const Network& network);

/// What every plan pays for latency in NetworkLoad::seconds, whatever its schedule and blocks.
struct LatencyBound {
  uint64_t rounds = 0;          ///< that carry something: ceil(log_(ports+1) nodes)
  double round_seconds = 0;     ///< the lowest latency that the network has
  bool crosses = false;         ///< there are nodes in several racks,
  double crossing_seconds = 0;  ///< so one round at least pays that between them
  double seconds = 0;           ///< of all these rounds
};

/// Comes on top of the longest of BoundSeconds(), as rounds come one after the other: the bound in
/// rounds (bounds.cc).
LatencyBound BoundLatency(const Network& network, const PlanHeader& header);
/// Rounds a number >= 0 up to a whole number; a hair above a whole number counts as that number
/// (rates are measured). From 2^64 on UINT64_MAX.
uint64_t CeilOf(double rounds);
/// What the cuts between racks, of BoundSeconds(), say of NetworkLoad::limited_rounds, where the
/// root's port, or node 0's where there is no root, carries a block per round, `block_rate`
/// bytes/s; 0 rounds without such cuts.
RoundBound BoundLimitedRounds(const std::vector<CutBound>& cuts, const PlanHeader& header,
                              double block_rate);

}  // namespace prepost

#endif  // PREPOST_IR_ANALYSIS_BOUNDS_H_
