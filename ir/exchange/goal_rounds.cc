// SPDX-License-Identifier: Apache-2.0
//
// Messages are ordered by edges: the later one is in a later round or, by a weak edge, in no earlier
// one. Weak edges come from combines, which are the last of their round: two ranks that exchange what
// they have of a block send it before they combine, and so either message is not before the other.
// Messages on a cycle of weak edges share a round; any other edge on a cycle is a deadlock.
//
// The edges of a block at a rank. Its receives have their effect one after the other: where the text
// does not order them, in the order of the rank. A send waits for some of them; what it carries is
// without the others, so these come behind it.
#include "ir/exchange/goal_rounds.h"

#include <fmt/format.h>
#include <llvm/ADT/DenseMap.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/exchange/goal_graph.h"

namespace prepost {
namespace {

class RoundFinder {
 public:
  RoundFinder(const GoalFile& file, std::span<const GoalRange> ranges, GoalMessages* messages)
      : file_(file), ranges_(ranges), out_(*messages) {}

  Status Run() {
    AddNeeded();
    PREPOST_RETURN_IF_ERROR(AddBlocks());
    const Edges needed = edges_;
    AddPorts([&](uint32_t m) { return out_.place[out_.messages[m].send]; },
             [&](uint32_t m) { return out_.place[EffectOf(m)]; });
    if (Place()) return {};
    edges_ = needed;
    if (!Place()) return Deadlock();
    // The ranks' orders block each other: one that all requirements allow takes their place.
    std::vector<uint32_t> order = out_.order, place(order.size());
    for (uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    AddPorts([&](uint32_t m) { return place[m]; }, [&](uint32_t m) { return place[m]; });
    if (Place()) {
      out_.order = std::move(order);
      return {};
    }
    edges_ = needed;  // messages that must share a round need more ports
    PREPOST_CHECK(Place());
    CountPorts();
    return {};
  }

 private:
  using Edge = std::pair<uint32_t, uint32_t>;  // messages, the earlier first
  struct Edges {
    std::vector<Edge> later;  ///< in a later round
    std::vector<Edge> weak;   ///< not in an earlier one
  };

  const GoalOp& op(uint32_t index) const { return file_.ops[index]; }
  uint32_t SenderOf(uint32_t m) const { return op(out_.messages[m].send).rank; }
  uint32_t ReceiverOf(uint32_t m) const { return op(out_.messages[m].recv).rank; }
  bool IsCombined(uint32_t m) const {
    return !out_.calc_of.empty() && out_.calc_of[m] != kGoalNone;
  }
  /// The op by which a message's receiver has it.
  uint32_t EffectOf(uint32_t m) const {
    return IsCombined(m) ? out_.calc_of[m] : out_.messages[m].recv;
  }

  /// What a send or a combine waits for, and each channel's order.
  void AddNeeded() {
    for (uint32_t m = 0; m < out_.messages.size(); ++m) {
      for (const uint32_t before : out_.waits[m]) edges_.later.emplace_back(before, m);
      if (!IsCombined(m)) continue;
      for (const uint32_t before : out_.combine_waits[m]) {
        const bool is_send = SenderOf(before) == ReceiverOf(m);
        (is_send ? edges_.weak : edges_.later).emplace_back(before, m);
      }
    }
    llvm::DenseMap<std::pair<uint32_t, uint32_t>, uint32_t> last;
    for (uint32_t m = 0; m < out_.messages.size(); ++m) {
      const auto [before, is_first] = last.try_emplace({SenderOf(m), ReceiverOf(m)}, m);
      if (!is_first) edges_.later.emplace_back(before->second, m);
      before->second = m;
    }
  }

  /// Of each block at each rank.
  Status AddBlocks() {
    struct Touch {
      uint32_t rank, block;
      bool is_send;
      uint32_t place;  // of its effect in the order of the rank
      uint32_t message;

      auto operator<=>(const Touch&) const = default;
    };
    std::vector<Touch> touches;
    for (uint32_t m = 0; m < ranges_.size(); ++m) {
      for (uint32_t i = 0; i < ranges_[m].count; ++i) {
        const uint32_t block = ranges_[m].block + i;
        touches.push_back({SenderOf(m), block, true, out_.place[out_.messages[m].send], m});
        touches.push_back({ReceiverOf(m), block, false, out_.place[EffectOf(m)], m});
      }
    }
    std::ranges::sort(touches);
    const auto is_same = [](const Touch& a, const Touch& b) {
      return a.rank == b.rank && a.block == b.block;
    };
    for (auto first = touches.begin(); first != touches.end();) {
      const auto end =
          std::find_if(first, touches.end(), [&](const Touch& it) { return !is_same(it, *first); });
      receives_.clear();
      auto it = first;
      for (; it != end && !it->is_send; ++it) receives_.push_back(it->message);
      for (size_t i = 1; i < receives_.size(); ++i)
        edges_.later.emplace_back(receives_[i - 1], receives_[i]);
      for (; it != end; ++it) PREPOST_RETURN_IF_ERROR(AddSend(it->message, first->block));
      first = end;
    }
    for (auto* edges : {&edges_.later, &edges_.weak}) {
      std::ranges::sort(*edges);
      edges->erase(std::unique(edges->begin(), edges->end()), edges->end());
    }
    return {};
  }

  /// Of `send` and the receives of `block` at its rank.
  Status AddSend(uint32_t send, uint32_t block) {
    // Each channel's receives of a kind complete in their order, so the last one tells of others.
    waited_.clear();
    for (const uint32_t before : out_.waits[send]) {
      if (ReceiverOf(before) == SenderOf(send))
        waited_[{SenderOf(before), IsCombined(before)}] = before;
    }
    const auto is_waited = [&](uint32_t m) {
      const auto last = waited_.find({SenderOf(m), IsCombined(m)});
      return last != waited_.end() && m <= last->second;
    };
    // What was there before a recv that takes is gone, whether the send requires it or not.
    auto begin = receives_.begin();
    for (auto it = begin; it != receives_.end(); ++it) {
      if (!IsCombined(*it) && is_waited(*it)) begin = it;
    }
    const auto first = std::find_if_not(begin, receives_.end(), is_waited);
    if (first == receives_.end()) return {};
    const auto other = std::find_if(first, receives_.end(), is_waited);
    if (other == receives_.end()) {
      (IsCombined(*first) ? edges_.weak : edges_.later).emplace_back(send, *first);
      return {};
    }
    return file_.At(
        out_.messages[send].send,
        fmt::format("this send of block {} requires what comes in line {}, and not what "
                    "comes in line {}, which its rank has before",
                    block, op(EffectOf(*other)).line, op(EffectOf(*first)).line));
  }

  /// Adds, for each rank, its sends and its receives one after the other, by their places.
  template <typename SendPlace, typename RecvPlace>
  void AddPorts(SendPlace send_place, RecvPlace recv_place) {
    std::vector<uint32_t> order(out_.messages.size());
    const auto chain = [&](auto key) {
      for (uint32_t m = 0; m < order.size(); ++m) order[m] = m;
      std::ranges::sort(order, {}, [&](uint32_t m) { return std::pair(key(m), m); });
      for (size_t i = 1; i < order.size(); ++i) {
        if (key(order[i - 1]).first == key(order[i]).first)
          edges_.later.emplace_back(order[i - 1], order[i]);
      }
    };
    chain([&](uint32_t m) { return std::pair(SenderOf(m), send_place(m)); });
    chain([&](uint32_t m) { return std::pair(ReceiverOf(m), recv_place(m)); });
  }

  /// The earliest rounds, and an order that goes with them. False: there are none.
  bool Place() {
    const auto size = static_cast<uint32_t>(out_.messages.size());
    std::vector<uint32_t> group(size);  // of messages that share a round, by its first message
    for (uint32_t m = 0; m < size; ++m) group[m] = m;
    if (!edges_.weak.empty()) {
      std::vector<Edge> all = edges_.later;
      all.insert(all.end(), edges_.weak.begin(), edges_.weak.end());
      const std::vector<uint32_t> cycle = GoalCyclesOf(GoalGraph(size, all));
      std::vector<uint32_t> first(size, kGoalNone);
      for (uint32_t m = 0; m < size; ++m) {
        if (first[cycle[m]] == kGoalNone) first[cycle[m]] = m;
        group[m] = first[cycle[m]];
      }
    }
    std::vector<Edge> between;
    std::vector<bool> is_later;
    for (const auto* edges : {&edges_.later, &edges_.weak}) {
      for (const auto& [from, to] : *edges) {
        if (group[from] != group[to]) {
          between.emplace_back(group[from], group[to]);
        } else if (edges == &edges_.later) {
          stuck_ = to;
          return false;
        }
      }
    }
    const std::vector<uint32_t> order = GoalOrderOf(GoalGraph(size, between));
    if (order.size() != size) {
      std::vector<bool> goes(size);
      for (const uint32_t m : order) goes[m] = true;
      stuck_ = static_cast<uint32_t>(std::ranges::find(goes, false) - goes.begin());
      return false;
    }
    SetRounds(group, order);
    return true;
  }

  void SetRounds(const std::vector<uint32_t>& group, const std::vector<uint32_t>& order) {
    const auto size = static_cast<uint32_t>(group.size());
    const GoalGraph later(size, Between(edges_.later, group));
    const GoalGraph weak(size, Between(edges_.weak, group));
    std::vector<uint32_t> round(size);
    for (const uint32_t m : order) {
      for (const uint32_t next : later.Successors(m))
        round[next] = std::max(round[next], round[m] + 1);
      for (const uint32_t next : weak.Successors(m)) round[next] = std::max(round[next], round[m]);
    }
    for (uint32_t m = 0; m < size; ++m) out_.messages[m].round = round[group[m]];
    if (edges_.weak.empty()) {
      out_.order = order;
      return;
    }
    std::vector<uint32_t> place(size);
    for (uint32_t i = 0; i < size; ++i) place[order[i]] = i;
    out_.order.resize(size);
    for (uint32_t m = 0; m < size; ++m) out_.order[m] = m;
    std::ranges::sort(out_.order, {}, [&](uint32_t m) { return std::pair(place[group[m]], m); });
  }

  static std::vector<Edge> Between(const std::vector<Edge>& edges,
                                   const std::vector<uint32_t>& group) {
    std::vector<Edge> between;
    between.reserve(edges.size());
    for (const auto& [from, to] : edges) {
      if (group[from] != group[to]) between.emplace_back(group[from], group[to]);
    }
    return between;
  }

  void CountPorts() {
    std::map<std::tuple<uint32_t, uint32_t, bool>, uint32_t> uses;  // rank, round, whether it sends
    for (uint32_t m = 0; m < out_.messages.size(); ++m) {
      const uint32_t round = out_.messages[m].round;
      for (const auto& [rank, is_send] :
           {std::pair(SenderOf(m), true), std::pair(ReceiverOf(m), false)})
        out_.ports = std::max(out_.ports, ++uses[{rank, round, is_send}]);
    }
  }

  Status Deadlock() const {
    return file_.At(out_.messages[stuck_].send,
                    ranges_.empty()
                        ? "this send never starts: it waits, over other ranks, for itself"
                        : "no round is left for this send: it waits, over other ranks, for itself, "
                          "or it carries a block without what its rank has received of it by then");
  }

  const GoalFile& file_;
  const std::span<const GoalRange> ranges_;
  GoalMessages& out_;
  Edges edges_;
  std::vector<uint32_t> receives_;                        // of the block and the rank in hand
  std::map<std::pair<uint32_t, bool>, uint32_t> waited_;  // of the send in hand: (peer, combined)
  uint32_t stuck_ = 0;                                    // of a Place() that failed
};

}  // namespace

Status FindGoalRounds(const GoalFile& file, std::span<const GoalRange> ranges,
                      GoalMessages* messages) {
  return RoundFinder(file, ranges, messages).Run();
}

}  // namespace prepost
