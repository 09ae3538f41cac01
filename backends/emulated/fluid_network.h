// SPDX-License-Identifier: Apache-2.0
//
// FluidNetwork: messages on a modelled network as fluids: each flows at one rate over all links of
// its path at a time, and links are shared max-min fairly, as ir/network.h describes them: every
// node's port out and in (full duplex), every rack's links up and down, the core, and paths between
// two nodes that have a rate of their own. It knows nothing of NICs or plans; who starts a flow asks when the next one may end.
//
// Exact: rates and remaining bytes are integers, and what is computed of several flows does not
// depend on the order in which they were started. So numbering nodes differently permutes times.
#ifndef PREPOST_BACKENDS_EMULATED_FLUID_NETWORK_H_
#define PREPOST_BACKENDS_EMULATED_FLUID_NETWORK_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "prepost/backends/emulated/time_queue.h"
#include "prepost/backends/emulated/virtual_time.h"
#include "prepost/ir/ids.h"
#include "prepost/ir/network.h"
#include "prepost/ir/status.h"

namespace prepost::emulated {

/// How a port is shared: every flow, that is every queue pair that sends, has the same right to
/// each link that it passes, and gets more only of what others cannot use.
inline constexpr const char* kPortSharing = "max-min fair per queue pair";

/// What one link has carried.
struct LinkUse {
  uint64_t bytes = 0;    ///< of flows that have ended
  Picoseconds busy = 0;  ///< some flow was on it
};

/// One thread. Times given to it never fall.
class FluidNetwork {
 public:
  /// Errors (kRejected): what CheckNetwork() finds; rates that are too far apart, or too high, to be
  /// counted exactly.
  static Result<FluidNetwork> Make(const Network& network);

  /// One way, of nodes of the network; 0 from a node to itself.
  Picoseconds Latency(NodeId from, NodeId to) const;
  /// A flow of `bytes` > 0 from one node to another, which starts now. `owner` is told back.
  void Start(Picoseconds now, NodeId from, NodeId to, uint64_t bytes, void* owner);
  /// When to look for flows that end, if none starts before: never after the next one does, though
  /// it may be before. > now. To be called when all that happens now has happened; kNever: no flow
  /// ends.
  Picoseconds NextEvent(Picoseconds now);
  /// Takes flows that end now out and puts their owners into `owners`, as many as there is room for;
  /// returns how many. Times may not pass over NextEvent() before.
  size_t TakeEnded(Picoseconds now, std::span<void*> owners);

  /// The same time without looking at what has changed since it was told.
  Picoseconds next_end() const { return ends_.next_at(); }
  size_t flows() const { return flows_.size() - free_flows_.size(); }
  /// All that it has, by kind and index.
  std::vector<Resource> resources() const;
  /// Busy times up to now.
  LinkUse UseOf(Resource resource, Picoseconds now) const;
  /// Errors (kRejected): so many flows have been on a link at once that a share of it would have
  /// been less than one unit of rate. They have got more than their share since.
  Status CheckShares() const;
  /// What `bytes` take on the links from one node to another, without others; kNever: longer than
  /// can be shown.
  Picoseconds TimeAlone(NodeId from, NodeId to, uint64_t bytes) const;

 private:
  using FlowIndex = uint32_t;
  using LinkIndex = uint32_t;
  /// Position of a link in a flow's path, and the flow: flow * kPathLinks + position.
  using Hop = uint32_t;
  /// Bytes per second, times 2^rate_bits_.
  using Rate = int64_t;
  /// A rate times picoseconds.
  __extension__ using Work = __int128;

  static constexpr size_t kPathLinks = 6;
  static constexpr Hop kNoHop = 0xffffffff;
  static constexpr Rate kRateMax = Rate{1} << 62;  ///< of links that are never full

  struct Path {
    std::array<LinkIndex, kPathLinks> links = {};
    uint32_t count = 0;
    std::span<const LinkIndex> all() const { return std::span(links).first(count); }
  };
  struct Neighbours {
    Hop next = kNoHop;
    Hop previous = kNoHop;
  };
  struct Flow {
    void* owner = nullptr;
    Rate limit = 0;  ///< what it gets alone
    Work left = 0;
    Rate rate = 0;
    Picoseconds since = 0;    ///< from when on `left` goes down by `rate`
    uint32_t generation = 0;  ///< of its end in ends_: others are out of date
    bool in_component = false;
    bool is_fixed = false;  ///< its new rate is known
    Path path;
    uint64_t bytes = 0;
    std::array<Neighbours, kPathLinks> hops;  ///< in the lists of flows of the links
    Rate new_rate = 0;
  };
  struct alignas(64) Link {
    Rate rate = 0;
    Rate demand = 0;  ///< sum of its flows' limits
    uint32_t flows = 0;
    Hop first = kNoHop;
    Picoseconds busy_since = 0;
    LinkUse use;
    Rate residual = 0;        ///< while rates are computed
    uint32_t unfixed = 0;     ///< the same: flows
    bool is_tight = false;    ///< when last settled, demand was more than the rate
    bool is_changed = false;  ///< in changed_links_
    bool in_component = false;

    bool NeedsSharing() const { return is_tight || demand > rate; }
    /// At least one unit: a flow must end. See CheckShares().
    Rate Share() const { return std::max<Rate>(residual / unfixed, 1); }
  };
  struct End {
    FlowIndex flow = 0;
    uint32_t generation = 0;
  };
  struct Candidate {
    Rate share = 0;
    LinkIndex link = 0;
  };

  FluidNetwork() = default;
  Path PathOf(NodeId from, NodeId to) const;
  Rate LimitOf(const Path& path) const;
  Work WorkOf(uint64_t bytes) const;
  LinkIndex IndexOf(Resource resource) const;
  static uint64_t PairKey(NodeId from, NodeId to) { return uint64_t{from.value} << 32 | to.value; }
  FlowIndex NewFlow();
  void NoteChange(LinkIndex index);
  void Enter(FlowIndex index, Picoseconds now);
  void Leave(FlowIndex index, Picoseconds now);
  void ScheduleEnd(FlowIndex index, Picoseconds now);

  // fluid_sharing.cc
  void Settle(Picoseconds now);
  void FindComponent();
  void AddFlow(FlowIndex index);
  void AddLink(LinkIndex index);
  void ShareComponent();
  void ShareLevel();
  void Fix(FlowIndex index, Rate rate);
  void ApplyShares(Picoseconds now);

  uint32_t nodes_ = 0;
  uint32_t racks_ = 0;
  int rate_bits_ = 0;
  Picoseconds rack_latency_ = 0;
  Picoseconds core_latency_ = 0;
  std::vector<uint32_t> rack_of_;  // by node
  /// Ports out by node, ports in by node, links up by rack, links down by rack, the core, pairs.
  std::vector<Link> links_;
  std::unordered_map<uint64_t, LinkIndex> pair_links_;  // by PairKey()
  std::vector<Flow> flows_;
  std::vector<FlowIndex> free_flows_;
  TimeQueue<End> ends_;
  std::optional<LinkIndex> crowded_;  // see CheckShares()

  // Since the last Settle().
  std::vector<FlowIndex> new_flows_;
  std::vector<LinkIndex> changed_links_;
  // Scratch of Settle().
  std::vector<FlowIndex> component_flows_;
  std::vector<LinkIndex> component_links_;
  std::vector<Candidate> candidates_;  // a heap, smallest share first
  std::vector<LinkIndex> level_;
};

}  // namespace prepost::emulated

#endif  // PREPOST_BACKENDS_EMULATED_FLUID_NETWORK_H_
