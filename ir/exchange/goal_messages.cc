// SPDX-License-Identifier: Apache-2.0
#include "ir/exchange/goal_messages.h"

#include <fmt/format.h>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallVector.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "ir/count.h"
#include "ir/exchange/goal_graph.h"
#include "ir/exchange/goal_writer.h"

namespace prepost {
namespace {

class MessageFinder {
 public:
  MessageFinder(const GoalFile& file, CollectiveKind kind)
      : file_(file),
        combines_(Combines(kind)),
        is_transitive_(kind != CollectiveKind::kMulticast) {}

  Result<GoalMessages> Run() {
    PREPOST_RETURN_IF_ERROR(OrderRanks());
    PREPOST_RETURN_IF_ERROR(MatchMessages());
    if (combines_) PREPOST_RETURN_IF_ERROR(FindCombines());
    PREPOST_RETURN_IF_ERROR(FindWaits());
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
    out_.sequence = GoalOrderOf(GoalGraph(ops, edges));
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

  // Step 3.

  /// Which calc combines what each recv brings.
  Status FindCombines() {
    out_.calc_of.assign(out_.messages.size(), kGoalNone);
    bool has_calcs = false;
    for (uint32_t calc = 0; calc < file_.ops.size(); ++calc) {
      if (op(calc).kind != Kind::kCalc) continue;
      has_calcs = true;
      llvm::SmallVector<uint32_t, 1>& combined = combined_[calc];
      for (const GoalOrder& order : file_.OrdersOf(calc)) {
        if (order.is_start || op(order.earlier).kind != Kind::kRecv || !IsData(order.earlier))
          continue;
        const uint32_t message = out_.message_of[order.earlier];
        if (std::exchange(out_.calc_of[message], calc) != kGoalNone) {
          return file_.At(calc, fmt::format("the recv in line {}, which this calc requires, is "
                                            "combined already: two calcs require it",
                                            op(order.earlier).line));
        }
        combined.push_back(message);
      }
      if (!combined.empty()) continue;
      return file_.At(calc,
                      "this calc requires no recv of data: in a collective that combines, a calc "
                      "combines what a recv brings with what its rank has");
    }
    if (!has_calcs && !out_.messages.empty()) CombineAll();
    return {};
  }

  /// Of a text that leaves the work out: each recv combines what it brings as it comes.
  void CombineAll() {
    for (uint32_t m = 0; m < out_.messages.size(); ++m) out_.calc_of[m] = out_.messages[m].recv;
    out_.notes.emplace_back("no calcs: each recv is taken to combine what it brings");
  }

  /// A send carries what its rank has combined, and no more.
  Status CheckUncombined(uint32_t send) const {
    for (const GoalOrder& order : file_.OrdersOf(send)) {
      if (order.is_start || op(order.earlier).kind != Kind::kRecv || !IsData(order.earlier))
        continue;
      const uint32_t message = out_.message_of[order.earlier];
      const uint32_t calc = out_.calc_of[message];
      if (calc == kGoalNone) continue;
      const End end = EndOf(order.earlier);
      const Clock& clock = waits_[send];
      const auto at = std::ranges::lower_bound(clock, end, {}, &std::pair<End, uint32_t>::first);
      if (at != clock.end() && at->first == end && at->second >= message) continue;
      return file_.At(send, fmt::format("this send requires the recv in line {}, and not the calc "
                                        "in line {} that combines it: a plan's nodes send what "
                                        "they have combined",
                                        op(order.earlier).line, op(calc).line));
    }
    return {};
  }

  // Step 5.

  /// A channel's end at one rank: the peer, and what is done there.
  enum class Use : uint8_t { kTake, kSend, kCombine };
  using End = std::pair<uint32_t, Use>;
  /// The last message of each channel's end that has completed; few per op, so a sorted list.
  using Clock = llvm::SmallVector<std::pair<End, uint32_t>, 4>;

  End EndOf(uint32_t index) const {
    const uint32_t message = out_.message_of[index];
    const bool is_combined =
        combines_ && message != kGoalNone && out_.calc_of[message] != kGoalNone;
    return {op(index).peer, op(index).kind == Kind::kSend ? Use::kSend
                            : is_combined                 ? Use::kCombine
                                                          : Use::kTake};
  }

  /// Messages of one channel are numbered in its order, so the larger number is the later one.
  static void Join(Clock& clock, End end, uint32_t message) {
    const auto at = std::ranges::lower_bound(clock, end, {}, &std::pair<End, uint32_t>::first);
    if (at != clock.end() && at->first == end) {
      at->second = std::max(at->second, message);
    } else {
      clock.insert(at, {end, message});
    }
  }

  /// `earlier` has completed. What a recv brings is there when it is combined, by a calc or by itself.
  void JoinDone(Clock& clock, uint32_t earlier) const {
    if (IsData(earlier)) {
      const End end = EndOf(earlier);
      const uint32_t message = out_.message_of[earlier];
      if (end.second != Use::kCombine || out_.calc_of[message] == earlier)
        Join(clock, end, message);
      return;
    }
    const auto combined = combined_.find(earlier);
    if (combined == combined_.end()) return;
    for (const uint32_t message : combined->second)
      Join(clock, EndOf(out_.messages[message].recv), message);
  }

  Status FindWaits() {
    waits_.resize(file_.ops.size());
    uint64_t entries = 0;
    for (const uint32_t index : out_.sequence) {
      Clock clock;
      for (const GoalOrder& order : file_.OrdersOf(index)) {
        const bool is_done_send = !order.is_start && op(order.earlier).kind == Kind::kSend;
        if (!order.is_start) JoinDone(clock, order.earlier);
        if (!is_transitive_ && is_done_send && IsData(order.earlier))
          continue;  // it waited for the rest itself
        for (const auto& [end, message] : waits_[order.earlier]) Join(clock, end, message);
        CountLost(index, order);
      }
      entries += clock.size();
      if (entries > kWaitsMax * (file_.ops.size() + kWaitsMax) ||
          (is_transitive_ && entries > kTransitiveWaitsMax))
        return file_.At(index, "too much that waits for too many peers at once");
      waits_[index] = std::move(clock);
    }
    NoteLost();
    for (const GoalMessage& m : out_.messages) {
      if (combines_) PREPOST_RETURN_IF_ERROR(CheckUncombined(m.send));
      AddWaits(m.send, &out_.waits.emplace_back());
    }
    for (const uint32_t calc : out_.calc_of) {
      std::vector<uint32_t>& before = out_.combine_waits.emplace_back();
      if (calc != kGoalNone) AddWaits(calc, &before);
    }
    return {};
  }

  void AddWaits(uint32_t index, std::vector<uint32_t>* before) const {
    for (const auto& [end, message] : waits_[index]) before->push_back(message);
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
      const bool is_combine = combines_ && out_.calc_of[out_.message_of[index]] == index;
      waiting_recvs_ += is_combine ? 0 : 1;
    } else if (order.is_start && EndOf(index) != EndOf(order.earlier)) {
      ++lost_starts_;
    }
  }

  /// In all, where what others waited for counts, too.
  static constexpr uint64_t kTransitiveWaitsMax = uint64_t{1} << 26;
  /// Peers that an op waits for at once, on average; files that need more are made to need them.
  static constexpr uint64_t kWaitsMax = 1024;

  const GoalFile& file_;
  const bool combines_;
  const bool is_transitive_;  ///< waits list what is waited for over other sends, too
  llvm::DenseMap<uint32_t, llvm::SmallVector<uint32_t, 1>> combined_;  // calc -> messages
  GoalMessages out_;
  std::vector<Clock> waits_;  // op -> what has completed when it starts
  uint64_t lost_starts_ = 0;
  uint64_t waiting_recvs_ = 0;
};

}  // namespace

Result<GoalMessages> FindGoalMessages(const GoalFile& file, CollectiveKind kind) {
  return MessageFinder(file, kind).Run();
}

}  // namespace prepost
