// SPDX-License-Identifier: Apache-2.0
#include "ir/exchange/goal_messages.h"

#include <fmt/format.h>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallVector.h>

#include <algorithm>
#include <queue>
#include <tuple>

#include "ir/count.h"
#include "ir/exchange/goal_writer.h"

namespace prepost {
namespace {

/// Successors of vertices, as CSR; edges are added once, all of them.
struct Graph {
  Graph(uint32_t size, const std::vector<std::pair<uint32_t, uint32_t>>& edges) : begin(size + 1) {
    for (const auto& edge : edges) ++begin[edge.first + 1];
    for (uint32_t v = 0; v < size; ++v) begin[v + 1] += begin[v];
    to.resize(edges.size());
    std::vector<size_t> next(begin.begin(), begin.end() - 1);
    for (const auto& [from, target] : edges) to[next[from]++] = target;
  }
  std::span<const uint32_t> Successors(uint32_t v) const {
    return std::span(to).subspan(begin[v], begin[v + 1] - begin[v]);
  }
  uint32_t size() const { return static_cast<uint32_t>(begin.size() - 1); }

  std::vector<size_t> begin;
  std::vector<uint32_t> to;
};

/// A topological order, the smallest vertex first where there is a choice; what is on a cycle or
/// behind one is missing.
std::vector<uint32_t> TopologicalOrder(const Graph& graph) {
  std::vector<uint32_t> waits(graph.size());
  for (uint32_t target : graph.to) ++waits[target];
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  for (uint32_t v = 0; v < graph.size(); ++v) {
    if (waits[v] == 0) ready.push(v);
  }
  std::vector<uint32_t> order;
  while (!ready.empty()) {
    const uint32_t v = ready.top();
    ready.pop();
    order.push_back(v);
    for (uint32_t target : graph.Successors(v)) {
      if (--waits[target] == 0) ready.push(target);
    }
  }
  return order;
}

class MessageFinder {
 public:
  explicit MessageFinder(const GoalFile& file) : file_(file) {}

  Result<GoalMessages> Run() {
    PREPOST_RETURN_IF_ERROR(OrderRanks());
    PREPOST_RETURN_IF_ERROR(MatchMessages());
    PREPOST_RETURN_IF_ERROR(FindWaits());
    PREPOST_RETURN_IF_ERROR(FindRounds());
    return std::move(out_);
  }

 private:
  using Kind = GoalOp::Kind;

  const GoalOp& op(uint32_t index) const { return file_.ops[index]; }
  bool IsData(uint32_t index) const { return out_.message_of[index] != kGoalNone; }

  // Step 1.

  Status OrderRanks() {
    const auto ops = static_cast<uint32_t>(file_.ops.size());
    std::vector<std::pair<uint32_t, uint32_t>> edges;
    for (const GoalOrder& order : file_.orders) edges.emplace_back(order.earlier, order.later);
    out_.sequence = TopologicalOrder(Graph(ops, edges));
    out_.place.assign(ops, kGoalNone);
    for (uint32_t i = 0; i < out_.sequence.size(); ++i) out_.place[out_.sequence[i]] = i;
    if (out_.sequence.size() == ops) return {};
    const auto stuck = std::ranges::find(out_.place, kGoalNone) - out_.place.begin();
    return file_.At(static_cast<uint32_t>(stuck),
                    "this op waits for itself: its requirements are a cycle");
  }

  // Step 2.

  /// By (from, to, tag), then in the order of the rank.
  using RouteKey = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>;
  std::vector<RouteKey> RoutesOf(Kind kind) const {
    std::vector<RouteKey> routes;
    for (uint32_t i = 0; i < file_.ops.size(); ++i) {
      const GoalOp& it = op(i);
      if (it.kind != kind) continue;
      const bool is_send = kind == Kind::kSend;
      routes.emplace_back(is_send ? it.rank : it.peer, is_send ? it.peer : it.rank, it.tag,
                          out_.place[i], i);
    }
    std::ranges::sort(routes);
    return routes;
  }

  Status MatchMessages() {
    const std::vector<RouteKey> sends = RoutesOf(Kind::kSend);
    const std::vector<RouteKey> recvs = RoutesOf(Kind::kRecv);
    const auto route = [](const RouteKey& key) {
      return std::tuple(std::get<0>(key), std::get<1>(key), std::get<2>(key));
    };
    std::vector<GoalMessage> matched;
    for (size_t i = 0; i < std::max(sends.size(), recvs.size()); ++i) {
      const bool no_send =
          i >= sends.size() || (i < recvs.size() && route(recvs[i]) < route(sends[i]));
      const bool no_recv =
          i >= recvs.size() || (i < sends.size() && route(sends[i]) < route(recvs[i]));
      if (no_send || no_recv) {
        const auto& [from, to, tag, place, index] = no_send ? recvs[i] : sends[i];
        return file_.At(
            index,
            fmt::format("this {} of {} to {} with tag {} has no {} that matches it",
                        no_send ? "recv" : "send", from, to, tag, no_send ? "send" : "recv"));
      }
      const uint32_t send = std::get<4>(sends[i]);
      const uint32_t recv = std::get<4>(recvs[i]);
      if (op(send).bytes != op(recv).bytes) {
        return file_.At(recv, fmt::format("this recv takes {}, its send in line {} has {}",
                                          Count(op(recv).bytes, "byte"), op(send).line,
                                          Count(op(send).bytes, "byte")));
      }
      matched.push_back({.send = send, .recv = recv});
    }
    KeepData(matched);
    return {};
  }

  /// Leaves out synchronisation and numbers the rest.
  void KeepData(const std::vector<GoalMessage>& matched) {
    const auto is_credit = [&](const GoalMessage& m) {
      return op(m.send).tag >= kGoalCreditTag && op(m.send).bytes <= kGoalCreditBytes;
    };
    const bool has_bytes = std::ranges::any_of(
        matched, [&](const GoalMessage& m) { return !is_credit(m) && op(m.send).bytes > 0; });
    uint64_t left_out = 0;
    for (const GoalMessage& m : matched) {
      if (is_credit(m) || (has_bytes && op(m.send).bytes == 0)) {
        ++left_out;
      } else {
        out_.messages.push_back(m);
      }
    }
    std::ranges::sort(out_.messages, {}, [&](const GoalMessage& m) {
      return std::pair(op(m.send).rank, out_.place[m.send]);
    });
    out_.message_of.assign(file_.ops.size(), kGoalNone);
    for (uint32_t m = 0; m < out_.messages.size(); ++m)
      out_.message_of[out_.messages[m].send] = out_.message_of[out_.messages[m].recv] = m;
    if (left_out != 0) {
      out_.notes.push_back(fmt::format("{} without data left out: a plan makes its own credits",
                                       Count(left_out, "message")));
    }
  }

  // Step 4.

  /// A channel's end at one rank: the peer, and whether it is sends.
  using End = std::pair<uint32_t, bool>;
  /// The last message of each channel's end that has completed; few per op, so a sorted list.
  using Clock = llvm::SmallVector<std::pair<End, uint32_t>, 4>;

  End EndOf(uint32_t index) const { return {op(index).peer, op(index).kind == Kind::kSend}; }

  /// Messages of one channel are numbered in its order, so the larger number is the later one.
  static void Join(Clock& clock, End end, uint32_t message) {
    const auto at = std::ranges::lower_bound(clock, end, {}, &std::pair<End, uint32_t>::first);
    if (at != clock.end() && at->first == end) {
      at->second = std::max(at->second, message);
    } else {
      clock.insert(at, {end, message});
    }
  }

  Status FindWaits() {
    waits_.resize(file_.ops.size());
    uint64_t entries = 0;
    for (const uint32_t index : out_.sequence) {
      Clock clock;
      for (const GoalOrder& order : file_.OrdersOf(index)) {
        const bool is_done_send = !order.is_start && op(order.earlier).kind == Kind::kSend;
        if (!order.is_start && IsData(order.earlier))
          Join(clock, EndOf(order.earlier), out_.message_of[order.earlier]);
        if (is_done_send && IsData(order.earlier)) continue;  // it waited for the rest itself
        for (const auto& [end, message] : waits_[order.earlier]) Join(clock, end, message);
        CountLost(index, order);
      }
      entries += clock.size();
      if (entries > kWaitsMax * (file_.ops.size() + kWaitsMax))
        return file_.At(index, "too much that waits for too many peers at once");
      waits_[index] = std::move(clock);
    }
    NoteLost();
    for (const GoalMessage& m : out_.messages) {
      std::vector<uint32_t>& before = out_.waits.emplace_back();
      for (const auto& [end, message] : waits_[m.send]) before.push_back(message);
    }
    return {};
  }

  void NoteLost() {
    if (lost_starts_ != 0) {
      out_.notes.push_back(
          fmt::format("{} between ops of different peers: a plan orders starts only "
                      "along a channel; what the earlier one waited for is kept",
                      Count(lost_starts_, "irequires")));
    }
    if (waiting_recvs_ != 0) {
      out_.notes.push_back(
          fmt::format("{} that waits: a plan's receives may be posted at once; what "
                      "follows them still waits",
                      Count(waiting_recvs_, "recv")));
    }
  }

  void CountLost(uint32_t index, const GoalOrder& order) {
    if (!IsData(index) || !IsData(order.earlier)) return;
    if (op(index).kind == Kind::kRecv) {
      ++waiting_recvs_;
    } else if (order.is_start && EndOf(index) != EndOf(order.earlier)) {
      ++lost_starts_;
    }
  }

  // Step 5.

  /// Message to message: what a send waits for, and each channel's order.
  std::vector<std::pair<uint32_t, uint32_t>> NeededOrders() const {
    std::vector<std::pair<uint32_t, uint32_t>> edges;
    for (uint32_t m = 0; m < out_.messages.size(); ++m) {
      for (const uint32_t before : out_.waits[m]) edges.emplace_back(before, m);
    }
    llvm::DenseMap<std::pair<uint32_t, uint32_t>, uint32_t> last;
    for (uint32_t m = 0; m < out_.messages.size(); ++m) {
      const auto [before, is_first] =
          last.try_emplace({op(out_.messages[m].send).rank, op(out_.messages[m].recv).rank}, m);
      if (!is_first) edges.emplace_back(before->second, m);
      before->second = m;
    }
    return edges;
  }

  /// Adds, for each rank, its sends and its receives one after the other, in the order of
  /// `rank_of`.
  template <typename SendPlace, typename RecvPlace>
  void AddPorts(SendPlace send_place, RecvPlace recv_place,
                std::vector<std::pair<uint32_t, uint32_t>>* edges) const {
    std::vector<uint32_t> order(out_.messages.size());
    const auto chain = [&](auto key) {
      for (uint32_t m = 0; m < order.size(); ++m) order[m] = m;
      std::ranges::sort(order, {}, key);
      for (size_t i = 1; i < order.size(); ++i) {
        if (key(order[i - 1]).first == key(order[i]).first)
          edges->emplace_back(order[i - 1], order[i]);
      }
    };
    chain([&](uint32_t m) { return std::pair(op(out_.messages[m].send).rank, send_place(m)); });
    chain([&](uint32_t m) { return std::pair(op(out_.messages[m].recv).rank, recv_place(m)); });
  }

  Status FindRounds() {
    const auto size = static_cast<uint32_t>(out_.messages.size());
    const std::vector<std::pair<uint32_t, uint32_t>> needed = NeededOrders();
    auto edges = needed;
    AddPorts([&](uint32_t m) { return out_.place[out_.messages[m].send]; },
             [&](uint32_t m) { return out_.place[out_.messages[m].recv]; }, &edges);
    Graph graph(size, edges);
    out_.order = TopologicalOrder(graph);
    if (out_.order.size() != size) {
      out_.order = TopologicalOrder(Graph(size, needed));
      if (out_.order.size() != size) return Deadlock();
      std::vector<uint32_t> place(size);
      for (uint32_t i = 0; i < size; ++i) place[out_.order[i]] = i;
      edges = needed;
      AddPorts([&](uint32_t m) { return place[m]; }, [&](uint32_t m) { return place[m]; }, &edges);
      graph = Graph(size, edges);
    }
    for (const uint32_t m : out_.order) {
      for (const uint32_t later : graph.Successors(m))
        out_.messages[later].round =
            std::max(out_.messages[later].round, out_.messages[m].round + 1);
    }
    return {};
  }

  Status Deadlock() const {
    std::vector<bool> goes(out_.messages.size());
    for (const uint32_t m : out_.order) goes[m] = true;
    const auto stuck = std::ranges::find(goes, false) - goes.begin();
    const uint32_t send = out_.messages[static_cast<size_t>(stuck)].send;
    return file_.At(send, "this send never starts: it waits, over other ranks, for itself");
  }

  /// Peers that an op waits for at once, on average; files that need more are made to need them.
  static constexpr uint64_t kWaitsMax = 1024;

  const GoalFile& file_;
  GoalMessages out_;
  std::vector<Clock> waits_;  // op -> what has completed when it starts
  uint64_t lost_starts_ = 0;
  uint64_t waiting_recvs_ = 0;
};

}  // namespace

Result<GoalMessages> FindGoalMessages(const GoalFile& file) { return MessageFinder(file).Run(); }

}  // namespace prepost
