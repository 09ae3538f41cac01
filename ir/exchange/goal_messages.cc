// SPDX-License-Identifier: Apache-2.0
#include "ir/exchange/goal_messages.h"

#include <fmt/format.h>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallVector.h>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <tuple>
#include <utility>

#include "ir/base/count.h"
#include "ir/exchange/goal_graph.h"
#include "ir/exchange/goal_writer.h"

namespace prepost {
namespace {

class MessageFinder {
 public:
  MessageFinder(const GoalFile& file, CollectiveKind kind, const GoalBudget& budget)
      : file_(file),
        combines_(Combines(kind)),
        is_transitive_(kind != CollectiveKind::kMulticast),
        cost_max_(budget.CostMax(file.ops.size())) {}

  Result<GoalMessages> Run() {
    PREPOST_RETURN_IF_ERROR(OrderRanks());
    PREPOST_RETURN_IF_ERROR(MatchMessages());
    if (combines_) PREPOST_RETURN_IF_ERROR(FindCombines());
    PREPOST_RETURN_IF_ERROR(FindWaits());
    return std::move(out_);
  }

 private:
  using Kind = GoalOp::Kind;

  /// A channel's end at one rank: the peer, and what is done there, as peer * kUses + use.
  enum class Use : uint8_t { kTake, kSend, kCombine };
  static constexpr uint32_t kUses = 4;
  static_assert(uint64_t{kNodesMax} * kUses < uint64_t{1} << 31);
  using End = uint32_t;
  /// The last message of a channel's end that has completed; in the order of these.
  class Completed {
   public:
    Completed(End end, uint32_t message, bool is_direct)
        : bits_(uint64_t{end} << 33 | uint64_t{message} << 1 | (is_direct ? 1 : 0)) {}

    End end() const { return static_cast<End>(bits_ >> 33); }
    uint32_t message() const { return static_cast<uint32_t>(bits_ >> 1); }
    bool is_send() const { return end() % kUses == static_cast<End>(Use::kSend); }
    /// Else a send or a combine that has completed, too, waited for it.
    bool is_direct() const { return (bits_ & 1) != 0; }
    void MakeIndirect() { bits_ &= ~uint64_t{1}; }

    friend auto operator<=>(const Completed&, const Completed&) = default;

   private:
    uint64_t bits_;
  };
  /// By ends.
  using Clock = std::vector<Completed>;

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

  /// A send carries what its rank has combined, and no more. `clock` is that of `send`.
  Status CheckUncombined(uint32_t send, const Clock& clock) const {
    for (const GoalOrder& order : file_.OrdersOf(send)) {
      if (order.is_start || op(order.earlier).kind != Kind::kRecv || !IsData(order.earlier))
        continue;
      const uint32_t message = out_.message_of[order.earlier];
      const uint32_t calc = out_.calc_of[message];
      if (calc == kGoalNone) continue;
      const End end = EndOf(order.earlier);
      const auto at = std::ranges::lower_bound(clock, end, {}, &Completed::end);
      if (at != clock.end() && at->end() == end && at->message() >= message) continue;
      return file_.At(send, fmt::format("this send requires the recv in line {}, and not the calc "
                                        "in line {} that combines it: a plan's nodes send what "
                                        "they have combined",
                                        op(order.earlier).line, op(calc).line));
    }
    return {};
  }

  // Step 5.

  End EndOf(uint32_t index) const {
    const uint32_t message = out_.message_of[index];
    const bool is_combined =
        combines_ && message != kGoalNone && out_.calc_of[message] != kGoalNone;
    const Use use = op(index).kind == Kind::kSend ? Use::kSend
                    : is_combined                 ? Use::kCombine
                                                  : Use::kTake;
    return op(index).peer * kUses + static_cast<uint32_t>(use);
  }

  /// `earlier` has completed. What a recv brings is there when it is combined, by a calc or by
  /// itself.
  void GatherDone(uint32_t earlier) {
    if (IsData(earlier)) {
      const End end = EndOf(earlier);
      const uint32_t message = out_.message_of[earlier];
      if (end % kUses != static_cast<uint32_t>(Use::kCombine) || out_.calc_of[message] == earlier)
        gathered_.emplace_back(end, message, /*is_direct=*/true);
      return;
    }
    const auto combined = combined_.find(earlier);
    if (combined == combined_.end()) return;
    for (const uint32_t message : combined->second)
      gathered_.emplace_back(EndOf(out_.messages[message].recv), message, /*is_direct=*/true);
  }

  /// Whether an op of the plan, which waits for all that is required of it, is its end: receives
  /// that take, calcs and synchronisation are none.
  bool WaitsItself(uint32_t index) const {
    if (!IsData(index)) return combined_.count(index) != 0;
    return op(index).kind == Kind::kSend ||
           (combines_ && out_.calc_of[out_.message_of[index]] == index);
  }

  /// What has completed when an earlier op starts. It is not direct where that op has completed,
  /// too, and waited for it itself.
  void GatherClock(const Clock& clock, bool is_direct) {
    const size_t begin = gathered_.size();
    gathered_.insert(gathered_.end(), clock.begin(), clock.end());
    if (is_direct) return;
    for (size_t i = begin; i < gathered_.size(); ++i) gathered_[i].MakeIndirect();
  }

  /// Makes a clock of what is gathered. Messages of one channel are numbered in its order, so the
  /// largest number is the last one.
  void SortGathered() {
    if (!std::ranges::is_sorted(gathered_)) std::ranges::sort(gathered_);
    size_t kept = 0;
    for (size_t i = 0; i < gathered_.size(); ++i) {
      if (i + 1 == gathered_.size() || gathered_[i + 1].end() != gathered_[i].end())
        gathered_[kept++] = gathered_[i];
    }
    gathered_.erase(gathered_.begin() + static_cast<ptrdiff_t>(kept), gathered_.end());
  }

  /// Leaves the clock of `index` in `gathered_`.
  Status GatherWaits(uint32_t index) {
    gathered_.clear();
    size_t sort_at = kSortAtLeast;
    for (const GoalOrder& order : file_.OrdersOf(index)) {
      const bool is_done_send =
          !order.is_start && op(order.earlier).kind == Kind::kSend && IsData(order.earlier);
      const size_t before = gathered_.size();
      if (!order.is_start) GatherDone(order.earlier);
      if (is_transitive_ || !is_done_send) {
        GatherClock(clocks_[order.earlier], order.is_start || !WaitsItself(order.earlier));
        CountLost(index, order);
      }
      out_.steps += gathered_.size() - before + 1;
      if (out_.steps > cost_max_) return TooMuch(index);
      if (gathered_.size() < sort_at) continue;
      SortGathered();
      sort_at = std::max(kSortAtLeast, 2 * gathered_.size());
    }
    SortGathered();
    return {};
  }

  Status FindWaits() {
    const auto ops = static_cast<uint32_t>(file_.ops.size());
    clocks_.resize(ops);
    std::vector<uint32_t> users(ops);  // of each op's clock that are still to come
    for (const GoalOrder& order : file_.orders) ++users[order.earlier];
    out_.waits.resize(out_.messages.size());
    if (is_transitive_) out_.received.resize(out_.messages.size());
    out_.combine_waits.resize(out_.calc_of.size());
    for (const uint32_t index : out_.sequence) {
      PREPOST_RETURN_IF_ERROR(GatherWaits(index));
      PREPOST_RETURN_IF_ERROR(KeepWaits(index));
      for (const GoalOrder& order : file_.OrdersOf(index)) {
        if (--users[order.earlier] != 0) continue;
        bytes_ -= clocks_[order.earlier].size() * sizeof(Completed);
        Clock().swap(clocks_[order.earlier]);
      }
      if (users[index] != 0) {
        bytes_ += gathered_.size() * sizeof(Completed);
        clocks_[index].assign(gathered_.begin(), gathered_.end());
      }
      if (bytes_ > cost_max_) return TooMuch(index);
    }
    NoteLost();
    return {};
  }

  /// What the rounds and the plan need of the clock of `index`, which is in `gathered_`.
  Status KeepWaits(uint32_t index) {
    if (op(index).kind == Kind::kSend && IsData(index)) {
      if (combines_) PREPOST_RETURN_IF_ERROR(CheckUncombined(index, gathered_));
      const uint32_t message = out_.message_of[index];
      KeepDirect(&out_.waits[message]);
      if (!is_transitive_) return {};
      for (const Completed& it : gathered_) {
        if (!it.is_send()) out_.received[message].push_back(it.message());
      }
      bytes_ += out_.received[message].size() * sizeof(uint32_t);
    } else if (combines_ && op(index).kind == Kind::kRecv) {
      if (IsData(index) && out_.calc_of[out_.message_of[index]] == index)
        KeepDirect(&out_.combine_waits[out_.message_of[index]]);
    } else if (const auto combined = combined_.find(index); combined != combined_.end()) {
      for (const uint32_t message : combined->second) {
        out_.steps += gathered_.size();
        KeepDirect(&out_.combine_waits[message]);
        if (std::max(out_.steps, bytes_) > cost_max_) return TooMuch(index);
      }
    }
    return {};
  }

  void KeepDirect(std::vector<uint32_t>* before) {
    for (const Completed& it : gathered_) {
      if (it.is_direct()) before->push_back(it.message());
    }
    bytes_ += before->size() * kBytesOfEdge;
  }

  Status TooMuch(uint32_t index) const { return file_.At(index, kGoalTooMuch); }

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

  /// What is gathered for an op is sorted from this size on, as it doubles.
  static constexpr size_t kSortAtLeast = 4096;
  /// Of each wait that is kept: as an edge, in the lists and graphs of goal_rounds.cc.
  static constexpr uint64_t kBytesOfEdge = 48;

  const GoalFile& file_;
  const bool combines_;
  const bool is_transitive_;  ///< clocks have what is waited for over other sends, too
  llvm::DenseMap<uint32_t, llvm::SmallVector<uint32_t, 1>> combined_;  // calc -> messages
  GoalMessages out_;
  const uint64_t cost_max_;
  std::vector<Clock> clocks_;  // op -> what has completed when it starts, while others need it
  Clock gathered_;             // of the op in hand
  uint64_t bytes_ = 0;         // of clocks and waits
  uint64_t lost_starts_ = 0;
  uint64_t waiting_recvs_ = 0;
};

}  // namespace

Result<GoalMessages> FindGoalMessages(const GoalFile& file, CollectiveKind kind,
                                      const GoalBudget& budget) {
  return MessageFinder(file, kind, budget).Run();
}

}  // namespace prepost
