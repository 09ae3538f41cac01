// SPDX-License-Identifier: Apache-2.0
//
// Messages are ordered by edges: the later one is in a later round or, by a weak edge, in no
// earlier one. Weak edges come from combines, which are the last of their round: two ranks that
// exchange what they have of a block send it before they combine, and so either message is not
// before the other. Messages on a cycle of weak edges share a round; any other edge on a cycle is a
// deadlock.
//
// The edges of a block at a rank. Its receives have their effect one after the other: where the
// text does not order them, in the order of the rank. A send waits for some of them; what it
// carries is without the others, so these come behind it.
//
// Which receives a send waits for is known by channel, of those that take and those that combine
// each, as the last one. In a block's receives each channel's stand in their order, or there is a
// deadlock. So those that a send waits for are few prefixes, and whether they are, together, all
// from one place to another is seen from their sizes and their last ones, without going through
// them.
#include "ir/exchange/goal_rounds.h"

#include <fmt/format.h>
#include <llvm/ADT/DenseMap.h>

#include <algorithm>
#include <compare>
#include <utility>
#include <vector>

#include "ir/exchange/goal_graph.h"
#include "ir/planned_transfers.h"

namespace prepost {
namespace {

class RoundFinder {
 public:
  RoundFinder(const GoalFile& file, std::span<const GoalRange> ranges, GoalMessages* messages,
              const GoalBudget& budget)
      : file_(file), ranges_(ranges), out_(*messages), cost_max_(budget.CostMax(file.ops.size())) {}

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

  /// A message that touches a block at a rank.
  struct Touch {
    uint32_t rank, block;
    uint32_t place;  // of its effect in the order of the rank
    uint32_t message;

    std::pair<uint32_t, uint32_t> where() const { return {rank, block}; }
    friend auto operator<=>(const Touch&, const Touch&) = default;
  };

  /// Of each block at each rank.
  Status AddBlocks() {
    std::vector<Touch> sends, receives;
    for (uint32_t m = 0; m < ranges_.size(); ++m) {
      for (uint32_t i = 0; i < ranges_[m].count; ++i) {
        const uint32_t block = ranges_[m].block + i;
        sends.push_back({SenderOf(m), block, out_.place[out_.messages[m].send], m});
        receives.push_back({ReceiverOf(m), block, out_.place[EffectOf(m)], m});
      }
    }
    std::ranges::sort(sends);
    std::ranges::sort(receives);
    auto send = sends.begin();
    for (auto first = receives.begin(); first != receives.end();) {
      const auto where = first->where();
      receives_.clear();
      for (; first != receives.end() && first->where() == where; ++first)
        receives_.push_back(first->message);
      for (size_t i = 1; i < receives_.size(); ++i)
        edges_.later.emplace_back(receives_[i - 1], receives_[i]);
      while (send != sends.end() && send->where() < where) ++send;
      const bool is_sent = send != sends.end() && send->where() == where;
      const bool has_order = is_sent && GroupReceives();
      for (; send != sends.end() && send->where() == where; ++send) {
        if (has_order) PREPOST_RETURN_IF_ERROR(AddSend(send->message, where.second));
      }
    }
    for (auto* edges : {&edges_.later, &edges_.weak}) {
      std::ranges::sort(*edges);
      edges->erase(std::unique(edges->begin(), edges->end()), edges->end());
    }
    return {};
  }

  /// A sender, and whether what it sends is combined.
  using Source = std::pair<uint32_t, bool>;
  Source SourceOf(uint32_t m) const { return {SenderOf(m), IsCombined(m)}; }

  /// Of a block's receives at a rank, those of one source.
  struct Group {
    Source source;
    uint32_t begin = 0, end = 0;  // in `grouped_`
  };
  struct Grouped {
    uint32_t message;
    uint32_t place;  // in `receives_`
  };

  /// False: some channel's receives are not in its order, which is a deadlock.
  bool GroupReceives() {
    grouped_.clear();
    groups_.clear();
    for (uint32_t i = 0; i < receives_.size(); ++i)
      grouped_.push_back({.message = receives_[i], .place = i});
    std::ranges::sort(grouped_, {}, [&](const Grouped& it) {
      return std::pair(SourceOf(it.message), it.message);
    });
    for (uint32_t i = 0; i < grouped_.size(); ++i) {
      const Source source = SourceOf(grouped_[i].message);
      if (groups_.empty() || groups_.back().source != source) {
        groups_.push_back({.source = source, .begin = i});
      } else if (grouped_[i].place < grouped_[i - 1].place) {
        return false;
      }
      groups_.back().end = i + 1;
    }
    return true;
  }

  /// The receives that a send waits for: of each group those before `end`.
  struct Prefix {
    const Group* group;
    uint32_t end;
  };

  /// Finds `prefixes_` of `send`.
  Status FindPrefixes(uint32_t send) {
    const std::vector<uint32_t>& received = out_.received[send];
    out_.steps += 1 + std::min(received.size(), groups_.size());
    if (out_.steps > cost_max_) return file_.At(out_.messages[send].send, kGoalTooMuch);
    prefixes_.clear();
    const auto add = [&](const Group& group, uint32_t last) {
      const auto behind =
          std::upper_bound(grouped_.begin() + group.begin, grouped_.begin() + group.end, last,
                           [](uint32_t m, const Grouped& it) { return m < it.message; });
      const auto end = static_cast<uint32_t>(behind - grouped_.begin());
      if (end != group.begin) prefixes_.push_back({.group = &group, .end = end});
    };
    if (groups_.size() <= received.size()) {
      for (const Group& group : groups_) {
        const auto last = std::ranges::lower_bound(received, group.source, {},
                                                   [&](uint32_t m) { return SourceOf(m); });
        if (last != received.end() && SourceOf(*last) == group.source) add(group, *last);
      }
    } else {
      for (const uint32_t last : received) {
        const auto group = std::ranges::lower_bound(groups_, SourceOf(last), {}, &Group::source);
        if (group != groups_.end() && group->source == SourceOf(last)) add(*group, last);
      }
    }
    return {};
  }

  /// Of `send` and the receives of `block` at its rank.
  Status AddSend(uint32_t send, uint32_t block) {
    PREPOST_RETURN_IF_ERROR(FindPrefixes(send));
    // What was there before a recv that takes is gone, whether the send requires it or not.
    uint32_t begin = 0;
    for (const Prefix& it : prefixes_) {
      if (!it.group->source.second) begin = std::max(begin, grouped_[it.end - 1].place);
    }
    uint32_t waited = 0, end = begin;  // how many from `begin` on, and behind the last of them
    for (const Prefix& it : prefixes_) {
      const auto first = std::lower_bound(
          grouped_.begin() + it.group->begin, grouped_.begin() + it.end, begin,
          [](const Grouped& grouped, uint32_t place) { return grouped.place < place; });
      waited += it.end - static_cast<uint32_t>(first - grouped_.begin());
      end = std::max(end, grouped_[it.end - 1].place + 1);
    }
    if (waited != end - begin) return Skips(send, block, begin);
    if (end == receives_.size()) return {};
    const uint32_t next = receives_[end];
    (IsCombined(next) ? edges_.weak : edges_.later).emplace_back(send, next);
    return {};
  }

  /// Some of the receives from `begin` on that `send` waits for come behind others.
  Status Skips(uint32_t send, uint32_t block, uint32_t begin) const {
    std::vector<bool> is_waited(receives_.size());
    for (const Prefix& it : prefixes_) {
      for (uint32_t i = it.group->begin; i < it.end; ++i) is_waited[grouped_[i].place] = true;
    }
    const auto first = std::find(is_waited.begin() + begin, is_waited.end(), false);
    const auto other = std::find(first, is_waited.end(), true);
    const auto line_of = [&](auto at) {
      return op(EffectOf(receives_[static_cast<size_t>(at - is_waited.begin())])).line;
    };
    return file_.At(
        out_.messages[send].send,
        fmt::format("this send of block {} requires what comes in line {}, and not what "
                    "comes in line {}, which its rank has before",
                    block, line_of(other), line_of(first)));
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
    std::vector<PlannedTransfer> transfers;
    for (uint32_t m = 0; m < out_.messages.size(); ++m) {
      transfers.push_back(
          {.round = out_.messages[m].round, .from = SenderOf(m), .to = ReceiverOf(m)});
    }
    out_.ports = PortsOf(transfers).ports;
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
  const uint64_t cost_max_;
  // Of the block and the rank in hand.
  std::vector<uint32_t> receives_;  // in their order
  std::vector<Grouped> grouped_;    // by source, then in their order
  std::vector<Group> groups_;       // by source
  std::vector<Prefix> prefixes_;    // of the send in hand
  uint32_t stuck_ = 0;              // of a Place() that failed
};

}  // namespace

Status FindGoalRounds(const GoalFile& file, std::span<const GoalRange> ranges,
                      GoalMessages* messages, const GoalBudget& budget) {
  return RoundFinder(file, ranges, messages, budget).Run();
}

}  // namespace prepost
