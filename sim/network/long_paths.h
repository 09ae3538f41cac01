// SPDX-License-Identifier: Apache-2.0
//
// LongPaths: what flows over long paths, or over paths that lose packets, in virtual time. There a
// connection's rate is not only a share of links: TCP's windows open from a few packets on and
// close at losses, and a reliable QP that loses a packet sends all again that it has sent since.
// Connections are pairs of hosts of the network (Network::pairs): of RDMA their rates are fixed, of
// TCP they follow ir/analysis/tcp_rate.h, a step per round trip in which something flows.
#ifndef PREPOST_SIM_NETWORK_LONG_PATHS_H_
#define PREPOST_SIM_NETWORK_LONG_PATHS_H_

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/analysis/network.h"
#include "ir/analysis/tcp_rate.h"
#include "sim/clock/clock.h"
#include "sim/network/fluid_network.h"
#include "sim/runs/group.h"

namespace prepost::sim {

/// `network` and a pair for every two hosts between which `groups` send over such a path. Of RDMA,
/// go back N: of its path's capacity 1 / (1 + loss x BDP / MTU) is left; without loss it needs no
/// pair. Of TCP what the path carries, which LongPaths then changes. What a pair has already stays
/// its limit.
Network WithLongPairs(Network network, std::span<const Group> groups, bool is_tcp);

/// The connections of TCP. One thread.
class LongPaths final : private TimeHandler {
 public:
  /// Of the pairs of `network`, which `fluid` is made of. Both outlive it. `seed` makes other
  /// losses.
  LongPaths(const Network& network, uint64_t seed, Clock* clock, FluidNetwork* fluid);
  LongPaths(const LongPaths&) = delete;
  LongPaths& operator=(const LongPaths&) = delete;

  /// A message begins to flow, or has ended.
  void Begin(NodeId from, NodeId to);
  void End(NodeId from, NodeId to);

 private:
  struct Connection {
    NodeId from;
    NodeId to;
    double most = 0;     ///< bytes/s, whatever windows allow
    uint32_t route = 0;  ///< which connections share it
    uint32_t flows = 0;
    bool is_used = false;  ///< something flowed since the last step
    bool is_due = false;
    TcpStreams streams;
  };
  void OnTime(const TimedEvent& event) override;
  Connection* Find(NodeId from, NodeId to);
  void Schedule(Connection* it);

  Clock* clock_;
  FluidNetwork* fluid_;
  std::vector<Connection> connections_;
  std::unordered_map<uint64_t, size_t> place_of_;
  std::vector<double> windows_;  // by route, bytes of connections that are in use
};

}  // namespace prepost::sim

#endif  // PREPOST_SIM_NETWORK_LONG_PATHS_H_
