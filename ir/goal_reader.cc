// SPDX-License-Identifier: Apache-2.0
//
// GOAL says which messages go where and what waits for what, but not what is in them. The steps to
// a plan:
//
// 1. Each rank's ops are put in an order that its requirements allow, the file's where possible.
// 2. Messages: the i-th send from s to d with a tag is taken by the i-th recv of that tag.
//    Synchronisation carries nothing: messages of 0 bytes, and those that goal_writer.h writes for
//    credits. It is left out; what it waited for at its rank still counts for what waits for it.
// 3. Blocks. By tag, if every rank but the root receives each tag once: a tag is a block. Else by
//    flow: a send forwards the receive that it requires, directly or through calcs; if that is none
//    or several, the one receive behind all that it requires; else, if the rank sends as many
//    messages to that peer as it receives in all, the i-th forwards the i-th. So each message of
//    the root starts a tree. The trees are dealt, in order, each to the first block of its size that
//    none of its ranks has yet.
// 4. What a send waits for: its requirements, seen through calcs, synchronisation, receives
//    (a plan's receives wait for nothing) and irequires (what started had its requirements met), as
//    the last op of each channel, since channels keep their order.
// 5. Rounds: the longest chain of messages that wait for each other, where each rank sends, and
//    receives, one at a time in its order of step 1. If those orders block each other, an order
//    that all requirements allow takes their place. Ops are numbered by round.
//
// Example, rank 1 of a chain of 3, two blocks, all tags 0:
//   l1: recv 10b from 0 tag 0        l3: send 10b to 2 tag 0   l3 requires l1: forwards l1's
//   l2: recv 10b from 0 tag 0        l4: send 10b to 2 tag 0   l4 requires l2: forwards l2's
// The root's two sends reach ranks 1 and 2 both, so they are blocks 0 and 1.
#include "prepost/ir/goal_reader.h"

#include <fmt/format.h>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/SmallVector.h>

#include <algorithm>
#include <charconv>
#include <queue>
#include <tuple>

#include "prepost/ir/count.h"
#include "prepost/ir/goal_text.h"
#include "prepost/ir/goal_writer.h"
#include "prepost/version.h"

namespace prepost {
namespace {

constexpr uint32_t kNone = 0xffffffff;

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

/// A send and the recv that takes it, both indices of GoalFile::ops. Messages are numbered in the
/// order of their senders and, of one sender, in its order.
struct GoalMessage {
  uint32_t send;
  uint32_t recv;
  uint32_t cause = kNone;  ///< the message that it forwards
  uint32_t block = kNone;
  uint32_t round = 0;
};

/// Whether ops lead to no receive, to one, or to several.
struct Origin {
  uint32_t recv = kNone;
  bool several = false;

  void Add(Origin other) {
    several |= other.several || (recv != kNone && other.recv != kNone && recv != other.recv);
    if (recv == kNone) recv = other.recv;
  }
  bool is_one() const { return recv != kNone && !several; }
};

class GoalImporter {
 public:
  GoalImporter(const GoalFile& file, const std::string& name, const GoalOptions& options)
      : file_(file), name_(name), options_(options) {}

  Result<GoalPlan> Run() {
    PREPOST_RETURN_IF_ERROR(OrderRanks());
    PREPOST_RETURN_IF_ERROR(MatchMessages());
    PREPOST_RETURN_IF_ERROR(FindRoot());
    PREPOST_RETURN_IF_ERROR(FindWaits());
    PREPOST_RETURN_IF_ERROR(FindRounds());
    if (!BlocksByTag()) PREPOST_RETURN_IF_ERROR(BlocksByFlow());
    PREPOST_RETURN_IF_ERROR(FindMessage());
    return Build();
  }

 private:
  using Kind = GoalOp::Kind;

  const GoalOp& op(uint32_t index) const { return file_.ops[index]; }
  Status At(uint32_t index, std::string message) const {
    return Rejected(std::move(message), fmt::format("{}:{}", name_, op(index).line));
  }
  Status Whole(std::string message) const { return Rejected(std::move(message), name_); }
  bool IsData(uint32_t index) const { return message_of_[index] != kNone; }

  // Step 1.

  Status OrderRanks() {
    const auto ops = static_cast<uint32_t>(file_.ops.size());
    std::vector<std::pair<uint32_t, uint32_t>> edges;
    for (const GoalOrder& order : file_.orders) edges.emplace_back(order.earlier, order.later);
    sequence_ = TopologicalOrder(Graph(ops, edges));
    place_.assign(ops, kNone);
    for (uint32_t i = 0; i < sequence_.size(); ++i) place_[sequence_[i]] = i;
    if (sequence_.size() == ops) return {};
    const auto stuck = std::ranges::find(place_, kNone) - place_.begin();
    return At(static_cast<uint32_t>(stuck),
              "this op waits for itself: its requirements are a cycle");
  }

  /// The orders in which an op is the later one.
  std::span<const GoalOrder> OrdersOf(uint32_t later) const {
    const auto range = std::ranges::equal_range(file_.orders, later, {}, &GoalOrder::later);
    return {range.begin(), range.end()};
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
                          place_[i], i);
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
        return At(index,
                  fmt::format("this {} of {} to {} with tag {} has no {} that matches it",
                              no_send ? "recv" : "send", from, to, tag, no_send ? "send" : "recv"));
      }
      const uint32_t send = std::get<4>(sends[i]);
      const uint32_t recv = std::get<4>(recvs[i]);
      if (op(send).bytes != op(recv).bytes) {
        return At(recv, fmt::format("this recv takes {}, its send in line {} has {}",
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
        messages_.push_back(m);
      }
    }
    std::ranges::sort(messages_, {}, [&](const GoalMessage& m) {
      return std::pair(op(m.send).rank, place_[m.send]);
    });
    message_of_.assign(file_.ops.size(), kNone);
    for (uint32_t m = 0; m < messages_.size(); ++m)
      message_of_[messages_[m].send] = message_of_[messages_[m].recv] = m;
    if (left_out != 0) {
      notes_.push_back(fmt::format("{} without data left out: a plan makes its own credits",
                                   Count(left_out, "message")));
    }
  }

  Status FindRoot() {
    const auto ranks = static_cast<uint32_t>(file_.ranks.size());
    if (options_.root && *options_.root >= ranks)
      return Whole(
          fmt::format("root {} is out of range, the ranks are 0 to {}", *options_.root, ranks - 1));
    std::vector<bool> receives(ranks);
    for (const GoalMessage& m : messages_) receives[op(m.recv).rank] = true;
    std::vector<uint32_t> roots;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      if (!receives[rank]) roots.push_back(rank);
    }
    if (options_.root) {
      root_ = *options_.root;
    } else if (roots.size() == 1) {
      root_ = roots.front();
    } else if (roots.empty()) {
      return Whole(
          "every rank receives, so this is no broadcast; if it is one, --root names its root");
    } else {
      return Whole(
          fmt::format("ranks {} and {} both receive nothing: which is the root of a "
                      "broadcast? --root names it",
                      roots[0], roots[1]));
    }
    return {};
  }

  // Step 4: before the blocks, as deadlocks are found in it.

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
    for (const uint32_t index : sequence_) {
      Clock clock;
      for (const GoalOrder& order : OrdersOf(index)) {
        const bool is_done_send = !order.is_start && op(order.earlier).kind == Kind::kSend;
        if (!order.is_start && IsData(order.earlier))
          Join(clock, EndOf(order.earlier), message_of_[order.earlier]);
        if (is_done_send && IsData(order.earlier)) continue;  // it waited for the rest itself
        for (const auto& [end, message] : waits_[order.earlier]) Join(clock, end, message);
        CountLost(index, order);
      }
      entries += clock.size();
      if (entries > kWaitsMax * (file_.ops.size() + kWaitsMax))
        return At(index, "too much that waits for too many peers at once");
      waits_[index] = std::move(clock);
    }
    NoteLost();
    return {};
  }

  void NoteLost() {
    if (lost_starts_ != 0) {
      notes_.push_back(
          fmt::format("{} between ops of different peers: a plan orders starts only "
                      "along a channel; what the earlier one waited for is kept",
                      Count(lost_starts_, "irequires")));
    }
    if (waiting_recvs_ != 0) {
      notes_.push_back(
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
    for (uint32_t m = 0; m < messages_.size(); ++m) {
      for (const auto& [end, before] : waits_[messages_[m].send]) edges.emplace_back(before, m);
    }
    llvm::DenseMap<std::pair<uint32_t, uint32_t>, uint32_t> last;
    for (uint32_t m = 0; m < messages_.size(); ++m) {
      const auto [before, is_first] =
          last.try_emplace({op(messages_[m].send).rank, op(messages_[m].recv).rank}, m);
      if (!is_first) edges.emplace_back(before->second, m);
      before->second = m;
    }
    return edges;
  }

  /// Adds, for each rank, its sends and its receives one after the other, in the order of `rank_of`.
  template <typename SendPlace, typename RecvPlace>
  void AddPorts(SendPlace send_place, RecvPlace recv_place,
                std::vector<std::pair<uint32_t, uint32_t>>* edges) const {
    std::vector<uint32_t> order(messages_.size());
    const auto chain = [&](auto key) {
      for (uint32_t m = 0; m < order.size(); ++m) order[m] = m;
      std::ranges::sort(order, {}, key);
      for (size_t i = 1; i < order.size(); ++i) {
        if (key(order[i - 1]).first == key(order[i]).first)
          edges->emplace_back(order[i - 1], order[i]);
      }
    };
    chain([&](uint32_t m) { return std::pair(op(messages_[m].send).rank, send_place(m)); });
    chain([&](uint32_t m) { return std::pair(op(messages_[m].recv).rank, recv_place(m)); });
  }

  Status FindRounds() {
    const auto size = static_cast<uint32_t>(messages_.size());
    const std::vector<std::pair<uint32_t, uint32_t>> needed = NeededOrders();
    auto edges = needed;
    AddPorts([&](uint32_t m) { return place_[messages_[m].send]; },
             [&](uint32_t m) { return place_[messages_[m].recv]; }, &edges);
    Graph graph(size, edges);
    message_order_ = TopologicalOrder(graph);
    if (message_order_.size() != size) {
      message_order_ = TopologicalOrder(Graph(size, needed));
      if (message_order_.size() != size) return Deadlock();
      std::vector<uint32_t> place(size);
      for (uint32_t i = 0; i < size; ++i) place[message_order_[i]] = i;
      edges = needed;
      AddPorts([&](uint32_t m) { return place[m]; }, [&](uint32_t m) { return place[m]; }, &edges);
      graph = Graph(size, edges);
    }
    for (const uint32_t m : message_order_) {
      for (const uint32_t later : graph.Successors(m))
        messages_[later].round = std::max(messages_[later].round, messages_[m].round + 1);
    }
    return {};
  }

  Status Deadlock() const {
    std::vector<bool> goes(messages_.size());
    for (const uint32_t m : message_order_) goes[m] = true;
    const auto stuck = std::ranges::find(goes, false) - goes.begin();
    const uint32_t send = messages_[static_cast<size_t>(stuck)].send;
    return At(send, "this send never starts: it waits, over other ranks, for itself");
  }

  // Step 3.

  /// True when tags are blocks; they are then numbered in the order of the tags.
  bool BlocksByTag() {
    std::vector<uint32_t> tags;
    for (const GoalMessage& m : messages_) tags.push_back(op(m.send).tag);
    std::ranges::sort(tags);
    tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
    if (messages_.size() != uint64_t{tags.size()} * (file_.ranks.size() - 1)) return false;
    llvm::DenseSet<std::pair<uint32_t, uint32_t>> seen;  // (rank, tag)
    std::vector<uint64_t> bytes(tags.size(), UINT64_MAX);
    for (GoalMessage& m : messages_) {
      const GoalOp& recv = op(m.recv);
      m.block = static_cast<uint32_t>(std::ranges::lower_bound(tags, recv.tag) - tags.begin());
      if (bytes[m.block] == UINT64_MAX) bytes[m.block] = recv.bytes;
      const bool is_new = seen.insert({recv.rank, m.block}).second;
      if (recv.rank == root_ || !is_new || bytes[m.block] != recv.bytes) return false;
    }
    first_of_block_.assign(tags.size(), kNone);
    for (uint32_t m = 0; m < messages_.size(); ++m) {
      uint32_t& first = first_of_block_[messages_[m].block];
      if (first == kNone) first = m;
    }
    return true;
  }

  Status BlocksByFlow() {
    FindOrigins();
    llvm::DenseMap<uint32_t, llvm::SmallVector<uint32_t, 4>>
        forwarded;  // message -> those it causes
    for (const uint32_t m : message_order_) {
      PREPOST_RETURN_IF_ERROR(FindCause(m));
      if (messages_[m].cause != kNone) forwarded[messages_[m].cause].push_back(m);
    }
    std::vector<uint32_t> tree;
    for (uint32_t m = 0; m < messages_.size(); ++m) {
      if (messages_[m].cause != kNone) continue;
      tree.assign(1, m);
      for (size_t i = 0; i < tree.size(); ++i) {
        const auto next = forwarded.find(tree[i]);
        if (next != forwarded.end())
          tree.insert(tree.end(), next->second.begin(), next->second.end());
      }
      PREPOST_RETURN_IF_ERROR(Deal(tree));
    }
    return {};
  }

  /// The receives that each op's requirements lead to: through calcs, and through anything.
  void FindOrigins() {
    near_.assign(file_.ops.size(), {});
    far_.assign(file_.ops.size(), {});
    for (const uint32_t index : sequence_) {
      for (const GoalOrder& order : OrdersOf(index)) {
        const Origin itself{.recv = order.earlier};
        const bool is_recv = op(order.earlier).kind == Kind::kRecv && IsData(order.earlier);
        const bool is_calc = op(order.earlier).kind == Kind::kCalc;
        if (!order.is_start && is_recv) near_[index].Add(itself);
        if (!order.is_start && is_calc) near_[index].Add(near_[order.earlier]);
        far_[index].Add(!order.is_start && is_recv ? itself : far_[order.earlier]);
      }
    }
    // In the order of each rank, as sequence_ is.
    for (const uint32_t index : sequence_) {
      if (!IsData(index)) continue;
      const GoalOp& it = op(index);
      if (it.kind == Kind::kRecv) {
        received_[it.rank].push_back(index);
      } else {
        sent_[{it.rank, it.peer}].push_back(index);
      }
    }
  }

  Status FindCause(uint32_t m) {
    const uint32_t send = messages_[m].send;
    if (op(send).rank == root_) return {};
    uint32_t recv = kNone;
    if (near_[send].is_one()) {
      recv = near_[send].recv;
    } else if (near_[send].recv == kNone && far_[send].is_one()) {
      recv = far_[send].recv;
    } else {
      recv = ByOrder(send);
    }
    if (recv == kNone) return NoCause(send);
    const uint32_t cause = message_of_[recv];
    if (op(recv).bytes != op(send).bytes) {
      return At(send, fmt::format("this send has {}, what it forwards, in line {}, has {}: a "
                                  "broadcast hands on whole blocks",
                                  Count(op(send).bytes, "byte"), op(recv).line,
                                  Count(op(recv).bytes, "byte")));
    }
    messages_[m].cause = cause;
    return {};
  }

  /// The i-th receive of the rank for its i-th send to that peer, if there are as many.
  uint32_t ByOrder(uint32_t send) const {
    const auto received = received_.find(op(send).rank);
    const auto sent = sent_.find({op(send).rank, op(send).peer});
    if (received == received_.end() || received->second.size() != sent->second.size()) return kNone;
    const auto at = std::ranges::lower_bound(sent->second, place_[send], {},
                                             [&](uint32_t index) { return place_[index]; });
    const uint32_t recv = received->second[static_cast<size_t>(at - sent->second.begin())];
    return messages_[message_of_[recv]].round < messages_[message_of_[send]].round ? recv : kNone;
  }

  Status NoCause(uint32_t send) const {
    if (far_[send].recv == kNone && !near_[send].several) {
      return At(send,
                fmt::format("what does rank {} forward here? it is not the root ({}), and this "
                            "send requires no recv",
                            op(send).rank, root_));
    }
    return At(send,
              fmt::format("which block does this send forward? it requires the recv in line {} "
                          "and others; a tag per block, or a single required recv, tells",
                          op(far_[send].recv).line));
  }

  /// Gives a tree of messages that carry the same its block.
  Status Deal(std::span<const uint32_t> tree) {
    const uint64_t bytes = op(messages_[tree.front()].send).bytes;
    uint32_t block = 0;
    for (const uint32_t m : tree) block = std::max(block, lacks_[op(messages_[m].recv).rank]);
    for (;; ++block) {
      if (block == first_of_block_.size()) {
        first_of_block_.push_back(tree.front());
        break;
      }
      dealing_steps_ += tree.size();
      if (dealing_steps_ > kDealingStepsMax * (messages_.size() + 1)) {
        return At(messages_[tree.front()].send,
                  "too many ways to deal the root's messages out to blocks; a tag per block tells");
      }
      const auto has_it = [&](uint32_t m) {
        return has_.contains({op(messages_[m].recv).rank, block});
      };
      const uint64_t others = op(messages_[first_of_block_[block]].send).bytes;
      if (others == bytes && std::ranges::none_of(tree, has_it)) break;
    }
    for (const uint32_t m : tree) {
      const uint32_t rank = op(messages_[m].recv).rank;
      messages_[m].block = block;
      has_.insert({rank, block});
      uint32_t& lacks = lacks_[rank];
      while (has_.contains({rank, lacks})) ++lacks;
    }
    return {};
  }

  uint64_t BytesOf(uint32_t block) const {
    return op(messages_[first_of_block_[block]].send).bytes;
  }
  Status AtBlock(uint32_t block, std::string message) const {
    return At(messages_[first_of_block_[block]].send, std::move(message));
  }

  /// The size of a full block: what the user says, or that of the largest.
  Result<uint64_t> FullBlock() const {
    uint32_t longest = 0;
    for (uint32_t b = 0; b < first_of_block_.size(); ++b) {
      if (BytesOf(b) > BytesOf(longest)) longest = b;
    }
    if (first_of_block_.empty()) return options_.block_bytes.value_or(1);
    if (BytesOf(longest) == 0 && first_of_block_.size() > 1)
      return AtBlock(longest,
                     fmt::format("{} blocks of 0 bytes are no message", first_of_block_.size()));
    const uint64_t bytes = std::max<uint64_t>(BytesOf(longest), 1);
    const uint64_t full = options_.block_bytes.value_or(bytes);
    if (full < bytes || (full > bytes && first_of_block_.size() > 1)) {
      return AtBlock(longest, fmt::format("the largest block, of {}, does not agree with a block "
                                          "size of {}",
                                          Count(bytes, "byte"), full));
    }
    return full;
  }

  /// The message's size from the blocks' sizes; a short block becomes the last.
  Status FindMessage() {
    const auto blocks = static_cast<uint32_t>(first_of_block_.size());
    const Result<uint64_t> full = FullBlock();
    if (!full.ok()) return full.status();
    uint64_t bytes = 0;
    uint32_t shorter = kNone;
    for (uint32_t b = 0; b < blocks; ++b) {
      if (__builtin_add_overflow(bytes, BytesOf(b), &bytes))
        return AtBlock(b, "the blocks add up to more than 2^64 bytes");
      if (BytesOf(b) == *full) continue;
      if (shorter != kNone) {
        return AtBlock(b, fmt::format("a block of {}, one of {} in line {} and full ones of {}: "
                                      "only the last block of a message may be short",
                                      Count(BytesOf(b), "byte"), BytesOf(shorter),
                                      op(messages_[first_of_block_[shorter]].send).line, *full));
      }
      shorter = b;
    }
    if (shorter != kNone) MoveToEnd(shorter);
    const Result<Message> message = MakeMessage(bytes, *full);
    if (!message.ok()) return Whole(message.status().message());
    PREPOST_CHECK(message->blocks == std::max(blocks, 1u));
    message_ = *message;
    return {};
  }

  void MoveToEnd(uint32_t block) {
    const auto last = static_cast<uint32_t>(first_of_block_.size()) - 1;
    for (GoalMessage& m : messages_) {
      m.block = m.block == block ? last : m.block > block ? m.block - 1 : m.block;
    }
  }

  // The plan.

  /// An op on its way into the plan: its place in the plan's order of messages, and what it is of.
  struct Numbered {
    uint32_t rank;
    uint32_t round;
    uint32_t from;
    uint32_t to;
    uint32_t message;
    bool is_send;

    friend auto operator<=>(const Numbered&, const Numbered&) = default;
  };

  Result<GoalPlan> Build() {
    GoalPlan result{.name = name_, .notes = std::move(notes_)};
    PlanBuilder builder({.generator = kGenerator,
                         .algorithm = "goal",
                         .nodes = static_cast<uint32_t>(file_.ranks.size()),
                         .root = NodeId(root_),
                         .message = message_});
    std::vector<std::pair<uint32_t, uint32_t>> channels;
    std::vector<Numbered> ops;
    for (uint32_t m = 0; m < messages_.size(); ++m) {
      const uint32_t from = op(messages_[m].send).rank;
      const uint32_t to = op(messages_[m].recv).rank;
      const uint32_t round = messages_[m].round;
      builder.header().rounds = std::max(builder.header().rounds, round + 1);
      channels.emplace_back(from, to);
      ops.push_back({from, round, from, to, m, true});
      ops.push_back({to, round, from, to, m, false});
    }
    std::ranges::sort(channels);
    channels.erase(std::unique(channels.begin(), channels.end()), channels.end());
    for (const auto& [from, to] : channels)
      builder.AddChannel({.from = NodeId(from), .to = NodeId(to), .lane = kBlockLane});
    std::ranges::sort(ops);
    auto next = ops.cbegin();
    for (uint32_t rank = 0; rank < file_.ranks.size(); ++rank) {
      builder.BeginProgram(NodeId(rank));
      result.rank_lines.push_back(file_.ranks[rank].line);
      const auto end =
          std::find_if(next, ops.cend(), [&](const Numbered& it) { return it.rank != rank; });
      AddOps(std::span(next, end), channels, &builder, &result.op_lines);
      next = end;
    }
    result.plan = std::move(builder).Build();
    return result;
  }

  void AddOps(std::span<const Numbered> ops,
              const std::vector<std::pair<uint32_t, uint32_t>>& channels, PlanBuilder* builder,
              std::vector<uint32_t>* lines) const {
    llvm::DenseMap<uint32_t, OpId> id_of;  // message -> op; no message has both ends at one rank
    std::vector<OpId> after;
    for (const Numbered& it : ops) {
      const GoalMessage& m = messages_[it.message];
      const auto channel = std::ranges::lower_bound(channels, std::pair(it.from, it.to));
      after.clear();
      if (it.is_send) {
        for (const auto& [end, before] : waits_[m.send]) after.push_back(id_of.lookup(before));
        std::ranges::sort(after);
      }
      id_of[it.message] = builder->AddOp(
          {.channel = ChannelId::FromIndex(static_cast<size_t>(channel - channels.begin())),
           .block = m.block,
           .round = m.round,
           .kind = it.is_send ? OpKind::kSend : OpKind::kRecv},
          after);
      lines->push_back(op(it.is_send ? m.send : m.recv).line);
    }
  }

  /// Peers that an op waits for at once, and steps of dealing per message, on average; files that
  /// need more are made to need them.
  static constexpr uint64_t kWaitsMax = 1024;
  static constexpr uint64_t kDealingStepsMax = 64;

  const GoalFile& file_;
  const std::string& name_;
  const GoalOptions& options_;
  std::vector<uint32_t> sequence_;     // all ops, each rank's in an order it can have
  std::vector<uint32_t> place_;        // op -> its place in it
  std::vector<GoalMessage> messages_;  // with data
  std::vector<uint32_t> message_of_;   // op -> message, or kNone: calcs and synchronisation
  uint32_t root_ = 0;
  std::vector<Clock> waits_;             // op -> what has completed when it starts
  std::vector<uint32_t> message_order_;  // all messages, each behind those it waits for
  std::vector<Origin> near_, far_;       // op -> receives behind it
  llvm::DenseMap<uint32_t, std::vector<uint32_t>> received_;                   // rank -> ops
  llvm::DenseMap<std::pair<uint32_t, uint32_t>, std::vector<uint32_t>> sent_;  // rank, peer -> ops
  std::vector<uint32_t> first_of_block_;               // block -> one of its messages
  llvm::DenseSet<std::pair<uint32_t, uint32_t>> has_;  // (rank, block)
  llvm::DenseMap<uint32_t, uint32_t> lacks_;           // rank -> the first block it has not
  uint64_t dealing_steps_ = 0;
  uint64_t lost_starts_ = 0;
  uint64_t waiting_recvs_ = 0;
  Message message_;
  std::vector<std::string> notes_;
};

/// The number behind `prefix` in a JSON pointer, or none.
std::optional<uint32_t> IndexBehind(std::string_view pointer, std::string_view prefix) {
  const size_t begin = pointer.find(prefix);
  if (begin == std::string_view::npos) return std::nullopt;
  pointer.remove_prefix(begin + prefix.size());
  uint32_t index = 0;
  const auto [end, error] = std::from_chars(pointer.data(), pointer.data() + pointer.size(), index);
  return error == std::errc() ? std::optional(index) : std::nullopt;
}

}  // namespace

Diagnostic GoalPlan::AtLine(Diagnostic diagnostic) const {
  const std::optional<uint32_t> program = IndexBehind(diagnostic.where, "/programs/");
  if (!program || *program >= rank_lines.size()) return diagnostic;
  uint32_t line = rank_lines[*program];
  if (const std::optional<uint32_t> op = IndexBehind(diagnostic.where, "/ops/"))
    line = op_lines[plan.programs()[*program].op_begin + *op];
  if (line != 0) diagnostic.where = fmt::format("{}:{}", name, line);
  return diagnostic;
}

Result<GoalPlan> ReadGoal(std::istream& in, const std::string& name, const GoalOptions& options) {
  const Result<GoalFile> file = ReadGoalText(in, name);
  if (!file.ok()) return file.status();
  return GoalImporter(*file, name, options).Run();
}

}  // namespace prepost
