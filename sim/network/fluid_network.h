// SPDX-License-Identifier: Apache-2.0
//
// FluidNetwork: messages on a modelled network as fluids: each flows at one rate over all links of
// its path at a time, and links are shared max-min fairly, as ir/analysis/network.h describes them:
// every node's port out and in, both ways together where that has a limit, every rack's links up
// and down, the core or the links between racks, and paths between two nodes that have a rate of
// their own, which may change. It knows nothing of NICs or plans; who starts a flow asks when the
// next one may end.
//
// Exact: rates and remaining bytes are integers, and what is computed of several flows does not
// depend on the order in which they were started. So numbering nodes differently permutes times.
#ifndef PREPOST_SIM_NETWORK_FLUID_NETWORK_H_
#define PREPOST_SIM_NETWORK_FLUID_NETWORK_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/analysis/network.h"
#include "ir/base/status.h"
#include "ir/ids.h"
#include "sim/clock/time_queue.h"
#include "sim/nics/time.h"

namespace prepost::sim {

/// What one link has carried.
struct LinkUse {
  uint64_t bytes = 0;    ///< of flows that have ended
  Picoseconds busy = 0;  ///< what these take at all of its rate: of a run's time the part in use
};

struct UsedLink {
  Resource resource;
  LinkUse use;
};

/// One thread. Times given to it never fall.
class FluidNetwork {
 public:
  /// Errors (kRejected): what CheckNetwork() finds; rates that are too far apart, or too high, to
  /// be counted exactly.
  static Result<FluidNetwork> Make(const Network& network,
                                   PortSharing sharing = PortSharing::kPerQp);

  /// One way, of nodes of the network; 0 from a node to itself.
  Picoseconds Latency(NodeId from, NodeId to) const;
  /// What flows from one node to another.
  struct Message {
    NodeId from;
    NodeId to;
    uint64_t bytes = 0;     ///< > 0
    uint32_t queue = 0;     ///< of the sender's: of those ready at one time the lowest is first
    void* owner = nullptr;  ///< handed back; not null
  };
  /// It is ready to flow now. `queue` matters with kFifo only.
  void Start(Picoseconds now, const Message& message);
  /// When flows may end, if none starts before: never after the next one does, though
  /// it may be before. > now. To be called when all that happens now has happened; kNever: no flow
  /// ends.
  Picoseconds NextEvent(Picoseconds now);
  /// From now on so many bytes/s, of which there may be less than one unit of rate, flow from one
  /// node to another, of which the network has a pair.
  void SetPairRate(Picoseconds now, NodeId from, NodeId to, double bytes_per_second);
  /// Takes flows that end now out and puts their owners into `owners`, as many as there is room
  /// for, in the order in which they have started; returns how many. Times may not pass over
  /// NextEvent() before.
  size_t TakeEnded(Picoseconds now, std::span<void*> owners);

  /// The same time without what has changed since the last call.
  Picoseconds next_end() const {
    return ended_taken_ < ended_.size() ? ended_at_ : ends_.next_at();
  }
  size_t flows() const { return flows_.size() - free_flows_.size(); }
  /// All that it has, by kind and index.
  std::vector<Resource> resources() const;
  LinkUse UseOf(Resource resource) const;
  /// Those that carried something, by kind and index, but for pairs whose rates have changed.
  std::vector<UsedLink> UsedLinks() const;
  /// Errors (kRejected): so many flows have been on a link at once that a share of it would have
  /// been less than one unit of rate. They have got more than their share since.
  Status CheckShares() const;
  /// What `bytes` take on the links from one node to another, without others; kNever: longer than
  /// can be shown, or over a pair whose rate has changed.
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

  /// Ports and racks' links both ways, a route, a pair.
  static constexpr size_t kPathLinks = 7 + kRouteLinksMax;
  static constexpr int kRecalls = 32;              ///< of a component, before it is found anew
  static constexpr Rate kRateMax = Rate{1} << 62;  ///< of links that are never full
  // What stands in place of the link that holds a flow up.
  static constexpr LinkIndex kAtLimit = 0xffffffff;    ///< none does
  static constexpr LinkIndex kUnsettled = 0xfffffffe;  ///< it has no rate yet

  struct Path {
    uint32_t count = 0;
    std::array<LinkIndex, kPathLinks> links = {};
    std::span<const LinkIndex> all() const { return std::span(links).first(count); }
  };
  struct Flow {
    void* owner = nullptr;
    Rate limit = 0;  ///< what it gets alone
    /// Held up by a link: it ends when the link's work is this. Else what was left at `since`.
    Work finish = 0;
    Picoseconds since = 0;
    LinkIndex bottleneck = kUnsettled;
    uint32_t generation = 0;       ///< of its own end in ends_: others are out of date
    uint32_t ending_position = 0;  ///< in its bottleneck's endings
    uint32_t filled = 0;           ///< the filling that has fixed it
    bool may_reach_limit = false;  ///< no link as slow as its limit needs sharing
    Path path;
    std::array<uint32_t, kPathLinks> positions = {};  ///< in the hops of its links
    uint64_t bytes = 0;
    uint64_t number = 0;  ///< in the order in which flows have started
  };
  struct alignas(64) Link {
    Rate rate = 0;
    Rate demand = 0;  ///< sum of its flows' limits
    std::vector<Hop> hops;
    uint32_t limited = 0;       ///< flows that may reach their limit
    bool is_tight = false;      ///< when last settled, demand was more than the rate
    bool is_changed = false;    ///< in changed_links_
    bool has_rates = false;     ///< several, one after the other: SetPairRate()
    bool in_component = false;  ///< while rates are computed
    uint32_t component = 0;     ///< the last one that it was found in
    uint64_t bytes = 0;         ///< of flows that have ended

    bool IsFull() const { return demand > rate; }
    bool NeedsSharing() const { return is_tight || IsFull(); }
  };
  struct Ending {
    Work finish = 0;
    FlowIndex flow = 0;
    friend auto operator<=>(const Ending&, const Ending&) = default;
  };
  /// What the flows have in common that one link holds up: all get its share.
  struct Level {
    Rate share = 0;         ///< 0: it holds up nobody
    Work work = 0;          ///< what each of them would have got up to `since`, had it been there
    Picoseconds since = 0;  ///< from when on `work` grows by `share`
    Work scheduled = -1;    ///< the finish that stands in ends_; -1: none
    uint32_t generation = 0;
    std::vector<Ending> endings;  ///< a heap, first end first

    Work WorkAt(Picoseconds now) const { return work + static_cast<Work>(share) * (now - since); }
  };
  /// A link while rates are computed.
  struct Filling {
    Rate residual = 0;
    Rate share = 0;        ///< at which it has been found full; 0: it has not
    uint32_t unfixed = 0;  ///< flows

    /// At least one unit: a flow must end. See CheckShares().
    Rate Share() const { return std::max<Rate>(residual / unfixed, 1); }
  };
  struct End {
    uint32_t index = 0;
    uint32_t generation = 0;
    bool is_link = false;  ///< of the first flow that the link holds up
  };
  struct Candidate {
    Rate share = 0;
    LinkIndex link = 0;
  };
  /// Ready, behind others on its port.
  struct Waiting {
    Picoseconds ready = 0;
    uint32_t queue = 0;
    uint64_t number = 0;  ///< of the flow
    FlowIndex flow = 0;
    friend auto operator<=>(const Waiting&, const Waiting&) = default;
  };
  /// One that sends one message at a time.
  struct Port {
    bool is_taken = false;
    bool is_changed = false;       ///< in changed_ports_
    std::vector<Waiting> waiting;  ///< a heap, the next one first
  };
  struct Move {
    FlowIndex flow = 0;
    LinkIndex to = kAtLimit;
  };

  FluidNetwork() = default;
  Status TakeLatencies(const Network& network);
  Path PathOf(NodeId from, NodeId to) const;
  Rate LimitOf(const Path& path) const;
  Work WorkOf(uint64_t bytes) const;
  LinkIndex IndexOf(Resource resource) const;
  static uint64_t PairKey(NodeId from, NodeId to) { return uint64_t{from.value} << 32 | to.value; }
  static FlowIndex FlowOf(Hop hop) { return static_cast<FlowIndex>(hop / kPathLinks); }
  FlowIndex NewFlow();
  void NotePort(LinkIndex index);
  void TakePorts();
  void ChangeDemand(LinkIndex index, Rate by);
  void Enter(FlowIndex index);
  void Leave(FlowIndex index);
  bool MayReachLimit(const Flow& flow) const;
  void SetMayReachLimit(Flow& flow, bool may);

  // fluid_ends.cc
  void FindEnded(Picoseconds now);
  void AddEnding(Level& level, const Ending& ending);
  void RemoveEnding(Level& level, uint32_t position);
  void SiftUp(Level& level, size_t position);
  void SiftDown(Level& level, size_t position);
  void PutEnding(Level& level, size_t position, const Ending& ending);
  void SetApart(FlowIndex index, Picoseconds now);
  void HoldUp(FlowIndex index, LinkIndex link, Picoseconds now);
  void SetShare(Level& level, Rate share, Picoseconds now);
  void ScheduleLink(LinkIndex index, Picoseconds now);
  Picoseconds EndOf(Work left, Rate rate, Picoseconds now) const;

  // fluid_sharing.cc
  void Settle(Picoseconds now);
  void FindComponent();
  bool RecallComponent();
  void Connect(size_t first);
  void AddLink(LinkIndex index);
  void OpenComponent();
  void ShareComponent();
  Rate NextLevel();
  void AddCandidate(LinkIndex index);
  void ShareLevel(Rate share);
  void Fix(Flow& flow, Rate rate);
  void ApplyShares(Picoseconds now);

  uint32_t nodes_ = 0;
  uint32_t racks_ = 0;
  bool has_duplex_ = false;  ///< some port has a limit both ways
  int rate_bits_ = 0;
  Picoseconds rack_latency_ = 0;
  Picoseconds core_latency_ = 0;
  uint32_t links_count_ = 0;                         // between racks
  std::vector<uint32_t> route_begin_, route_links_;  // as in Network
  std::vector<Picoseconds> route_latency_;           // by route
  std::vector<uint32_t> rack_of_;                    // by node
  /// Ports out by node, ports in by node, links up by rack, links down by rack, the core, links
  /// between racks, pairs, ports both ways by node if `has_duplex_`.
  std::vector<Link> links_;
  std::vector<Level> levels_;                           // by link
  std::unordered_map<uint64_t, LinkIndex> pair_links_;  // by PairKey()
  std::vector<Flow> flows_;
  std::vector<FlowIndex> free_flows_;
  TimeQueue<End> ends_;
  std::optional<LinkIndex> crowded_;  // see CheckShares()
  size_t sharing_links_ = 0;          // those that need sharing
  uint64_t started_ = 0;              // flows
  std::vector<FlowIndex> ended_;      // at ended_at_, in the order in which they have started
  size_t ended_taken_ = 0;            // from the front of ended_
  Picoseconds ended_at_ = 0;

  std::vector<Port> ports_;  // by node, with kFifo; else none

  std::vector<LinkIndex> last_component_;  // links as it was found last, and still need sharing
  uint32_t component_ = 0;                 // its number
  int recalls_left_ = 0;

  // Since the last Settle().
  std::vector<LinkIndex> changed_ports_;
  std::vector<FlowIndex> new_flows_;
  std::vector<LinkIndex> changed_links_;
  // Scratch of Settle().
  std::vector<LinkIndex> component_links_;
  std::vector<Filling> fillings_;      // by link
  uint32_t filling_ = 0;               // number of the filling at hand
  std::vector<FlowIndex> limits_;      // flows that may reach their limits, lowest first
  std::vector<Candidate> candidates_;  // a heap, smallest share first
  std::vector<LinkIndex> level_;       // full at the same share
  std::vector<Move> moves_;            // who is held up elsewhere now
};

}  // namespace prepost::sim

#endif  // PREPOST_SIM_NETWORK_FLUID_NETWORK_H_
