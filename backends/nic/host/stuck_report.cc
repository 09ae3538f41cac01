// SPDX-License-Identifier: Apache-2.0
//
// Every send queue that is not through stands at the WQE that its counter names, and waits for at
// most one other queue:
//
//   a WAIT                 for the queue whose WQE makes the CQE: a send queue of its own node, or
//                          the peer's that sends what is to be received
//   a managed queue        for the master that holds its next SEND_EN
//
// or it stands for a reason that ends the walk: its QP is broken, its host has not written or not
// rung on, a message is on its way to a peer without a receive, or the queue that should act has
// nothing left. Following these edges from every queue leads to a few ends, or round a cycle; the
// end that most queues lead to is the first culprit.
//
// Example: chain 0>1>2, and node 2's last credit is lost. The send queue 1>2 waits for the receive
// of the credit; the queue 2>1 of credits has nothing left: the culprit. Node 1's final completion
// waits for its send queue, node 2's for its receive, which 1>2 is to bring: both are behind it.
//
// Cost: linear in queues, and in the entries of those that are waited for.
#include "backends/nic/host/stuck_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "ir/base/count.h"

namespace prepost::nic {
namespace {

/// A send queue: position in `nodes`, and its QP there.
struct Queue {
  size_t node = 0;
  size_t qp = 0;

  friend auto operator<=>(const Queue&, const Queue&) = default;
};

/// What a queue stands at, in words; and what that waits for.
struct Stand {
  std::string text;
  std::optional<Queue> next;
  uint32_t next_send = 0;  ///< which of next's sends
  std::string end;         ///< without `next`: the reason
};

/// Where the walk from a queue ends.
struct End {
  Queue queue;
  std::string reason;
  uint32_t hops = 0;

  friend bool operator==(const End& a, const End& b) {
    return a.queue == b.queue && a.reason == b.reason;
  }
};

/// Position of the `count`-th (from 0) entry that `is_one`; none when there are fewer.
template <typename Predicate>
std::optional<uint32_t> Nth(const std::vector<SendEntry>& sends, uint32_t count, Predicate is_one) {
  for (uint32_t i = 0; i < sends.size(); ++i) {
    if (is_one(sends[i]) && count-- == 0) return i;
  }
  return std::nullopt;
}

class Reporter {
 public:
  Reporter(const Plan& plan, std::span<const ArmedNode> nodes)
      : nodes_(nodes), plan_(plan), programs_(plan.header().nodes) {
    for (const Program& program : plan.programs()) programs_[program.node.index()] = &program;
    for (const ArmedNode& node : nodes) {
      Result<NodePosition> position = node.Position();
      if (!position.ok()) unknown_ += fmt::format("\n  {}", position.status().message());
      positions_.push_back(position.ok() ? *std::move(position) : NodePosition{});
    }
  }

  std::string Run(std::string_view why, size_t lines_max) const {
    std::vector<std::pair<Queue, End>> waiting = Walks();
    std::string report =
        fmt::format("stuck: {} and {} {}", why, Count(waiting.size(), "send queue"),
                    waiting.size() == 1 ? "waits" : "wait");
    const End* first = FirstCulprit(waiting);
    if (first == nullptr) return report + unknown_;
    report += fmt::format("; first culprit: {}", first->reason);
    const auto key = [&](const std::pair<Queue, End>& it) {
      return std::tuple(!(it.second == *first), IsFinal(it.first), it.second.hops, it.first);
    };
    const End culprit = *first;  // sorting moves what it points to
    first = &culprit;
    std::ranges::sort(waiting, {}, key);
    for (size_t i = 0; i < std::min(waiting.size(), lines_max); ++i) {
      const auto& [queue, end] = waiting[i];
      report += fmt::format("\n  {}", StandOf(queue).text);
      if (!(end == culprit)) report += fmt::format("; behind {}", end.reason);
    }
    if (waiting.size() > lines_max) {
      report += fmt::format("\n  and {} more", waiting.size() - lines_max);
    }
    return report + unknown_;
  }

  std::string Culprit() const {
    const std::vector<std::pair<Queue, End>> waiting = Walks();
    const End* first = FirstCulprit(waiting);
    return first == nullptr ? "" : first->reason;
  }

 private:
  const NodeProgram& ProgramOf(const Queue& queue) const { return nodes_[queue.node].program(); }
  const QueuePair& PairOf(const Queue& queue) const { return ProgramOf(queue).qps[queue.qp]; }
  const QueuePosition& PositionOf(const Queue& queue) const {
    return positions_[queue.node].qps[queue.qp];
  }
  std::string Name(const Queue& queue) const {
    return fmt::format("node {}'s {}", ProgramOf(queue).node.value,
                       Describe(ProgramOf(queue), QpId::FromIndex(queue.qp)));
  }
  std::string Name(const Queue& queue, OpId op) const {
    const NodeId node = ProgramOf(queue).node;
    if (op == kNoOp) return fmt::format("node {}'s final completion", node.value);
    return Describe(plan_, *programs_[node.index()], op);
  }
  /// It serves no op but the end of all.
  bool IsFinal(const Queue& queue) const {
    return std::ranges::all_of(PairOf(queue).sends,
                               [](const SendEntry& entry) { return entry.op == kNoOp; });
  }

  /// Send queues that are not through: WQEs that do not run, or run and do not complete.
  std::vector<Queue> Waiting() const {
    std::vector<Queue> waiting;
    for (size_t node = 0; node < nodes_.size(); ++node) {
      for (size_t qp = 0; qp < positions_[node].qps.size(); ++qp) {
        const Queue queue{node, qp};
        const std::vector<SendEntry>& sends = PairOf(queue).sends;
        const auto signaled = std::ranges::count_if(sends, &SendEntry::signaled);
        const uint32_t cqes = positions_[node].cqes[PairOf(queue).send_cq.index()];
        const bool runs = PositionOf(queue).sends_fetched < sends.size();
        if (!sends.empty() && (runs || cqes < static_cast<uint64_t>(signaled))) {
          waiting.push_back(queue);
        }
      }
    }
    return waiting;
  }

  std::vector<std::pair<Queue, End>> Walks() const {
    std::vector<std::pair<Queue, End>> walks;
    for (const Queue& queue : Waiting()) walks.emplace_back(queue, Walk(queue));
    return walks;
  }

  static const End* FirstCulprit(const std::vector<std::pair<Queue, End>>& waiting) {
    const End* first = nullptr;
    ptrdiff_t most = 0;
    for (const auto& [queue, end] : waiting) {
      const ptrdiff_t behind = std::ranges::count_if(
          waiting, [&](const std::pair<Queue, End>& it) { return it.second == end; });
      if (behind > most) {
        first = &end;
        most = behind;
      }
    }
    return first;
  }

  End Walk(const Queue& from) const {
    std::vector<Queue> path = {from};
    Stand stand = StandOf(from);
    while (stand.next) {
      const Queue next = *stand.next;
      const auto hops = static_cast<uint32_t>(path.size());
      if (positions_[next.node].qps.empty()) return {next, Name(next) + " cannot be asked", hops};
      const bool runs = stand.next_send < PositionOf(next).sends_fetched;
      if (std::ranges::find(path, next) != path.end()) {
        const auto begin = std::ranges::find(path, next);
        const Queue least = *std::min_element(begin, path.end());
        return {least, fmt::format("a cycle through {}", Name(least)), hops};
      }
      path.push_back(next);
      stand = runs ? InFlight(next, stand.next_send) : StandOf(next);
    }
    return {path.back(), stand.end, static_cast<uint32_t>(path.size() - 1)};
  }

  /// What the queue stands at.
  Stand StandOf(const Queue& queue) const {
    const QueuePosition& at = PositionOf(queue);
    const QueuePair& qp = PairOf(queue);
    const uint32_t send = at.sends_fetched;
    if (at.state != QpState::kReadyToSend) {
      return EndAt(queue, std::min<size_t>(send, qp.sends.size() - 1),
                   fmt::format("is in state {}", nic::Name(at.state)));
    }
    if (send >= qp.sends.size()) return InFlight(queue, static_cast<uint32_t>(qp.sends.size() - 1));
    if (send >= at.sends_written) return EndAt(queue, send, "has not been written on by its host");
    if (send >= at.sends_posted) {
      if (qp.managed) return AtEnable(queue, send);
      return EndAt(queue, send, "has not been rung on by its host");
    }
    const SendWqe wqe = nodes_[queue.node].Decode(QpId::FromIndex(queue.qp), send);
    if (wqe.opcode == Opcode::kWait) return AtWait(queue, send, wqe);
    return EndAt(queue, send, fmt::format("is about to run a {}", nic::Name(wqe.opcode)));
  }

  Stand EndAt(const Queue& queue, size_t send, const std::string& what) const {
    const std::string end = fmt::format("{} {}", Name(queue), what);
    return {.text = fmt::format("{}: {}", Name(queue, PairOf(queue).sends[send].op), end),
            .next = {},
            .end = end};
  }

  /// A send that runs and is not complete.
  Stand InFlight(const Queue& queue, uint32_t send) const {
    const QueuePair& qp = PairOf(queue);
    if (PositionOf(queue).state != QpState::kReadyToSend) return StandOf(queue);
    const std::string what =
        fmt::format("has sent WQE {}, {}, without an answer", send, Name(queue, qp.sends[send].op));
    const std::optional<Queue> peer = Back(queue);
    if (!peer || positions_[peer->node].qps.empty()) return EndAt(queue, send, what);
    const QueuePosition& there = PositionOf(*peer);
    if (there.state != QpState::kReadyToSend) {
      return EndAt(queue, send,
                   fmt::format("{}: {} is in state {}", what, Name(*peer), nic::Name(there.state)));
    }
    if (there.receives_taken == there.receives_posted) {
      return EndAt(queue, send, fmt::format("{}: {} has no receive posted", what, Name(*peer)));
    }
    return EndAt(queue, send, what);
  }

  /// The QP at the other end; nothing if that node is not among `nodes_`.
  std::optional<Queue> Back(const Queue& queue) const {
    const QueuePair& qp = PairOf(queue);
    if (qp.loopback) return queue;
    const auto peer = std::ranges::find(nodes_, qp.peer,
                                        [](const ArmedNode& node) { return node.program().node; });
    if (peer == nodes_.end()) return std::nullopt;
    const Result<QpId> back = FindQp(peer->program(), ProgramOf(queue).node, qp.lane);
    if (!back.ok()) return std::nullopt;
    return Queue{static_cast<size_t>(peer - nodes_.begin()), back->index()};
  }

  Stand AtEnable(const Queue& queue, uint32_t send) const {
    const std::string who = Name(queue, PairOf(queue).sends[send].op);
    const std::vector<QueuePair>& qps = ProgramOf(queue).qps;
    for (size_t master = 0; master < qps.size(); ++master) {
      const std::optional<uint32_t> enable = Nth(qps[master].sends, 0, [&](const SendEntry& it) {
        return it.opcode == Opcode::kSendEnable && it.qp.index() == queue.qp && it.count > send;
      });
      if (!enable) continue;
      const Queue next{queue.node, master};
      return {.text = fmt::format("{} waits for SEND_EN, WQE {} of {}", who, *enable, Name(next)),
              .next = next,
              .next_send = *enable,
              .end = ""};
    }
    return EndAt(queue, send, "is enabled by nobody");
  }

  Stand AtWait(const Queue& queue, uint32_t send, const SendWqe& wait) const {
    const ArmedNode& node = nodes_[queue.node];
    const std::optional<CqId> id = node.WaitedCq(wait);
    if (!id) return EndAt(queue, send, fmt::format("waits for unknown CQ {:#x}", wait.number));
    const uint32_t wanted = node.WaitedCqe(wait, *id);
    const uint32_t made = positions_[queue.node].cqes[id->index()];
    const CompletionQueue& cq = ProgramOf(queue).cqs[id->index()];
    const Queue mine{queue.node, cq.qp.index()};
    const bool receives = cq.role == CompletionQueue::Role::kReceives;
    const std::optional<Queue> maker = receives ? Back(mine) : std::optional(mine);
    const std::string what = receives ? WantedReceive(mine, wanted) : WantedSend(mine, wanted);
    const auto text = [&](const std::string& cause) {
      return fmt::format("{} waits for {} ({} have {} of {}; {})",
                         Name(queue, PairOf(queue).sends[send].op), what,
                         Describe(ProgramOf(queue), *id), made, Count(wanted + 1, "CQE"), cause);
    };
    if (!maker) {
      const std::string end =
          fmt::format("{} has not come from node {}", what, PairOf(mine).peer.value);
      return {.text = text("its sender was not asked"), .next = {}, .end = end};
    }
    const std::vector<SendEntry>& sends = PairOf(*maker).sends;
    const std::optional<uint32_t> next =
        receives ? Nth(sends, wanted, [](const SendEntry& entry) { return IsSend(entry.opcode); })
                 : Nth(sends, wanted, [](const SendEntry& entry) { return entry.signaled; });
    if (!next) {
      const std::string end = fmt::format("{} has nothing left for {}", Name(*maker), what);
      return {.text = text(Name(*maker) + " has nothing left"), .next = {}, .end = end};
    }
    return {.text = text(fmt::format("WQE {} of {}", *next, Name(*maker))),
            .next = maker,
            .next_send = *next,
            .end = ""};
  }

  std::string WantedReceive(const Queue& queue, uint32_t index) const {
    const std::vector<ReceiveEntry>& receives = PairOf(queue).receives;
    if (index < receives.size()) return Name(queue, receives[index].op);
    return fmt::format("receive {} that is not in the program", index);
  }
  std::string WantedSend(const Queue& queue, uint32_t index) const {
    const std::vector<SendEntry>& sends = PairOf(queue).sends;
    const auto send = Nth(sends, index, [](const SendEntry& entry) { return entry.signaled; });
    if (send) return Name(queue, sends[*send].op);
    return fmt::format("completion {} that no send of the program makes", index);
  }

  std::span<const ArmedNode> nodes_;
  const Plan& plan_;
  std::vector<const Program*> programs_;  // by NodeId
  std::vector<NodePosition> positions_;   // as nodes_; empty: unknown
  std::string unknown_;
};

}  // namespace

std::string StuckReport(const Plan& plan, std::span<const ArmedNode> nodes, std::string_view why,
                        size_t lines_max) {
  return Reporter(plan, nodes).Run(why, lines_max);
}

std::string StuckAt(const Plan& plan, const ArmedNode& node) {
  return Reporter(plan, {&node, 1}).Culprit();
}

}  // namespace prepost::nic
