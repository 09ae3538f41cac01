// SPDX-License-Identifier: Apache-2.0
//
// Every queue that has entries to show has a box per entry: receive queues first, then the masters
// of managed queues, then send queues, last the loopback queue of the end, so that most arrows run
// to the right. Queues stand in columns, short receive queues below each other. A WAIT names a CQ
// and a CQE; its box says whose completion that is, and an arrow comes from there, when that is
// drawn too and there are not too many arrows. The end waits for the last CQE of every CQ: its
// WAITs get no arrows. A SEND_EN's arrow, dashed, goes to the last WQE that it enables.
//
// Of a selection also those WAITs and SEND_ENs are shown that its sends depend on, whichever op
// they were made for: without them a block would seem to go on before it has come.
//
// A queue that is longer than its ring is written in parts: above each but the first a note says
// the CQE of which WQE it follows, whose slots it takes.
//
//   QP 1>0 blocks       QP 1>2 blocks
//   receive queue, CQ 1 send queue, CQ 2
//   [RECV b0 from 0]    [WAIT CQ 1 until CQE 0]
//   [CQE 0 of CQ 1 ]--->[for recv b0 from 0   ]
//                       [SEND b0 to 2         ]
#include "prepost/viz/queues.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "prepost/backends/nic/lower.h"
#include "prepost/ir/count.h"
#include "prepost/runtime/program.h"
#include "prepost/viz/chart.h"
#include "prepost/viz/routes.h"

namespace prepost::viz {
namespace {

using nic::CompletionQueue;
using nic::NodeProgram;
using nic::Opcode;
using nic::QueuePair;
using nic::SendEntry;

constexpr int kBoxHeight = 32;
constexpr int kGapHeight = kRouteGrid;  ///< of a note on what is left out
constexpr int kSpace = 2 * kRouteGrid - kBoxHeight;
constexpr int kTitleHeight = 2 * kRouteGrid;
constexpr int kBoxWidthMin = 150;
constexpr size_t kArrowColors = 5;
constexpr int kBoxSample = 24;  ///< widths in the legend
constexpr int kArrowSample = 40;
constexpr int kLegendWidthMin = 820;

constexpr std::string_view kQueueStyle =
    ".wait{fill:#fff;stroke:#b4641e}.send{fill:#cfe2f7;stroke:#333}.recv{fill:#fde3c0;stroke:#333}"
    ".nop{fill:#e8e8e8;stroke:#333}.enable{fill:#e3d4ef;stroke:#6a3d9a}.held{fill:#cfe2f7;"
    "stroke:#333;stroke-dasharray:4 3}.q{font-size:13px;font-weight:bold}.a{font-size:11px;"
    "font-weight:bold}.d{font-size:11px;fill:#444}.gap{font-size:11px;fill:#777}"
    ".part{stroke:#777;stroke-dasharray:2 "
    "3}.under,.arrow{fill:none;stroke-linecap:square}.under{stroke:#fff;stroke-width:3.4}"
    ".arrow{stroke:currentColor;stroke-width:1.4}"
    ".enables .arrow{stroke-dasharray:4 4;stroke-linecap:butt}.head{fill:currentColor}"
    ".k0{color:#b4641e}.k1{color:#1f5fa8}.k2{color:#2e7d32}.k3{color:#8e24aa}.k4{color:#555}";

/// Where an entry is: its queue and its index there.
struct Place {
  size_t queue = 0;
  size_t index = 0;

  auto operator<=>(const Place&) const = default;
};

struct Entry {
  std::string_view css_class;
  std::string what;    ///< "WAIT CQ 1 until CQE 0"
  std::string detail;  ///< "for recv b0 from 0"
  bool shown = true;
  std::optional<Place> waits_for;
  std::optional<Place> enables;  ///< up to there
  size_t rearm = 0;              ///< the one that writes it, noted above; 0: noted nowhere
  int y = 0;                     ///< below the top of the columns
};

/// A queue.
struct Queue {
  std::string title;   ///< "QP 1>2 blocks"
  std::string detail;  ///< "send queue, CQ 3"
  std::vector<Entry> entries;
  bool receives = false;
  bool managed = false;  ///< a send queue that is
  bool drawn = true;     ///< an entry is shown
  size_t ring = 0;       ///< of a queue that is written in parts; 0: it fits
  int width = 0;         ///< needed
  int height = 0;        ///< needed, with the title
  int y = 0;             ///< below the top of the columns
  size_t column = 0;
};

/// How often a queue is written to again before entry `index` is there.
size_t RearmOf(const Queue& queue, size_t index) {
  return queue.ring == 0 || index < queue.ring ? 0 : (index - queue.ring) / (queue.ring / 2) + 1;
}

std::string RearmNote(const Queue& queue, size_t rearm) {
  return fmt::format("re-arm {}: once WQE {} has completed", rearm, rearm * (queue.ring / 2) - 1);
}

/// A sample in the legend and what it means.
struct LegendItem {
  std::string css_class;
  std::string_view meaning;
  bool is_arrow = false;
  bool begins_row = false;
};

class QueuePicture {
 public:
  QueuePicture(const Plan& plan, const Selection& selection, const NodeProgram& program)
      : plan_(plan),
        selection_(selection),
        program_(program),
        ops_(plan.ops(ProgramOf(plan, program.node))),
        send_queue_(program.qps.size()),
        receive_queue_(program.qps.size()),
        signaled_(program.qps.size()) {
    MakeQueues();
    for (size_t i = 0; i < program_.qps.size(); ++i) FillQueues(i);
    if (!ShowsAll()) {
      FindCompletions();
      for (size_t i = 0; i < program_.qps.size(); ++i) ShowNeeded(i);
    }
    const std::vector<int> widths = PlaceQueues();
    MakeArrows(widths.size());
    PlaceColumns(widths);
    MakeLegend();
  }

  size_t shown() const { return shown_; }
  std::string Draw() const;

 private:
  void MakeQueues();
  void MakeReceiveQueue(size_t qp);
  void MakeSendQueue(size_t qp);
  void FillQueues(size_t qp);
  void FindCompletions();
  void ShowNeeded(size_t qp);
  std::vector<int> PlaceQueues();
  void MakeArrows(size_t columns);
  void PlaceColumns(const std::vector<int>& widths);
  void Measure(Queue& queue);
  static void PlaceEntries(Queue& queue);
  Entry MakeEntry(const SendEntry& send, size_t qp, uint32_t cqe) const;
  bool ShowsAll() const { return selection_.blocks.empty() && !selection_.rounds; }
  bool IsShown(OpId op) const;
  std::string NameOf(OpId op) const;
  std::optional<Place> SourceOf(const SendEntry& wait) const;
  OpId OpAt(const SendEntry& wait) const;
  std::string Note() const;
  void MakeLegend();
  bool IsDrawn(std::string_view css_class) const;
  std::string ArrowClass(size_t route) const;
  std::optional<size_t> FirstArrow(bool enables) const;
  static void DrawLegendArrow(Svg& svg, const Box& box, std::string_view css_class);
  void DrawLegend(Svg& svg) const;
  void DrawQueue(Svg& svg, const Queue& queue) const;
  void DrawArrows(Svg& svg) const;

  const Plan& plan_;
  const Selection& selection_;
  const NodeProgram& program_;
  std::span<const Op> ops_;
  std::vector<Queue> queues_;
  std::vector<size_t> send_queue_;             ///< by QP; meaningless for a queue without entries
  std::vector<size_t> receive_queue_;          ///< as above
  std::vector<std::vector<size_t>> signaled_;  ///< by QP: the entries of its SQ that give CQEs
  struct Completion {
    nic::CqId cq{nic::kNoOp.value};
    uint32_t index = 0;
  };
  std::vector<Completion> completions_;  ///< by op; of a selection only
  size_t shown_ = 0;
  size_t entries_ = 0;
  size_t empty_ = 0;            ///< queues none of whose entries is shown: not drawn
  std::vector<Place> sources_;  ///< of `arrows_`, by route
  std::optional<Routes> arrows_;
  size_t arrows_left_out_ = 0;  ///< all of them, when they are too many
  std::vector<LegendItem> legend_;
  std::vector<Extent> columns_;  ///< by number
  int top_ = 0;                  ///< of the columns
  int height_ = 0;               ///< of the columns
};

/// ", a ring of 16": of a queue that is written in parts.
std::string RingNote(bool in_parts, uint32_t ring) {
  return in_parts ? fmt::format(", a ring of {}", ring) : "";
}

void QueuePicture::MakeReceiveQueue(size_t index) {
  const QueuePair& qp = program_.qps[index];
  if (qp.receives.empty()) return;
  receive_queue_[index] = queues_.size();
  queues_.push_back({.title = nic::Describe(program_, nic::QpId::FromIndex(index)),
                     .detail = fmt::format("receive queue, CQ {}{}", qp.recv_cq.value,
                                           RingNote(qp.receives_in_parts(), qp.rq_wqes)),
                     .entries = {},
                     .receives = true,
                     .ring = qp.receives_in_parts() ? qp.rq_wqes : 0});
}

void QueuePicture::MakeSendQueue(size_t index) {
  const QueuePair& qp = program_.qps[index];
  if (qp.sends.empty()) return;
  const bool is_master = std::ranges::count(qp.sends, Opcode::kSendEnable, &SendEntry::opcode) != 0;
  send_queue_[index] = queues_.size();
  queues_.push_back(
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

void QueuePicture::MakeQueues() {
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

bool QueuePicture::IsShown(OpId id) const {
  if (ShowsAll()) return true;
  if (id == nic::kNoOp) return false;
  const Op& op = ops_[id.index()];
  return selection_.HasBlock(op.block) && selection_.HasRound(op.round);
}

/// "send b3 to 4", "recv credit from 2", "the end".
std::string QueuePicture::NameOf(OpId id) const {
  if (id == nic::kNoOp) return "the end";
  const Op& op = ops_[id.index()];
  const Channel& channel = plan_.channels()[op.channel.index()];
  return fmt::format(
      "{} {} {} {}", Name(op.kind), op.is_credit() ? "credit" : fmt::format("b{}", op.block),
      op.is_send() ? "to" : "from", op.is_send() ? channel.to.value : channel.from.value);
}

/// The entry whose CQE `wait` waits for.
std::optional<Place> QueuePicture::SourceOf(const SendEntry& wait) const {
  const CompletionQueue& cq = program_.cqs[wait.cq.index()];
  const size_t qp = cq.qp.index();
  switch (cq.role) {
    case CompletionQueue::Role::kReceives:
      return Place{.queue = receive_queue_[qp], .index = wait.cqe_index};
    case CompletionQueue::Role::kSends:
    case CompletionQueue::Role::kFinal:
      if (wait.cqe_index >= signaled_[qp].size()) return std::nullopt;
      return Place{.queue = send_queue_[qp], .index = signaled_[qp][wait.cqe_index]};
    case CompletionQueue::Role::kIdle:
      return std::nullopt;
  }
  return std::nullopt;
}

/// The op whose completion `wait` waits for.
OpId QueuePicture::OpAt(const SendEntry& wait) const {
  const CompletionQueue& cq = program_.cqs[wait.cq.index()];
  const QueuePair& qp = program_.qps[cq.qp.index()];
  if (cq.role == CompletionQueue::Role::kReceives) return qp.receives[wait.cqe_index].op;
  const std::optional<Place> source = SourceOf(wait);
  return source ? qp.sends[source->index].op : nic::kNoOp;
}

Entry QueuePicture::MakeEntry(const SendEntry& send, size_t qp, uint32_t cqe) const {
  Entry entry;
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
    entry.enables = Place{.queue = send_queue_[send.qp.index()], .index = send.count - 1};
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

void QueuePicture::FillQueues(size_t index) {
  const QueuePair& qp = program_.qps[index];
  uint32_t cqe = 0;
  for (const SendEntry& send : qp.sends) {
    queues_[send_queue_[index]].entries.push_back(MakeEntry(send, index, cqe));
    if (send.signaled) ++cqe;
  }
  for (size_t i = 0; i < qp.receives.size(); ++i) {
    const OpId op = qp.receives[i].op;
    Entry entry;
    entry.css_class = "recv";
    entry.what = fmt::format("{} (op {})", NameOf(op), op.value);
    entry.detail = fmt::format("gives CQE {} of CQ {}", i, qp.recv_cq.value);
    entry.shown = IsShown(op);
    queues_[receive_queue_[index]].entries.push_back(std::move(entry));
  }
}

void QueuePicture::FindCompletions() {
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
void QueuePicture::ShowNeeded(size_t index) {
  if (program_.qps[index].sends.empty()) return;
  std::vector<Entry>& entries = queues_[send_queue_[index]].entries;
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
void QueuePicture::Measure(Queue& queue) {
  double text = std::max(TextWidth(queue.title, 14), TextWidth(queue.detail, 12));
  queue.drawn = false;
  size_t rearm = 0;  // of the entry shown before
  for (size_t i = 0; i < queue.entries.size(); ++i) {
    Entry& entry = queue.entries[i];
    ++entries_;
    if (!entry.shown) continue;
    ++shown_;
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
void QueuePicture::PlaceEntries(Queue& queue) {
  int y = kTitleHeight;
  bool gap = false;
  for (Entry& entry : queue.entries) {
    if (entry.rearm != 0) y += kGapHeight;
    entry.y = y;  // of a gap: read at its first entry only
    if (entry.shown) {
      y += kBoxHeight + kSpace;
    } else if (!gap) {
      y += kGapHeight;
    }
    gap = !entry.shown;
  }
  queue.height = y;
}

/// Receive queues are short, and so are managed ones, so several of a kind share a column, as long
/// as they are no higher together than the highest other queue. Returns the columns' widths.
std::vector<int> QueuePicture::PlaceQueues() {
  int highest = 0;
  for (Queue& queue : queues_) {
    Measure(queue);
    PlaceEntries(queue);
    if (!queue.drawn) ++empty_;
    if (queue.drawn && !queue.receives && !queue.managed) highest = std::max(highest, queue.height);
  }
  std::vector<int> widths;
  int y = 0;
  const Queue* above = nullptr;
  for (Queue& queue : queues_) {
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
    for (Entry& entry : queue.entries) entry.y += y;
    widths.back() = std::max(widths.back(), queue.width);
    y += queue.height;
    height_ = std::max(height_, y);
  }
  return widths;
}

void QueuePicture::MakeArrows(size_t columns) {
  std::map<Place, std::vector<RouteEnd>> ends;  // by source
  size_t arrows = 0;
  const auto add = [&](Place from, Place to) {
    const Entry& entry = queues_[to.queue].entries[to.index];
    if (!entry.shown || !queues_[from.queue].entries[from.index].shown) return;
    ends[from].push_back({.column = queues_[to.queue].column, .y = entry.y});
    ++arrows;
  };
  for (size_t queue = 0; queue < queues_.size(); ++queue) {
    for (size_t i = 0; i < queues_[queue].entries.size(); ++i) {
      const Entry& entry = queues_[queue].entries[i];
      if (entry.waits_for) add(*entry.waits_for, {.queue = queue, .index = i});
      if (entry.enables) add({.queue = queue, .index = i}, *entry.enables);
    }
  }
  std::vector<Route> routes;
  for (auto& [place, to] : ends) {
    const Queue& queue = queues_[place.queue];
    sources_.push_back(place);
    routes.push_back(
        {.from = {.column = queue.column, .y = queue.entries[place.index].y}, .to = std::move(to)});
  }
  arrows_.emplace(std::move(routes), columns);
  if (arrows_->most() <= kArrowsSideBySideMax) return;
  arrows_left_out_ = arrows;
  arrows_.emplace(std::vector<Route>(), columns);
}

void QueuePicture::PlaceColumns(const std::vector<int>& widths) {
  top_ = kChartHeaderHeight - 24 + arrows_->height();
  int x = kChartMargin;
  for (size_t i = 0; i < widths.size(); ++i) {
    x += arrows_->GutterWidth(i);
    columns_.push_back({.left = x, .right = x + widths[i]});
    x += widths[i];
  }
}

void QueuePicture::DrawQueue(Svg& svg, const Queue& queue) const {
  const Extent& column = columns_[queue.column];
  svg.Text("q", column.left, top_ + queue.y + 16, queue.title);
  svg.Text("d", column.left, top_ + queue.y + 32, queue.detail);
  for (size_t i = 0; i < queue.entries.size(); ++i) {
    const Entry& entry = queue.entries[i];
    const int y = top_ + entry.y;
    if (!entry.shown) {
      size_t end = i;
      while (end < queue.entries.size() && !queue.entries[end].shown) ++end;
      svg.Text("gap", column.left + 4, y + 11, fmt::format("... {} not shown", end - i));
      i = end - 1;
      continue;
    }
    if (entry.rearm != 0) {
      const int line = y - kGapHeight - kSpace / 2;
      svg.Lines("part", std::array{Line{{column.left, line}, {column.right, line}}});
      svg.Text("gap", column.left + 4, y - kGapHeight + 11, RearmNote(queue, entry.rearm));
    }
    svg.BeginGroup("entry", fmt::format("{} {}: {}, {}", queue.title, i, entry.what, entry.detail));
    svg.Rect(entry.css_class, {column.left, y, column.right - column.left, kBoxHeight});
    svg.Text("r", column.left + 24, y + 13, fmt::to_string(i));
    svg.Text("a", column.left + 30, y + 13, entry.what);
    svg.Text("d", column.left + 30, y + 27, entry.detail);
    svg.EndGroup();
  }
}

/// Where two cross, the one below is interrupted.
void QueuePicture::DrawArrows(Svg& svg) const {
  for (size_t i = 0; i < sources_.size() && arrows_left_out_ == 0; ++i) {
    const Queue& queue = queues_[sources_[i].queue];
    const Entry& entry = queue.entries[sources_[i].index];
    const RoutePicture route = arrows_->Place(i, columns_, top_);
    svg.BeginGroup(
        ArrowClass(i),
        fmt::format("from {} {}, {}, to {}", queue.title, sources_[i].index, entry.what,
                    entry.enables ? "its last WQE enabled" : Count(route.heads.size(), "WAIT")));
    svg.Lines("under", route.lines);
    svg.Lines("arrow", route.lines);
    for (const Point& tip : route.heads) svg.Head("head", tip);
    svg.EndGroup();
  }
}

std::string QueuePicture::Note() const {
  std::string note =
      fmt::format("the queues as preposted: {}, {}; started by {}",
                  entries_ == 1 ? "1 entry" : fmt::format("{} entries", entries_),
                  Count(program_.waits(), "WAIT"), Count(program_.doorbells(), "doorbell"));
  if (program_.enables() > 0)
    note += fmt::format("; managed by {}", Count(program_.enables(), "SEND_EN"));
  if (program_.rearms() > 0)
    note += fmt::format("; {} meanwhile", Count(program_.rearms(), "re-arm"));
  if (empty_ > 0) note += fmt::format("; {} with nothing to show left out", Count(empty_, "queue"));
  if (shown_ < entries_) {
    Selection only = selection_;
    only.nodes.clear();
    note += fmt::format("; {}: {} of {} entries", Describe(only), shown_, entries_);
  }
  if (arrows_left_out_ > 0) {
    note += fmt::format("; {} would be too many to follow, --rounds or --block narrow it",
                        Count(arrows_left_out_, "arrow"));
  }
  return note;
}

/// Is there a box of this kind?
bool QueuePicture::IsDrawn(std::string_view css_class) const {
  return std::ranges::any_of(queues_, [&](const Queue& queue) {
    return std::ranges::any_of(queue.entries, [&](const Entry& entry) {
      return entry.shown && entry.css_class == css_class;
    });
  });
}

std::string QueuePicture::ArrowClass(size_t route) const {
  const Place& from = sources_[route];
  const bool enables = queues_[from.queue].entries[from.index].enables.has_value();
  return fmt::format("k{}{}", route % kArrowColors, enables ? " enables" : "");
}

/// The first route of a SEND_EN, or of a CQE.
std::optional<size_t> QueuePicture::FirstArrow(bool enables) const {
  for (size_t i = 0; i < sources_.size() && arrows_left_out_ == 0; ++i) {
    const Entry& entry = queues_[sources_[i].queue].entries[sources_[i].index];
    if (entry.enables.has_value() == enables) return i;
  }
  return std::nullopt;
}

void QueuePicture::MakeLegend() {
  const bool in_parts = program_.rearms() > 0;
  const bool all_shown = shown_ == entries_;  // else nothing of the end is
  const LegendItem boxes[] = {
      {"wait", "holds its queue until a CQ has a CQE"},
      {"enable", "lets a managed queue run so far"},
      {"send", "send"},
      {"held", "send, held until enabled"},
      {"recv", in_parts ? "receive, posted ahead" : "receive, posted before the start"},
      {"nop", in_parts ? "the last completion" : "the host's only completion"}};
  std::ranges::copy_if(boxes, std::back_inserter(legend_),
                       [this](const LegendItem& item) { return IsDrawn(item.css_class); });
  if (const std::optional<size_t> cqe = FirstArrow(/*enables=*/false)) {
    legend_.push_back({ArrowClass(*cqe),
                       all_shown ? "whose CQE a WAIT waits for; those of the end have no arrows"
                                 : "whose CQE a WAIT waits for, where that is shown",
                       /*is_arrow=*/true});
  }
  if (const std::optional<size_t> enables = FirstArrow(/*enables=*/true)) {
    legend_.push_back({ArrowClass(*enables), "the last WQE enabled", /*is_arrow=*/true});
  }
  int x = kChartMargin;
  const int right = std::max(columns_.empty() ? 0 : columns_.back().right, kLegendWidthMin);
  for (LegendItem& item : legend_) {
    const int width = Legend::WidthOf(item.is_arrow ? kArrowSample : kBoxSample, item.meaning);
    item.begins_row = x > kChartMargin && x + width > right;
    if (item.begins_row) {
      x = kChartMargin;
      top_ += kLegendRowHeight;
    }
    x += width;
  }
}

void QueuePicture::DrawLegendArrow(Svg& svg, const Box& box, std::string_view css_class) {
  const Point tip{box.x + box.width, box.y + 8};
  svg.BeginGroup(css_class, "");
  svg.Lines("arrow", std::array{Line{{box.x, tip.y}, {tip.x - kArrowHead, tip.y}}});
  svg.Head("head", tip);
  svg.EndGroup();
}

void QueuePicture::DrawLegend(Svg& svg) const {
  Legend legend(svg);
  for (const LegendItem& item : legend_) {
    if (item.begins_row) legend.BeginRow();
    const Box box = legend.Sample(item.is_arrow ? kArrowSample : kBoxSample);
    if (item.is_arrow) {
      DrawLegendArrow(svg, box, item.css_class);
    } else {
      svg.Rect(item.css_class, box);
    }
    legend.Meaning(item.meaning);
  }
}

std::string QueuePicture::Draw() const {
  const Grid grid{.left = kChartMargin,
                  .top = top_,
                  .cell_width = columns_.empty() ? 0 : columns_.back().right - kChartMargin,
                  .cell_height = height_,
                  .columns = 1,
                  .rows = 1};
  const PlanHeader& header = plan_.header();
  Svg svg = StartChart(
      grid,
      {.headline = fmt::format("{}, {}", Headline(header), RowLabel(header, program_.node)),
       .subline = Subline(header),
       .note = Note(),
       .right = ""},
      kChartMargin, kQueueStyle);
  DrawLegend(svg);
  DrawArrows(svg);
  for (const Queue& queue : queues_) {
    if (queue.drawn) DrawQueue(svg, queue);
  }
  return std::move(svg).Finish();
}

}  // namespace

Result<std::string> DrawQueues(const Plan& plan, const Selection& selection,
                               const nic::LowerOptions& lower, size_t* shown) {
  if (selection.nodes.size() != 1) {
    return Status(StatusCode::kUsage, "the queues view shows one node: name it with --node");
  }
  nic::LowerOptions options = lower;
  options.node = selection.nodes.front();
  const Result<nic::QueueProgram> program = nic::Lower(plan, options);
  if (!program.ok()) return program.status();
  const QueuePicture picture(plan, selection, program->nodes.front());
  if (picture.shown() > kQueueEntriesMax) {
    return Rejected(
        fmt::format("a picture of {} queue entries is not readable, the limit is {}: "
                    "narrow it with --rounds first:last or --block, or use prepost "
                    "lower --node {} --list",
                    picture.shown(), kQueueEntriesMax, selection.nodes.front().value));
  }
  if (shown != nullptr) *shown = picture.shown();
  return picture.Draw();
}

}  // namespace prepost::viz
