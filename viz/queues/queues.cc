// SPDX-License-Identifier: Apache-2.0
//
// Draws what queue_layout.cc has placed: columns, boxes, arrows and the legend; and pictures beside
// each other.
#include "viz/queues/queues.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "backends/nic/program/lower.h"
#include "ir/base/count.h"
#include "viz/queues/queue_contents.h"
#include "viz/queues/queue_layout.h"
#include "viz/queues/routes.h"
#include "viz/svg/chart.h"

namespace prepost::viz {
namespace {

constexpr size_t kArrowColors = 5;
constexpr int kBoxSample = 24;  ///< widths in the legend
constexpr int kArrowSample = 40;
constexpr int kLegendWidthMin = 820;

constexpr std::string_view kQueueStyle =
    ".wait{fill:#fff;stroke:#b4641e}.send{fill:#cfe2f7;stroke:#333}.recv{fill:#fde3c0;stroke:#333}"
    ".nop{fill:#e8e8e8;stroke:#333}.enable{fill:#e3d4ef;stroke:#6a3d9a}.held{fill:#cfe2f7;"
    "stroke:#333;stroke-dasharray:4 "
    "3}.host{fill:#d9ecd5;stroke:#2e7d32}.q{font-size:13px;font-weight:bold}.a{font-size:11px;"
    "font-weight:bold}.d{font-size:11px;fill:#444}.gap{font-size:11px;fill:#777}"
    ".part{stroke:#777;stroke-dasharray:2 "
    "3}.under,.arrow{fill:none;stroke-linecap:square}.under{stroke:#fff;stroke-width:3.4}"
    ".arrow{stroke:currentColor;stroke-width:1.4}"
    ".enables .arrow{stroke-dasharray:4 4;stroke-linecap:butt}.head{fill:currentColor}"
    ".k0{color:#b4641e}.k1{color:#1f5fa8}.k2{color:#2e7d32}.k3{color:#8e24aa}.k4{color:#555}";

/// A sample in the legend and what it means.
struct LegendItem {
  std::string css_class;
  std::string meaning;
  bool is_arrow = false;
  bool begins_row = false;
};

/// What an engine's queues are called.
struct Engine {
  std::string name;  ///< in front of the note
  std::string note;  ///< "3 WAITs; started by 1 doorbell"
  std::vector<LegendItem> boxes;
  std::string waits = "";  ///< what an arrow to what waits means
  std::string waits_but = "";
  std::string enables = "";  ///< and one from what enables
};

class QueuePicture {
 public:
  QueuePicture(const Plan& plan, const Selection& selection, NodeId node, Engine engine,
               std::vector<DrawnQueue> queues)
      : plan_(plan),
        selection_(selection),
        node_(node),
        engine_(std::move(engine)),
        layout_(LayOutQueues(std::move(queues))) {
    PlaceColumns();
    MakeLegend();
  }

  size_t shown() const { return layout_.shown; }
  Svg Draw() const;

 private:
  void PlaceColumns();
  std::string Note() const;
  void MakeLegend();
  bool IsDrawn(std::string_view css_class) const;
  std::string ArrowClass(size_t route) const;
  std::optional<size_t> FirstArrow(bool enables) const;
  static void DrawLegendArrow(Svg& svg, const Box& box, std::string_view css_class);
  void DrawLegend(Svg& svg) const;
  void DrawQueue(Svg& svg, const DrawnQueue& queue) const;
  void DrawArrows(Svg& svg) const;

  const Plan& plan_;
  const Selection& selection_;
  const NodeId node_;
  const Engine engine_;
  const QueueLayout layout_;
  std::vector<LegendItem> legend_;
  std::vector<Extent> columns_;  ///< by number
  int top_ = 0;                  ///< of the columns
};

void QueuePicture::PlaceColumns() {
  const std::vector<int>& widths = layout_.widths;
  top_ = kChartHeaderHeight - 24 + layout_.arrows->height();
  int x = kChartMargin;
  for (size_t i = 0; i < widths.size(); ++i) {
    x += layout_.arrows->GutterWidth(i);
    columns_.push_back({.left = x, .right = x + widths[i]});
    x += widths[i];
  }
}

void QueuePicture::DrawQueue(Svg& svg, const DrawnQueue& queue) const {
  const Extent& column = columns_[queue.column];
  svg.Text("q", column.left, top_ + queue.y + 16, queue.title);
  svg.Text("d", column.left, top_ + queue.y + 32, queue.detail);
  for (size_t i = 0; i < queue.entries.size(); ++i) {
    const DrawnEntry& entry = queue.entries[i];
    const int y = top_ + entry.y;
    if (!entry.shown) {
      size_t end = i;
      while (end < queue.entries.size() && !queue.entries[end].shown) ++end;
      svg.Text("gap", column.left + 4, y + 11, fmt::format("... {} not shown", end - i));
      i = end - 1;
      continue;
    }
    if (entry.rearm != 0) {
      const int line = y - kQueueGapHeight - kQueueSpace / 2;
      svg.Lines("part", std::array{Line{{column.left, line}, {column.right, line}}});
      svg.Text("gap", column.left + 4, y - kQueueGapHeight + 11, RearmNote(queue, entry.rearm));
    }
    svg.BeginGroup("entry", fmt::format("{} {}: {}, {}", queue.title, i, entry.what, entry.detail));
    svg.Rect(entry.css_class, {column.left, y, column.right - column.left, kQueueBoxHeight});
    svg.Text("r", column.left + 24, y + 13, fmt::to_string(i));
    svg.Text("a", column.left + 30, y + 13, entry.what);
    svg.Text("d", column.left + 30, y + 27, entry.detail);
    svg.EndGroup();
  }
}

/// Where two cross, the one below is interrupted.
void QueuePicture::DrawArrows(Svg& svg) const {
  for (size_t i = 0; i < layout_.sources.size() && layout_.arrows_left_out == 0; ++i) {
    const DrawnQueue& queue = layout_.queues[layout_.sources[i].queue];
    const DrawnEntry& entry = queue.entries[layout_.sources[i].index];
    const RoutePicture route = layout_.arrows->Place(i, columns_, top_);
    svg.BeginGroup(
        ArrowClass(i),
        fmt::format("from {} {}, {}, to {}", queue.title, layout_.sources[i].index, entry.what,
                    entry.enables ? "its last WQE enabled" : Count(route.heads.size(), "WAIT")));
    svg.Lines("under", route.lines);
    svg.Lines("arrow", route.lines);
    for (const Point& tip : route.heads) svg.Head("head", tip);
    svg.EndGroup();
  }
}

std::string QueuePicture::Note() const {
  std::string note = fmt::format(
      "{}: {}, {}", engine_.name,
      layout_.entries == 1 ? "1 entry" : fmt::format("{} entries", layout_.entries), engine_.note);
  if (layout_.empty > 0)
    note += fmt::format("; {} with nothing to show left out", Count(layout_.empty, "queue"));
  if (layout_.shown < layout_.entries) {
    Selection only = selection_;
    only.nodes.clear();
    note += fmt::format("; {}: {} of {} entries", Describe(only), layout_.shown, layout_.entries);
  }
  if (layout_.arrows_left_out > 0) {
    note += fmt::format("; {} would be too many to follow, --rounds or --block narrow it",
                        Count(layout_.arrows_left_out, "arrow"));
  }
  return note;
}

/// Is there a box of this kind?
bool QueuePicture::IsDrawn(std::string_view css_class) const {
  return std::ranges::any_of(layout_.queues, [&](const DrawnQueue& queue) {
    return std::ranges::any_of(queue.entries, [&](const DrawnEntry& entry) {
      return entry.shown && entry.css_class == css_class;
    });
  });
}

std::string QueuePicture::ArrowClass(size_t route) const {
  const QueuePlace& from = layout_.sources[route];
  const bool enables = layout_.queues[from.queue].entries[from.index].enables.has_value();
  return fmt::format("k{}{}", route % kArrowColors, enables ? " enables" : "");
}

/// The first route of a SEND_EN, or of a CQE.
std::optional<size_t> QueuePicture::FirstArrow(bool enables) const {
  for (size_t i = 0; i < layout_.sources.size() && layout_.arrows_left_out == 0; ++i) {
    const DrawnEntry& entry =
        layout_.queues[layout_.sources[i].queue].entries[layout_.sources[i].index];
    if (entry.enables.has_value() == enables) return i;
  }
  return std::nullopt;
}

void QueuePicture::MakeLegend() {
  const bool all_shown = layout_.shown == layout_.entries;  // else nothing of the end is
  std::ranges::copy_if(engine_.boxes, std::back_inserter(legend_),
                       [this](const LegendItem& item) { return IsDrawn(item.css_class); });
  if (const std::optional<size_t> waits = FirstArrow(/*enables=*/false)) {
    legend_.push_back({ArrowClass(*waits),
                       engine_.waits + (all_shown ? engine_.waits_but : ", where that is shown"),
                       /*is_arrow=*/true});
  }
  if (const std::optional<size_t> enables = FirstArrow(/*enables=*/true))
    legend_.push_back({ArrowClass(*enables), engine_.enables, /*is_arrow=*/true});
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

Svg QueuePicture::Draw() const {
  const Grid grid{.left = kChartMargin,
                  .top = top_,
                  .cell_width = columns_.empty() ? 0 : columns_.back().right - kChartMargin,
                  .cell_height = layout_.height,
                  .columns = 1,
                  .rows = 1};
  const PlanHeader& header = plan_.header();
  Svg svg =
      StartChart(grid,
                 {.headline = fmt::format("{}, {}", Headline(header), RowLabel(header, node_)),
                  .subline = Subline(header),
                  .note = Note(),
                  .right = ""},
                 kChartMargin, kQueueStyle);
  DrawLegend(svg);
  DrawArrows(svg);
  for (const DrawnQueue& queue : layout_.queues) {
    if (queue.drawn) DrawQueue(svg, queue);
  }
  return svg;
}

Engine NicEngine(const nic::NodeProgram& program) {
  const bool in_parts = program.rearms() > 0;
  Engine engine = {
      .name = "the queues as preposted to a NIC",
      .note = fmt::format("{}; started by {}", Count(program.waits(), "WAIT"),
                          Count(program.doorbells(), "doorbell")),
      .boxes = {{"wait", "holds its queue until a CQ has a CQE"},
                {"enable", "lets a managed queue run so far"},
                {"send", "send"},
                {"held", "send, held until enabled"},
                {"recv", in_parts ? "receive, posted ahead" : "receive, posted before the start"},
                {"nop", in_parts ? "the last completion" : "the host's only completion"}},
      .waits = "whose CQE a WAIT waits for",
      .waits_but = "; those of the end have no arrows",
      .enables = "the last WQE enabled"};
  if (program.enables() > 0)
    engine.note += fmt::format("; managed by {}", Count(program.enables(), "SEND_EN"));
  if (program.rearms() > 0)
    engine.note += fmt::format("; {} meanwhile", Count(program.rearms(), "re-arm"));
  return engine;
}

Engine DeferredEngine(const triggered::DeferredProgram& program) {
  return {.name = "deferred work of a provider",
          .note = fmt::format("{}, {}; started by adding to one",
                              fmt::format("{} units of work", program.works.size()),
                              Count(program.counters, "counter")),
          .boxes = {{"host", "the host's only post"},
                    {"enable", "adds to a counter at a threshold of another"},
                    {"send", "send, started at a threshold"},
                    {"recv", "receive, posted before the start"},
                    {"nop", "wakes the host, once"}},
          .waits = "what brings a counter to the threshold",
          .waits_but = "; those of the end have no arrows"};
}

Engine CpuEngine() {
  return {.name = "what the CPU does",
          .note = "a post for every op, and a wake-up for completions that it sleeps for",
          .boxes = {{"host", "the CPU posts"}, {"send", "send"}, {"recv", "receive"}},
          .waits = "the last completion that it needs",
          .enables = "what is posted"};
}

/// Errors: kUsage.
Status CheckOneNode(const Selection& selection) {
  if (selection.nodes.size() == 1) return {};
  return {StatusCode::kUsage, "the queues view shows one node: name it with --node"};
}

Result<Svg> Drawn(const QueuePicture& picture, NodeId node, const std::string& list,
                  size_t* shown) {
  if (picture.shown() > kQueueEntriesMax) {
    return Rejected(fmt::format(
        "a picture of {} queue entries is not readable, the limit is {}: "
        "narrow it with --rounds first:last or --block, or use {}",
        picture.shown(), kQueueEntriesMax, fmt::format(fmt::runtime(list), node.value)));
  }
  if (shown != nullptr) *shown += picture.shown();
  return picture.Draw();
}

Result<Svg> NicPicture(const VerifiedPlan& plan, const Selection& selection,
                       const nic::LowerOptions& lower, size_t* shown) {
  PREPOST_RETURN_IF_ERROR(CheckOneNode(selection));
  nic::LowerOptions options = lower;
  options.node = selection.nodes.front();
  const Result<nic::QueueProgram> program = nic::Lower(plan, options);
  if (!program.ok()) return program.status();
  const nic::NodeProgram& own = program->nodes.front();
  return Drawn(
      QueuePicture(plan, selection, own.node, NicEngine(own), QueuesOfNic(plan, selection, own)),
      own.node, "prepost lower --node {} --list", shown);
}

Result<Svg> DeferredPicture(const VerifiedPlan& plan, const Selection& selection, size_t* shown) {
  PREPOST_RETURN_IF_ERROR(CheckOneNode(selection));
  const NodeId node = selection.nodes.front();
  const auto program = triggered::LowerDeferred(plan, node);
  if (!program.ok()) return program.status();
  return Drawn(QueuePicture(plan, selection, node, DeferredEngine(*program),
                            QueuesOfDeferredWork(plan, selection, *program)),
               node, "prepost lower --device fabric:sockets --node {} --list", shown);
}

Result<Svg> CpuPicture(const VerifiedPlan& plan, const Selection& selection, size_t* shown) {
  PREPOST_RETURN_IF_ERROR(CheckOneNode(selection));
  const NodeId node = selection.nodes.front();
  return Drawn(QueuePicture(plan, selection, node, CpuEngine(), QueuesOfCpu(plan, selection, node)),
               node, "prepost explain --node {}", shown);
}

}  // namespace

Result<std::string> DrawQueues(const VerifiedPlan& plan, const Selection& selection,
                               const QueueEngines& engines, size_t* shown) {
  std::optional<Svg> all;
  size_t count = 0;
  const auto add = [&](Result<Svg> picture) -> Status {
    if (!picture.ok()) return picture.status();
    if (all) {
      all->Append(*std::move(picture));
    } else {
      all = *std::move(picture);
    }
    return {};
  };
  if (engines.nic) PREPOST_RETURN_IF_ERROR(add(NicPicture(plan, selection, *engines.nic, &count)));
  if (engines.deferred) PREPOST_RETURN_IF_ERROR(add(DeferredPicture(plan, selection, &count)));
  if (engines.cpu) PREPOST_RETURN_IF_ERROR(add(CpuPicture(plan, selection, &count)));
  PREPOST_CHECK(all.has_value());
  if (shown != nullptr) *shown = count;
  return (*std::move(all)).Finish();
}

}  // namespace prepost::viz
