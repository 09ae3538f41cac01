// SPDX-License-Identifier: Apache-2.0
//
// Every queue that has entries to show has a box per entry: receive queues first, then send queues,
// last the loopback queue, so that most arrows run to the right. Queues stand in columns, short
// receive queues below each other. A WAIT names a CQ and a CQE; its box says whose completion that
// is, and an arrow comes from there, when that is drawn too and there are not too many arrows. The
// loopback queue waits for the last CQE of every CQ: it gets no arrows.
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
#include <map>
#include <optional>
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

constexpr std::string_view kQueueStyle =
    ".wait{fill:#fff;stroke:#b4641e}.send{fill:#cfe2f7;stroke:#333}.recv{fill:#fde3c0;stroke:#333}"
    ".nop{fill:#e8e8e8;stroke:#333}.q{font-size:13px;font-weight:bold}.a{font-size:11px;"
    "font-weight:bold}.d{font-size:11px;fill:#444}.gap{font-size:11px;fill:#777}"
    ".under,.arrow{fill:none;stroke-linecap:square}.under{stroke:#fff;stroke-width:3.4}"
    ".arrow{stroke:currentColor;stroke-width:1.4}.head{fill:currentColor}"
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
  int y = 0;  ///< below the top of the columns
};

/// A queue.
struct Queue {
  std::string title;   ///< "QP 1>2 blocks"
  std::string detail;  ///< "send queue, CQ 3"
  std::vector<Entry> entries;
  bool receives = false;
  bool drawn = true;  ///< an entry is shown
  int width = 0;      ///< needed
  int height = 0;     ///< needed, with the title
  int y = 0;          ///< below the top of the columns
  size_t column = 0;
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
    const std::vector<int> widths = PlaceQueues();
    MakeArrows(widths.size());
    PlaceColumns(widths);
  }

  size_t shown() const { return shown_; }
  std::string Draw() const;

 private:
  void MakeQueues();
  void FillQueues(size_t qp);
  std::vector<int> PlaceQueues();
  void MakeArrows(size_t columns);
  void PlaceColumns(const std::vector<int>& widths);
  void Measure(Queue& queue);
  static void PlaceEntries(Queue& queue);
  Entry MakeEntry(const SendEntry& send, size_t qp, uint32_t cqe) const;
  bool IsShown(OpId op) const;
  std::string NameOf(OpId op) const;
  std::optional<Place> SourceOf(const SendEntry& wait) const;
  OpId OpAt(const SendEntry& wait) const;
  std::string Note() const;
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
  size_t shown_ = 0;
  size_t entries_ = 0;
  size_t empty_ = 0;            ///< queues none of whose entries is shown: not drawn
  std::vector<Place> sources_;  ///< of `arrows_`, by route
  std::optional<Routes> arrows_;
  size_t arrows_left_out_ = 0;   ///< all of them, when they are too many
  std::vector<Extent> columns_;  ///< by number
  int top_ = 0;                  ///< of the columns
  int height_ = 0;               ///< of the columns
};

void QueuePicture::MakeQueues() {
  for (size_t i = 0; i < program_.qps.size(); ++i) {
    const QueuePair& qp = program_.qps[i];
    if (qp.receives.empty()) continue;
    receive_queue_[i] = queues_.size();
    queues_.push_back({.title = nic::Describe(program_, nic::QpId::FromIndex(i)),
                       .detail = fmt::format("receive queue, CQ {}", qp.recv_cq.value),
                       .entries = {},
                       .receives = true});
  }
  for (size_t i = 0; i < program_.qps.size(); ++i) {
    const QueuePair& qp = program_.qps[i];
    if (qp.sends.empty()) continue;
    send_queue_[i] = queues_.size();
    queues_.push_back({.title = nic::Describe(program_, nic::QpId::FromIndex(i)),
                       .detail = fmt::format("send queue, CQ {}", qp.send_cq.value),
                       .entries = {}});
    for (size_t entry = 0; entry < qp.sends.size(); ++entry) {
      if (qp.sends[entry].signaled) signaled_[i].push_back(entry);
    }
  }
}

bool QueuePicture::IsShown(OpId id) const {
  if (selection_.blocks.empty() && !selection_.rounds) return true;
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
  if (send.opcode == Opcode::kWait) {
    entry.css_class = "wait";
    entry.what = fmt::format("WAIT CQ {} until CQE {}", send.cq.value, send.cqe_index);
    entry.detail = "for " + NameOf(OpAt(send));
    if (send.op != nic::kNoOp) entry.waits_for = SourceOf(send);
    return entry;
  }
  entry.css_class = send.op == nic::kNoOp ? "nop" : "send";
  entry.what = send.op == nic::kNoOp ? std::string(Name(send.opcode))
                                     : fmt::format("{} (op {})", NameOf(send.op), send.op.value);
  entry.detail = send.signaled
                     ? fmt::format("gives CQE {} of CQ {}", cqe, program_.qps[qp].send_cq.value)
                     : "not signaled";
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

/// Counts entries, and says how much room the queue needs.
void QueuePicture::Measure(Queue& queue) {
  double text = std::max(TextWidth(queue.title, 14), TextWidth(queue.detail, 12));
  queue.drawn = false;
  for (const Entry& entry : queue.entries) {
    ++entries_;
    if (!entry.shown) continue;
    ++shown_;
    queue.drawn = true;
    text = std::max({text, TextWidth(entry.what, 11.5) + 34, TextWidth(entry.detail, 11) + 34});
  }
  queue.width = std::max(kBoxWidthMin, static_cast<int>(std::ceil(text)) + 8);
}

/// For a queue whose `y` is 0.
void QueuePicture::PlaceEntries(Queue& queue) {
  int y = kTitleHeight;
  bool gap = false;
  for (Entry& entry : queue.entries) {
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

/// Receive queues are short, so several share a column, as long as they are no higher together than
/// the highest send queue. Returns the columns' widths.
std::vector<int> QueuePicture::PlaceQueues() {
  int highest = 0;
  for (Queue& queue : queues_) {
    Measure(queue);
    PlaceEntries(queue);
    if (!queue.drawn) ++empty_;
    if (queue.drawn && !queue.receives) highest = std::max(highest, queue.height);
  }
  std::vector<int> widths;
  int y = 0;
  for (Queue& queue : queues_) {
    if (!queue.drawn) continue;
    if (widths.empty() || !queue.receives || y + queue.height > highest) {
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
  std::map<Place, std::vector<RouteEnd>> waits;  // by source
  size_t arrows = 0;
  for (const Queue& queue : queues_) {
    for (const Entry& entry : queue.entries) {
      if (!entry.shown || !entry.waits_for) continue;
      if (!queues_[entry.waits_for->queue].entries[entry.waits_for->index].shown) continue;
      waits[*entry.waits_for].push_back({.column = queue.column, .y = entry.y});
      ++arrows;
    }
  }
  std::vector<Route> routes;
  for (auto& [place, ends] : waits) {
    const Queue& queue = queues_[place.queue];
    sources_.push_back(place);
    routes.push_back({.from = {.column = queue.column, .y = queue.entries[place.index].y},
                      .to = std::move(ends)});
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
    svg.BeginGroup(fmt::format("k{}", i % kArrowColors),
                   fmt::format("from {} {}, {}, to {}", queue.title, sources_[i].index, entry.what,
                               Count(route.heads.size(), "WAIT")));
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

void QueuePicture::DrawLegend(Svg& svg) const {
  Legend legend(svg);
  constexpr std::pair<std::string_view, std::string_view> kSamples[] = {
      {"wait", "holds its queue until a CQ has a CQE"},
      {"send", "send"},
      {"recv", "receive, posted before the start"},
      {"nop", "the host's only completion"}};
  for (const auto& [css_class, meaning] : kSamples) {
    svg.Rect(css_class, legend.Sample(24));
    legend.Meaning(meaning);
  }
  if (arrows_left_out_ > 0) return;
  const Box box = legend.Sample(40);
  const Point tip{box.x + box.width, box.y + 8};
  svg.BeginGroup("k0", "");
  svg.Lines("arrow", std::array{Line{{box.x, tip.y}, {tip.x - kArrowHead, tip.y}}});
  svg.Head("head", tip);
  svg.EndGroup();
  const bool all_shown = shown_ == entries_;  // else nothing of the loopback queue is
  legend.Meaning(all_shown ? "whose CQE a WAIT waits for; the loopback queue's have no arrows"
                           : "whose CQE a WAIT waits for, where that is shown");
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

Result<std::string> DrawQueues(const Plan& plan, const Selection& selection) {
  if (selection.nodes.size() != 1) {
    return Status(StatusCode::kUsage, "the queues view shows one node: name it with --node");
  }
  const Result<nic::QueueProgram> program = nic::Lower(plan, {.node = selection.nodes.front()});
  if (!program.ok()) return program.status();
  const QueuePicture picture(plan, selection, program->nodes.front());
  if (picture.shown() > kQueueEntriesMax) {
    return Rejected(
        fmt::format("a picture of {} queue entries is not readable, the limit is {}: "
                    "narrow it with --rounds first:last or --block, or use prepost "
                    "lower --node {} --list",
                    picture.shown(), kQueueEntriesMax, selection.nodes.front().value));
  }
  return picture.Draw();
}

}  // namespace prepost::viz
