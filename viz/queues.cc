// SPDX-License-Identifier: Apache-2.0
//
// Every queue that has entries is a column with a box per entry: receive queues first, then send
// queues, last the loopback queue, so that most arrows run to the right. A WAIT names a CQ and a CQE;
// its box says whose completion that is, and an arrow comes from there, when that is drawn too. The
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
#include <cmath>
#include <optional>
#include <vector>

#include "prepost/backends/nic/lower.h"
#include "prepost/runtime/program.h"
#include "prepost/viz/chart.h"

namespace prepost::viz {
namespace {

using nic::CompletionQueue;
using nic::NodeProgram;
using nic::Opcode;
using nic::QueuePair;
using nic::SendEntry;

constexpr int kBoxHeight = 32;
constexpr int kGapHeight = 18;  ///< of a note on what is left out
constexpr int kSpace = 6;
constexpr int kTitleHeight = 44;
constexpr int kColumnGap = 44;  ///< room for arrows
constexpr int kBoxWidthMin = 150;

constexpr std::string_view kQueueStyle =
    ".wait{fill:#fff;stroke:#b4641e}.send{fill:#cfe2f7;stroke:#333}.recv{fill:#fde3c0;stroke:#333}"
    ".nop{fill:#e8e8e8;stroke:#333}.q{font-size:13px;font-weight:bold}.a{font-size:11px;"
    "font-weight:bold}.d{font-size:11px;fill:#444}.gap{font-size:11px;fill:#777}"
    ".arrow{fill:none;stroke:#b4641e;stroke-width:1.3}.head{fill:#b4641e}";

/// Where an entry stands: the column of its queue and its index there.
struct Place {
  size_t column = 0;
  size_t index = 0;
};

struct Entry {
  std::string_view css_class;
  std::string what;    ///< "WAIT CQ 1 until CQE 0"
  std::string detail;  ///< "for recv b0 from 0"
  bool shown = true;
  std::optional<Place> waits_for;
  int y = 0;
};

/// A queue.
struct Column {
  std::string title;   ///< "QP 1>2 blocks"
  std::string detail;  ///< "SQ, completes on CQ 3"
  std::vector<Entry> entries;
  bool receives = false;
  bool drawn = true;  ///< an entry is shown
  int width = 0;      ///< needed
  int height = 0;     ///< needed, with the title
  Box area;
};

class QueuePicture {
 public:
  QueuePicture(const Plan& plan, const Selection& selection, const NodeProgram& program)
      : plan_(plan),
        selection_(selection),
        program_(program),
        ops_(plan.ops(ProgramOf(plan, program.node))),
        send_column_(program.qps.size()),
        receive_column_(program.qps.size()),
        signaled_(program.qps.size()) {
    MakeColumns();
    for (size_t i = 0; i < program_.qps.size(); ++i) FillColumns(i);
    PlaceColumns();
  }

  size_t shown() const { return shown_; }
  std::string Draw() const;

 private:
  void MakeColumns();
  void FillColumns(size_t qp);
  void PlaceColumns();
  void Measure(Column& column);
  static void PlaceColumn(Column& column, const Box& area);
  Entry MakeEntry(const SendEntry& send, size_t qp, uint32_t cqe) const;
  bool IsShown(OpId op) const;
  std::string NameOf(OpId op) const;
  std::optional<Place> SourceOf(const SendEntry& wait) const;
  OpId OpAt(const SendEntry& wait) const;
  void DrawColumn(Svg& svg, const Column& column) const;
  void DrawArrows(Svg& svg) const;

  const Plan& plan_;
  const Selection& selection_;
  const NodeProgram& program_;
  std::span<const Op> ops_;
  std::vector<Column> columns_;
  std::vector<size_t> send_column_;            ///< by QP; meaningless for a queue without entries
  std::vector<size_t> receive_column_;         ///< as above
  std::vector<std::vector<size_t>> signaled_;  ///< by QP: the entries of its SQ that give CQEs
  size_t shown_ = 0;
  size_t entries_ = 0;
  size_t empty_ = 0;  ///< queues none of whose entries is shown: not drawn
  int right_ = kChartMargin;
  int bottom_ = kChartHeaderHeight;
};

void QueuePicture::MakeColumns() {
  for (size_t i = 0; i < program_.qps.size(); ++i) {
    const QueuePair& qp = program_.qps[i];
    if (qp.receives.empty()) continue;
    receive_column_[i] = columns_.size();
    columns_.push_back({.title = nic::Describe(program_, nic::QpId::FromIndex(i)),
                        .detail = fmt::format("receive queue, CQ {}", qp.recv_cq.value),
                        .entries = {},
                        .receives = true});
  }
  for (size_t i = 0; i < program_.qps.size(); ++i) {
    const QueuePair& qp = program_.qps[i];
    if (qp.sends.empty()) continue;
    send_column_[i] = columns_.size();
    columns_.push_back({.title = nic::Describe(program_, nic::QpId::FromIndex(i)),
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
      return Place{.column = receive_column_[qp], .index = wait.cqe_index};
    case CompletionQueue::Role::kSends:
    case CompletionQueue::Role::kFinal:
      if (wait.cqe_index >= signaled_[qp].size()) return std::nullopt;
      return Place{.column = send_column_[qp], .index = signaled_[qp][wait.cqe_index]};
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

void QueuePicture::FillColumns(size_t index) {
  const QueuePair& qp = program_.qps[index];
  uint32_t cqe = 0;
  for (const SendEntry& send : qp.sends) {
    columns_[send_column_[index]].entries.push_back(MakeEntry(send, index, cqe));
    if (send.signaled) ++cqe;
  }
  for (size_t i = 0; i < qp.receives.size(); ++i) {
    const OpId op = qp.receives[i].op;
    Entry entry;
    entry.css_class = "recv";
    entry.what = fmt::format("{} (op {})", NameOf(op), op.value);
    entry.detail = fmt::format("gives CQE {} of CQ {}", i, qp.recv_cq.value);
    entry.shown = IsShown(op);
    columns_[receive_column_[index]].entries.push_back(std::move(entry));
  }
}

/// Counts entries, and says how much room the column needs.
void QueuePicture::Measure(Column& column) {
  double text = std::max(TextWidth(column.title, 14), TextWidth(column.detail, 12));
  column.height = kTitleHeight;
  bool gap = false;
  for (const Entry& entry : column.entries) {
    ++entries_;
    if (entry.shown) {
      ++shown_;
      column.height += kBoxHeight + kSpace;
      text = std::max({text, TextWidth(entry.what, 11.5) + 34, TextWidth(entry.detail, 11) + 34});
    } else if (!gap) {
      column.height += kGapHeight;
    }
    gap = !entry.shown;
  }
  column.width = std::max(kBoxWidthMin, static_cast<int>(std::ceil(text)) + 8);
}

void QueuePicture::PlaceColumn(Column& column, const Box& area) {
  column.area = area;
  int y = area.y + kTitleHeight;
  bool gap = false;
  for (Entry& entry : column.entries) {
    entry.y = y;  // of a gap: read at its first entry only
    if (entry.shown) {
      y += kBoxHeight + kSpace;
    } else if (!gap) {
      y += kGapHeight;
    }
    gap = !entry.shown;
  }
}

/// Receive queues are short, so several share a column, as long as they are no higher together than
/// the highest send queue.
void QueuePicture::PlaceColumns() {
  int highest = 0;
  std::vector<Column*> drawn;
  for (Column& column : columns_) {
    Measure(column);
    column.drawn = std::ranges::any_of(column.entries, &Entry::shown);
    if (!column.drawn) {
      ++empty_;
      continue;
    }
    drawn.push_back(&column);
    if (!column.receives) highest = std::max(highest, column.height);
  }
  int x = kChartMargin;
  for (size_t i = 0; i < drawn.size();) {
    size_t end = i + 1;
    int height = drawn[i]->height;
    int width = drawn[i]->width;
    while (end < drawn.size() && drawn[end]->receives && height + drawn[end]->height <= highest) {
      height += drawn[end]->height;
      width = std::max(width, drawn[end]->width);
      ++end;
    }
    int y = kChartHeaderHeight - 24;
    for (; i < end; ++i) {
      PlaceColumn(*drawn[i], {x, y, width, drawn[i]->height});
      y += drawn[i]->height;
    }
    bottom_ = std::max(bottom_, y);
    right_ = x + width;
    x = right_ + kColumnGap;
  }
}

void QueuePicture::DrawColumn(Svg& svg, const Column& column) const {
  const int x = column.area.x;
  svg.Text("q", x, column.area.y + 16, column.title);
  svg.Text("d", x, column.area.y + 32, column.detail);
  for (size_t i = 0; i < column.entries.size(); ++i) {
    const Entry& entry = column.entries[i];
    if (!entry.shown) {
      size_t end = i;
      while (end < column.entries.size() && !column.entries[end].shown) ++end;
      svg.Text("gap", x + 4, entry.y + 12, fmt::format("... {} not shown", end - i));
      i = end - 1;
      continue;
    }
    svg.BeginGroup("entry",
                   fmt::format("{} {}: {}, {}", column.title, i, entry.what, entry.detail));
    svg.Rect(entry.css_class, {x, entry.y, column.area.width, kBoxHeight});
    svg.Text("r", x + 24, entry.y + 13, fmt::to_string(i));
    svg.Text("a", x + 30, entry.y + 13, entry.what);
    svg.Text("d", x + 30, entry.y + 27, entry.detail);
    svg.EndGroup();
  }
}

void QueuePicture::DrawArrows(Svg& svg) const {
  for (const Column& column : columns_) {
    for (const Entry& entry : column.entries) {
      if (!entry.shown || !entry.waits_for) continue;
      const Column& source_column = columns_[entry.waits_for->column];
      const Entry& source = source_column.entries[entry.waits_for->index];
      if (!source.shown) continue;
      const int middle = kBoxHeight / 2;
      svg.Arrow("arrow", "head", source_column.area.x + source_column.area.width, source.y + middle,
                column.area.x, entry.y + middle);
    }
  }
}

std::string QueuePicture::Draw() const {
  const NodeId node = program_.node;
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
  const Grid grid{.left = kChartMargin,
                  .top = kChartHeaderHeight,
                  .cell_width = right_ - kChartMargin,
                  .cell_height = bottom_ - kChartHeaderHeight,
                  .columns = 1,
                  .rows = 1};
  const PlanHeader& header = plan_.header();
  Svg svg = StartChart(grid,
                       {.headline = fmt::format("{}, {}", Headline(header), RowLabel(header, node)),
                        .subline = Subline(header),
                        .note = std::move(note),
                        .right = ""},
                       kChartMargin, kQueueStyle);
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
  const Box arrow = legend.Sample(40);
  svg.Arrow("arrow", "head", arrow.x, arrow.y + 8, arrow.x + arrow.width, arrow.y + 8);
  legend.Meaning("whose CQE a WAIT waits for; none for those of the loopback queue");
  DrawArrows(svg);  // below the boxes
  for (const Column& column : columns_) {
    if (column.drawn) DrawColumn(svg, column);
  }
  return std::move(svg).Finish();
}

}  // namespace

Result<std::string> DrawQueues(const Plan& plan, const Selection& selection) {
  if (selection.nodes.size() != 1) {
    return Status(StatusCode::kUsage, "the queues view shows one node: name it with --node");
  }
  const Result<nic::QueueProgram> program =
      nic::Lower(plan, {.limits = {}, .node = selection.nodes.front()});
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
