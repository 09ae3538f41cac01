// SPDX-License-Identifier: Apache-2.0
//
// Every queue that has entries to show has a box per entry: receive queues first, then the masters
// of managed queues, then send queues, last the loopback queue of the end, so that most arrows run
// to the right. Queues stand in columns, short receive queues below each other. A WAIT names a CQ
// and a CQE; its box says whose completion that is, and an arrow comes from there, when that is
// drawn too and there are not too many arrows. The end waits for the last CQE of every CQ: its
// WAITs get no arrows. A SEND_EN's arrow, dashed, goes to the last WQE that it enables.
//
// A selection also shows those WAITs and SEND_ENs that its sends depend on, whichever op
// they were made for: without them a block would seem to go on before it has come.
//
// A queue that is longer than its ring is written in parts: above each but the first a note says
// the CQE of which WQE it follows, whose slots it takes.
//
//   QP 1<>0 blocks       QP 1<>2 blocks
//   receive queue, CQ 1 send queue, CQ 2
//   [RECV b0 from 0]    [WAIT CQ 1 until CQE 0]
//   [CQE 0 of CQ 1 ]--->[for recv b0 from 0   ]
//                       [SEND b0 to 2         ]
#include "viz/queue_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "runtime/program.h"
#include "viz/chart.h"
#include "viz/queues.h"

namespace prepost::viz {
namespace {

using nic::CompletionQueue;
using nic::NodeProgram;
using nic::Opcode;
using nic::QueuePair;
using nic::SendEntry;

constexpr int kQueueTitleHeight = 2 * kRouteGrid;
constexpr int kBoxWidthMin = 150;

/// How often a queue is written to again before entry `index` is there.
size_t RearmOf(const DrawnQueue& queue, size_t index) {
  return queue.ring == 0 || index < queue.ring ? 0 : (index - queue.ring) / (queue.ring / 2) + 1;
}

class LayoutMaker {
 public:
  LayoutMaker(const Plan& plan, const Selection& selection, const NodeProgram& program)
      : plan_(plan),
        selection_(selection),
        program_(program),
        ops_(plan.ops(ProgramOf(plan, program.node))),
        send_queue_(program.qps.size()),
        receive_queue_(program.qps.size()),
        signaled_(program.qps.size()) {}

  QueueLayout Make() {
    MakeQueues();
    for (size_t i = 0; i < program_.qps.size(); ++i) FillQueues(i);
    if (!ShowsAll()) {
      FindCompletions();
      for (size_t i = 0; i < program_.qps.size(); ++i) ShowNeeded(i);
    }
    PlaceQueues();
    MakeArrows();
    return std::move(layout_);
  }

 private:
  void MakeQueues();
  void MakeReceiveQueue(size_t qp);
  void MakeSendQueue(size_t qp);
  void FillQueues(size_t qp);
  void FindCompletions();
  void ShowNeeded(size_t qp);
  void PlaceQueues();
  void MakeArrows();
  void Measure(DrawnQueue& queue);
  static void PlaceEntries(DrawnQueue& queue);
  DrawnEntry MakeEntry(const SendEntry& send, size_t qp, uint32_t cqe) const;
  bool ShowsAll() const { return selection_.blocks.empty() && !selection_.rounds; }
  bool IsShown(OpId op) const;
  std::string NameOf(OpId op) const;
  std::optional<QueuePlace> SourceOf(const SendEntry& wait) const;
  OpId OpAt(const SendEntry& wait) const;

  const Plan& plan_;
  const Selection& selection_;
  const NodeProgram& program_;
  std::span<const Op> ops_;
  std::vector<size_t> send_queue_;             ///< by QP; meaningless for a queue without entries
  std::vector<size_t> receive_queue_;          ///< as above
  std::vector<std::vector<size_t>> signaled_;  ///< by QP: the entries of its SQ that give CQEs
  struct Completion {
    nic::CqId cq{nic::kNoOp.value};
    uint32_t index = 0;
  };
  std::vector<Completion> completions_;  ///< by op; of a selection only
  QueueLayout layout_;
};

/// ", a ring of 16": of a queue that is written in parts.
std::string RingNote(bool in_parts, uint32_t ring) {
  return in_parts ? fmt::format(", a ring of {}", ring) : "";
}

void LayoutMaker::MakeReceiveQueue(size_t index) {
  const QueuePair& qp = program_.qps[index];
  if (qp.receives.empty()) return;
  receive_queue_[index] = layout_.queues.size();
  layout_.queues.push_back({.title = nic::Describe(program_, nic::QpId::FromIndex(index)),
                            .detail = fmt::format("receive queue, CQ {}{}", qp.recv_cq.value,
                                                  RingNote(qp.receives_in_parts(), qp.rq_wqes)),
                            .entries = {},
                            .receives = true,
                            .ring = qp.receives_in_parts() ? qp.rq_wqes : 0});
}

void LayoutMaker::MakeSendQueue(size_t index) {
  const QueuePair& qp = program_.qps[index];
  if (qp.sends.empty()) return;
  const bool is_master = std::ranges::count(qp.sends, Opcode::kSendEnable, &SendEntry::opcode) != 0;
  send_queue_[index] = layout_.queues.size();
  layout_.queues.push_back(
      {.title = nic::Describe(program_, nic::QpId::FromIndex(index)),
       .detail = fmt::format("{} queue, CQ {}{}",
                             is_master    ? "master"
                             : qp.managed ? "managed send"
                                          : "send",
                             qp.send_cq.value, RingNote(qp.sends_in_parts(), qp.sq_wqebbs)),
       .entries = {},
       .managed = qp.managed,
       .ring = qp.sends_in_parts() ? qp.sq_wqebbs : 0});
  for (size_t entry = 0; entry < qp.sends.size(); ++entry) {
    if (qp.sends[entry].signaled) signaled_[index].push_back(entry);
  }
}

void LayoutMaker::MakeQueues() {
  const size_t count = program_.qps.size();
  const bool is_managed = program_.enables() > 0;
  for (size_t i = 0; i < count; ++i) MakeReceiveQueue(i);
  const auto is_early = [&](size_t i) {  // a master, of which the only one is the end, too
    const bool is_end = i + 1 == count && i > 0 && program_.qps[i - 1].loopback;
    return is_managed && program_.qps[i].loopback && !is_end;
  };
  for (size_t i = 0; i < count; ++i) {
    if (is_early(i)) MakeSendQueue(i);
  }
  for (size_t i = 0; i < count; ++i) {
    if (!is_early(i)) MakeSendQueue(i);
  }
}

bool LayoutMaker::IsShown(OpId id) const {
  if (ShowsAll()) return true;
  if (id == nic::kNoOp) return false;
  const Op& op = ops_[id.index()];
  return selection_.HasBlock(op.block) && selection_.HasRound(op.round);
}

/// "send b3 to 4", "recv credit from 2", "the end".
std::string LayoutMaker::NameOf(OpId id) const {
  if (id == nic::kNoOp) return "the end";
  const Op& op = ops_[id.index()];
  const Channel& channel = plan_.channels()[op.channel.index()];
  return fmt::format(
      "{} {} {} {}", Name(op.kind), op.is_credit() ? "credit" : fmt::format("b{}", op.block),
      op.is_send() ? "to" : "from", op.is_send() ? channel.to.value : channel.from.value);
}

/// The entry whose CQE `wait` waits for.
std::optional<QueuePlace> LayoutMaker::SourceOf(const SendEntry& wait) const {
  const CompletionQueue& cq = program_.cqs[wait.cq.index()];
  const size_t qp = cq.qp.index();
  switch (cq.role) {
    case CompletionQueue::Role::kReceives:
      return QueuePlace{.queue = receive_queue_[qp], .index = wait.cqe_index};
    case CompletionQueue::Role::kSends:
    case CompletionQueue::Role::kFinal:
      if (wait.cqe_index >= signaled_[qp].size()) return std::nullopt;
      return QueuePlace{.queue = send_queue_[qp], .index = signaled_[qp][wait.cqe_index]};
    case CompletionQueue::Role::kIdle:
      return std::nullopt;
  }
  return std::nullopt;
}

/// The op whose completion `wait` waits for.
OpId LayoutMaker::OpAt(const SendEntry& wait) const {
  const CompletionQueue& cq = program_.cqs[wait.cq.index()];
  const QueuePair& qp = program_.qps[cq.qp.index()];
  if (cq.role == CompletionQueue::Role::kReceives) return qp.receives[wait.cqe_index].op;
  const std::optional<QueuePlace> source = SourceOf(wait);
  return source ? qp.sends[source->index].op : nic::kNoOp;
}

DrawnEntry LayoutMaker::MakeEntry(const SendEntry& send, size_t qp, uint32_t cqe) const {
  DrawnEntry entry;
  entry.shown = IsShown(send.op);
  const std::string gives =
      fmt::format("gives CQE {} of CQ {}", cqe, program_.qps[qp].send_cq.value);
  const std::string also = send.signaled ? ", " + gives : "";
  if (send.opcode == Opcode::kWait) {
    entry.css_class = "wait";
    entry.what = fmt::format("WAIT CQ {} until CQE {}", send.cq.value, send.cqe_index);
    entry.detail = fmt::format("for {}{}", NameOf(OpAt(send)), also);
    if (send.op != nic::kNoOp) entry.waits_for = SourceOf(send);
    return entry;
  }
  if (send.opcode == Opcode::kSendEnable) {
    entry.css_class = "enable";
    entry.what = fmt::format("SEND_EN {}", nic::Describe(program_, send.qp));
    entry.enables = QueuePlace{.queue = send_queue_[send.qp.index()], .index = send.count - 1};
    entry.detail =
        fmt::format("up to WQE {}: {}{}", send.count - 1,
                    NameOf(program_.qps[send.qp.index()].sends[send.count - 1].op), also);
    return entry;
  }
  entry.css_class = send.op == nic::kNoOp ? "nop" : program_.qps[qp].managed ? "held" : "send";
  entry.what = send.op == nic::kNoOp ? std::string(Name(send.opcode))
                                     : fmt::format("{} (op {})", NameOf(send.op), send.op.value);
  entry.detail = send.signaled ? gives : "not signaled";
  return entry;
}

void LayoutMaker::FillQueues(size_t index) {
  const QueuePair& qp = program_.qps[index];
  uint32_t cqe = 0;
  for (const SendEntry& send : qp.sends) {
    layout_.queues[send_queue_[index]].entries.push_back(MakeEntry(send, index, cqe));
    if (send.signaled) ++cqe;
  }
  for (size_t i = 0; i < qp.receives.size(); ++i) {
    const OpId op = qp.receives[i].op;
    DrawnEntry entry;
    entry.css_class = "recv";
    entry.what = fmt::format("{} (op {})", NameOf(op), op.value);
    entry.detail = fmt::format("gives CQE {} of CQ {}", i, qp.recv_cq.value);
    entry.shown = IsShown(op);
    layout_.queues[receive_queue_[index]].entries.push_back(std::move(entry));
  }
}

void LayoutMaker::FindCompletions() {
  completions_.resize(ops_.size());
  for (const QueuePair& qp : program_.qps) {
    uint32_t index = 0;
    for (const SendEntry& send : qp.sends) {
      if (!send.signaled) continue;
      if (nic::IsSend(send.opcode)) completions_[send.op.index()] = {qp.send_cq, index};
      ++index;
    }
    index = 0;
    for (const nic::ReceiveEntry& receive : qp.receives) {
      completions_[receive.op.index()] = {qp.recv_cq, index++};
    }
  }
}

/// Shows the WAITs and SEND_ENs of the queue that let a send run which is shown. Of WAITs on one CQ
/// each is for a later CQE than those before it, so the first that is for late enough is the one.
void LayoutMaker::ShowNeeded(size_t index) {
  if (program_.qps[index].sends.empty()) return;
  std::vector<DrawnEntry>& entries = layout_.queues[send_queue_[index]].entries;
  std::map<uint32_t, std::vector<std::pair<uint32_t, size_t>>> waits;  // by CQ: CQE, position
  const auto show_waits = [&](OpId op) {
    for (const OpId before : plan_.after(ops_[op.index()])) {
      const Completion& it = completions_[before.index()];
      const auto on_cq = waits.find(it.cq.value);
      if (on_cq == waits.end()) continue;
      const auto wait = std::ranges::lower_bound(on_cq->second, std::pair(it.index, size_t{0}));
      if (wait != on_cq->second.end()) entries[wait->second].shown = true;
    }
  };
  std::map<uint32_t, uint32_t> enabled;  // by QP
  for (size_t i = 0; i < entries.size(); ++i) {
    const SendEntry& send = program_.qps[index].sends[i];
    if (send.opcode == Opcode::kWait) waits[send.cq.value].emplace_back(send.cqe_index, i);
    if (nic::IsSend(send.opcode) && IsShown(send.op)) show_waits(send.op);
    if (send.opcode != Opcode::kSendEnable) continue;
    for (uint32_t& at = enabled[send.qp.value]; at < send.count; ++at) {
      const OpId op = program_.qps[send.qp.index()].sends[at].op;
      if (!IsShown(op)) continue;
      entries[i].shown = true;
      show_waits(op);
    }
  }
}

/// Counts entries, and says which notes and how much room the queue needs.
void LayoutMaker::Measure(DrawnQueue& queue) {
  double text = std::max(TextWidth(queue.title, 14), TextWidth(queue.detail, 12));
  queue.drawn = false;
  size_t rearm = 0;  // of the entry shown before
  for (size_t i = 0; i < queue.entries.size(); ++i) {
    DrawnEntry& entry = queue.entries[i];
    ++layout_.entries;
    if (!entry.shown) continue;
    ++layout_.shown;
    queue.drawn = true;
    if (RearmOf(queue, i) != rearm) {
      rearm = entry.rearm = RearmOf(queue, i);
      text = std::max(text, TextWidth(RearmNote(queue, rearm), 11));
    }
    text = std::max({text, TextWidth(entry.what, 11.5) + 34, TextWidth(entry.detail, 11) + 34});
  }
  queue.width = std::max(kBoxWidthMin, static_cast<int>(std::ceil(text)) + 8);
}

/// For a queue whose `y` is 0.
void LayoutMaker::PlaceEntries(DrawnQueue& queue) {
  int y = kQueueTitleHeight;
  bool gap = false;
  for (DrawnEntry& entry : queue.entries) {
    if (entry.rearm != 0) y += kQueueGapHeight;
    entry.y = y;  // of a gap: read at its first entry only
    if (entry.shown) {
      y += kQueueBoxHeight + kQueueSpace;
    } else if (!gap) {
      y += kQueueGapHeight;
    }
    gap = !entry.shown;
  }
  queue.height = y;
}

/// Receive queues are short, and so are managed ones, so several of a kind share a column, as long
/// as they are no higher together than the highest other queue.
void LayoutMaker::PlaceQueues() {
  int highest = 0;
  for (DrawnQueue& queue : layout_.queues) {
    Measure(queue);
    PlaceEntries(queue);
    if (!queue.drawn) ++layout_.empty;
    if (queue.drawn && !queue.receives && !queue.managed) highest = std::max(highest, queue.height);
  }
  std::vector<int>& widths = layout_.widths;
  int y = 0;
  const DrawnQueue* above = nullptr;
  for (DrawnQueue& queue : layout_.queues) {
    if (!queue.drawn) continue;
    const bool may_share =
        above != nullptr && (queue.receives || queue.managed) &&
        std::tie(queue.receives, queue.managed) == std::tie(above->receives, above->managed);
    above = &queue;
    if (!may_share || y + queue.height > highest) {
      widths.push_back(0);
      y = 0;
    }
    queue.column = widths.size() - 1;
    queue.y = y;
    for (DrawnEntry& entry : queue.entries) entry.y += y;
    widths.back() = std::max(widths.back(), queue.width);
    y += queue.height;
    layout_.height = std::max(layout_.height, y);
  }
}

void LayoutMaker::MakeArrows() {
  const size_t columns = layout_.widths.size();
  std::map<QueuePlace, std::vector<RouteEnd>> ends;  // by source
  size_t arrows = 0;
  const auto add = [&](QueuePlace from, QueuePlace to) {
    const DrawnEntry& entry = layout_.queues[to.queue].entries[to.index];
    if (!entry.shown || !layout_.queues[from.queue].entries[from.index].shown) return;
    ends[from].push_back({.column = layout_.queues[to.queue].column, .y = entry.y});
    ++arrows;
  };
  for (size_t queue = 0; queue < layout_.queues.size(); ++queue) {
    for (size_t i = 0; i < layout_.queues[queue].entries.size(); ++i) {
      const DrawnEntry& entry = layout_.queues[queue].entries[i];
      if (entry.waits_for) add(*entry.waits_for, {.queue = queue, .index = i});
      if (entry.enables) add({.queue = queue, .index = i}, *entry.enables);
    }
  }
  std::vector<Route> routes;
  for (auto& [place, to] : ends) {
    const DrawnQueue& queue = layout_.queues[place.queue];
    layout_.sources.push_back(place);
    routes.push_back(
        {.from = {.column = queue.column, .y = queue.entries[place.index].y}, .to = std::move(to)});
  }
  layout_.arrows.emplace(std::move(routes), columns);
  if (layout_.arrows->most() <= kArrowsSideBySideMax) return;
  layout_.arrows_left_out = arrows;
  layout_.arrows.emplace(std::vector<Route>(), columns);
}

}  // namespace

std::string RearmNote(const DrawnQueue& queue, size_t rearm) {
  return fmt::format("re-arm {}: once WQE {} has completed", rearm, rearm * (queue.ring / 2) - 1);
}

QueueLayout LayOutQueues(const Plan& plan, const Selection& selection, const NodeProgram& program) {
  return LayoutMaker(plan, selection, program).Make();
}

}  // namespace prepost::viz
