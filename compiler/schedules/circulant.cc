// SPDX-License-Identifier: Apache-2.0
//
// Circulant: as few rounds as the binomial pipeline for every n, with the same simple pattern at
// every node, whatever n is: no twins, no special last round.
//
// Let q = ceil(log2 n), and skips s[q] = n, s[i] = ceil(s[i+1] / 2), so s[0] = 1. In round t every
// node v sends to v + s[j] and receives from v - s[j] (mod n), j the round's phase, which goes
// through 0..q-1 over and over; nobody sends to the root. The graph of all these edges is a
// circulant one, which looks the same from every node.
//
// What is sent is decided by two lists of q numbers per node, R (receive) and S (send). A node
// receives q blocks in each period of q rounds; R[j] says which: R[j] >= 0 is a block of this
// period, R[j] < 0 one of the period before it. Each node gets exactly one block of the period in
// it (its base block, the phase in which the path from the root along skips s[e1] + s[e2] + ..,
// largest first, ends) and the others one period later. In numbers, with x = -(k-1) mod q rounds
// that are left out at the start (so that the last one ends a period), i = t + x, j = i mod q,
// base = q floor(i / q) - x:
//     receives block R[j] + base, sends block S[j] + base; none if that is < 0, k-1 if it is more.
// The receiver's list decides: S[j] of v is R[j] of v + s[j]; the root sends S[j] = j, a new block
// in every round.
//
// R of node v, by search. A block that reaches v has come along a path of skips of which no two
// are the same, first the ones of one period and so on. Counting the root once per period passed
// (at -n, 0, n, ..), R[j] is the skip by which the root sends the block that reaches v in phase j.
// Paths to n + v are tried by depth first search over the skips, larger first, each with its
// first skip used once in all: the k-th path found is the one whose last step, s[k], comes latest.
// The own base block is kept out of the search, and stands where the search gives the skip s[q].
//
// What holds (and is tested): R of v is {-q..-1} without b - q, with b, the base block, added; a
// node sends in phase j what it had by then: S[j] = b - q or one of R[0..j-1].
//
// Rounds: k - 1 + q, the least possible in the one-port model (Bar-Noy and Kipnis 1994).
//
// Worked example, 4 nodes, 2 blocks (q = 2, s = 1 2 4, x = 1):
//   round 0: 0>2:0   1: 0>1:1 2>3:0   2: 0>2:1 1>3:1 3>1:0
//
// Cost: O(log^2 n) per node once, then O(1) per question. Source: J. L. Traeff, arXiv 2205.10072,
// 2312.11236 and 2407.18004.
#include "compiler/schedules/circulant_graph.h"
#include "compiler/schedules/rolled_schedule.h"

namespace prepost {
namespace {

class Circulant final : public RolledSchedule {
 public:
  std::string_view name() const override { return "circulant"; }
  std::string_view summary() const override {
    return "every node sends along the same log2 n distances in turn; k-1+ceil(log2 n) rounds";
  }
  LinearInBlocks RoundsOf(RolledExtent extent) const override {
    return {.per_block = 1, .constant = int64_t{CirculantGraph(extent.nodes).phases()} - 1};
  }
  Fan FanOf(RolledExtent extent) const override {
    return {.in = extent.nodes > 2, .out = extent.nodes > 2};
  }

  std::vector<Segment> SegmentsOf(RolledExtent extent, uint32_t node) const override {
    const CirculantGraph graph(extent.nodes);
    const CirculantGraph::List sends = graph.Sends(node);
    const CirculantGraph::List receives = node == 0 ? CirculantGraph::List{} : graph.Receives(node);
    // Round t plays phase j = (t + x) mod q, x = -(k - 1), and base is t - j.
    Segment segment{
        .to = RoundsOf(extent), .phase = {.per_block = -1, .constant = 1}, .clamps = true};
    for (uint32_t j = 0; j < graph.phases(); ++j) {
      const uint32_t to = graph.After(node, j);
      RolledSlot& slot = segment.slots.emplace_back();
      if (to != 0) slot.send = With(to, sends[j], j);
      if (node != 0) slot.recv = With(graph.Before(node, j), receives[j], j);
    }
    return {segment};
  }

 private:
  static RolledTransfer With(uint32_t peer, int64_t listed, uint32_t phase) {
    return {.peer = NodeId(peer), .offset = {.constant = listed - phase}};
  }
};

}  // namespace

const Schedule& CirculantSchedule() {
  static const Circulant schedule;
  return schedule;
}

}  // namespace prepost
