// SPDX-License-Identifier: Apache-2.0
//
// Every node but the root receives the block once, so the senders make a tree. Each drawn node has
// a row of its own, in depth-first order with the child first that is reached first, and a column,
// the round in which it has the block. The line from a node goes down in its column and right to
// each child; everything in the rows that the line passes is below the node, so right of it, and
// nothing crosses:
//
//   round    0        1          chain-like: 0 > 1 > 2, and 0 > 3
//   o node 0
//   |---0----o node 1
//   |        |---1----o node 2
//   |--------1--------o node 3
//
// Where nodes combine, the tree is upside down: the root is where the block's value is made, below
// each node are those whose values it combined with its own, and the column of each is the round in
// which its value left, the last one first.
//
// Above kTreeNodesMax nodes those that are reached first are drawn: a child is never reached before
// its parent, so what is drawn is a tree.
#include "viz/plan/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "ir/analysis/expressions.h"
#include "ir/base/count.h"
#include "ir/json/rate_text.h"
#include "viz/plan/trace_picture.h"
#include "viz/svg/chart.h"
#include "viz/svg/racks.h"

namespace prepost::viz {
namespace {

constexpr int kTreeRowHeight = 18;
constexpr int kColumnWidthMin = 10;
constexpr int kRoundWidth = 30;  ///< of a line with its round; in narrower columns nodes say it
constexpr int kColumnWidthMax = 110;
constexpr int kColumnsWidth = 1400;  ///< wished for all columns together
constexpr int kDot = 9;
constexpr uint32_t kNoNode = 0xffffffff;

constexpr std::string_view kTreeStyle =
    ".line{fill:#999}.round{fill:#e4e4ea}.e{font-size:10px;fill:#444;text-anchor:end}"
    ".x{font-size:11px;fill:#666}.dot{stroke:#333}.hollow{fill:#fff}"
    ".column{font-size:11px;text-anchor:middle}"
    ".node .l{paint-order:stroke;stroke:#fff;stroke-width:4px}";

struct TreeNode {
  uint32_t parent = kNoNode;
  uint32_t round = 0;  ///< of its receive, upside down of its send; the root: 0, not used
  uint32_t below = 0;  ///< nodes below it, of those asked for
  uint32_t drawn_below = 0;
  bool reached = false;  ///< has a receive of the block, or is the root
  bool wanted = false;   ///< on a way that is asked for
  bool drawn = false;
  int row = -1;
  uint64_t completed_ns = 0;       ///< by the trace; 0: not known
  bool has_trace = true;           ///< the trace knows something of it
  std::vector<uint32_t> children;  ///< drawn ones, by round
};

/// A line between racks, from `left` to `right`; as MarkCrossing() marks a box.
void DrawCrossing(Svg& svg, int left, int right, int y) {
  const Line line{.from = {left, y}, .to = {right, y}};
  svg.Lines("cross", {&line, 1});
}

class Tree {
 public:
  Tree(const Plan& plan, const Selection& selection, const RunTrace* trace, const Network* network)
      : plan_(plan),
        selection_(selection),
        trace_(trace),
        racks_(network),
        block_(selection.blocks.empty() ? 0 : selection.blocks.front()),
        is_upside_down_(!plan.header().combine.is_none()),
        root_(RootOf(plan, selection, block_)),
        nodes_(plan.header().nodes) {
    if (is_upside_down_) {
      ReadOperands();
    } else {
      ReadReceives();
    }
    MarkWanted();
    ChooseDrawn();
    PlaceRows();
    PlaceColumns();
  }

  std::string Draw() const;

 private:
  /// Who has the block at first, or whose value of it is asked for.
  static uint32_t RootOf(const Plan& plan, const Selection& selection, uint32_t block);
  void ReadReceives();
  void ReadOperands();
  void MarkWanted();
  void ChooseDrawn();
  void PlaceRows();
  void PlaceColumns();
  /// Whether the block comes to `node` from another rack.
  bool Crosses(uint32_t node) const {
    return node != root() && racks_.Cross(NodeId(nodes_[node].parent), NodeId(node));
  }
  uint32_t root() const { return root_; }
  bool IsBefore(uint32_t a, uint32_t b) const { return is_upside_down_ ? a > b : a < b; }  // rounds
  int ColumnOf(uint32_t node) const;
  int X(uint32_t node) const { return grid_.left + ColumnOf(node) * grid_.cell_width; }
  int Y(int row) const { return grid_.top + row * kTreeRowHeight + kTreeRowHeight / 2; }
  ChartTitle Title() const;
  std::string TextOf(uint32_t node) const;
  void DrawColumns(Svg& svg) const;
  void DrawLines(Svg& svg, uint32_t node) const;
  void DrawDot(Svg& svg, const Box& dot, bool hollow) const;
  void DrawLegend(Svg& svg) const;
  void DrawNode(Svg& svg, uint32_t node) const;

  const Plan& plan_;
  const Selection& selection_;
  const RunTrace* trace_;
  Racks racks_;
  uint32_t block_;
  const bool is_upside_down_;
  uint32_t root_;
  std::vector<TreeNode> nodes_;
  std::vector<uint32_t> by_round_;  ///< wanted nodes but the root, those reached first at first
  std::vector<uint32_t> rows_;      ///< drawn nodes, from top to bottom
  std::vector<uint32_t> rounds_;    ///< in which a drawn node is reached
  Grid grid_;
};

uint32_t Tree::RootOf(const Plan& plan, const Selection& selection, uint32_t block) {
  const Roles roles = plan.header().roles();
  if (roles.Wants(plan.header().collective.root, block) && selection.nodes.empty() &&
      !plan.header().combine.is_none())
    return plan.header().collective.root.value;
  for (uint32_t node = 0; node < roles.members(); ++node) {
    if (plan.header().combine.is_none()
            ? roles.Contributes(NodeId(node), block)
            : roles.Wants(NodeId(node), block) && selection.HasNode(NodeId(node)))
      return node;
  }
  PREPOST_CHECK(false);
  return 0;
}

void Tree::ReadOperands() {
  const PlanTables tables(plan_);
  const std::vector<bool> without_trace =
      trace_ == nullptr ? std::vector<bool>(nodes_.size()) : NodesWithoutTrace(plan_, *trace_);
  for (uint32_t node = 0; node < nodes_.size(); ++node)
    nodes_[node].has_trace = !without_trace[node];
  const Expressions::Way way = Expressions(tables).WayOf(block_, NodeId(root_));
  root_ = way.made_at.value;
  nodes_[root_].reached = true;
  for (const Expressions::Step& step : way.steps) {
    TreeNode& node = nodes_[step.from.index()];
    node.reached = true;
    node.parent = step.into.value;
    node.round = tables.SendOf(step.message).round;
    if (trace_ == nullptr) continue;
    const OpRef combine = tables.RefOf(tables.messages().recv(step.message));
    node.completed_ns = trace_->times(combine.node)[combine.op.index()].completed_ns;
  }
}

void Tree::ReadReceives() {
  const std::vector<bool> without_trace =
      trace_ == nullptr ? std::vector<bool>(nodes_.size()) : NodesWithoutTrace(plan_, *trace_);
  for (const Program& program : plan_.programs()) {
    TreeNode& node = nodes_[program.node.index()];
    node.reached = program.node.value == root();
    node.has_trace = !without_trace[program.node.index()];
    const std::span<const Op> ops = plan_.ops(program);
    for (uint32_t id = 0; id < ops.size(); ++id) {
      const Op& op = ops[id];
      if (op.is_send() || op.is_credit() || block_ < op.block || block_ - op.block >= op.count)
        continue;
      if (node.reached) continue;  // the first that comes
      node.reached = true;
      node.parent = plan_.channels()[op.channel.index()].from.value;
      node.round = op.round;
      if (trace_ != nullptr) node.completed_ns = trace_->times(program.node)[id].completed_ns;
    }
  }
}

/// The nodes asked for and all on the ways to them; all without any.
void Tree::MarkWanted() {
  nodes_[root()].wanted = true;
  for (uint32_t asked = 0; asked < nodes_.size(); ++asked) {
    if (!nodes_[asked].reached || (!is_upside_down_ && !selection_.HasNode(NodeId(asked))))
      continue;
    for (uint32_t node = asked; !nodes_[node].wanted; node = nodes_[node].parent) {
      nodes_[node].wanted = true;
    }
  }
  for (uint32_t node = 0; node < nodes_.size(); ++node) {
    if (nodes_[node].wanted && node != root()) by_round_.push_back(node);
  }
  std::ranges::stable_sort(
      by_round_, [&](uint32_t a, uint32_t b) { return IsBefore(a, b); },
      [&](uint32_t node) { return nodes_[node].round; });
  for (size_t i = by_round_.size(); i-- > 0;) {  // rounds rise along every way
    const TreeNode& node = nodes_[by_round_[i]];
    nodes_[node.parent].below += 1 + node.below;
  }
}

void Tree::ChooseDrawn() {
  nodes_[root()].drawn = true;
  const size_t count = std::min<size_t>(by_round_.size(), kTreeNodesMax - 1);
  for (size_t i = 0; i < count; ++i) {
    nodes_[by_round_[i]].drawn = true;
    nodes_[nodes_[by_round_[i]].parent].children.push_back(by_round_[i]);
    rounds_.push_back(nodes_[by_round_[i]].round);
  }
  rounds_.erase(std::unique(rounds_.begin(), rounds_.end()), rounds_.end());
}

void Tree::PlaceRows() {
  std::vector<uint32_t> open = {root()};
  while (!open.empty()) {
    const uint32_t node = open.back();
    open.pop_back();
    nodes_[node].row = static_cast<int>(rows_.size());
    rows_.push_back(node);
    const std::vector<uint32_t>& children = nodes_[node].children;
    open.insert(open.end(), children.rbegin(), children.rend());
  }
  for (size_t i = rows_.size(); i-- > 1;) {  // those below a node have rows after its own
    const TreeNode& node = nodes_[rows_[i]];
    nodes_[node.parent].drawn_below += 1 + node.drawn_below;
  }
}

void Tree::PlaceColumns() {
  const int columns = static_cast<int>(rounds_.size());
  grid_ = {.left = kChartMargin + kDot,
           .top = kChartHeaderHeight,
           .cell_width =
               std::clamp(kColumnsWidth / std::max(1, columns), kColumnWidthMin, kColumnWidthMax),
           .cell_height = kTreeRowHeight,
           .columns = columns,
           .rows = static_cast<int>(rows_.size())};
}

/// The root's is 0.
int Tree::ColumnOf(uint32_t node) const {
  if (node == root()) return 0;
  const auto found = std::ranges::lower_bound(
      rounds_, nodes_[node].round, [&](uint32_t a, uint32_t b) { return IsBefore(a, b); });
  return 1 + static_cast<int>(found - rounds_.begin());
}

ChartTitle Tree::Title() const {
  uint32_t depth = 0;
  uint64_t crossing = 0;
  std::vector<uint32_t> depths(nodes_.size(), 0);
  for (const uint32_t node : by_round_) {
    depths[node] = depths[nodes_[node].parent] + 1;
    depth = std::max(depth, depths[node]);
    if (Crosses(node)) ++crossing;
  }
  std::string note = fmt::format("the way of block {}: {}, depth {}", block_,
                                 Count(by_round_.size() + 1, "node"), depth);
  if (is_upside_down_) {
    note = fmt::format("what the value of block {} at node {} is made of: {}, depth {}", block_,
                       root(), Count(by_round_.size() + 1, "node"), depth);
    if (!selection_.nodes.empty() && selection_.nodes.front() != NodeId(root()))
      note += fmt::format("; node {} is sent it whole", selection_.nodes.front().value);
  } else if (!selection_.nodes.empty())
    note += "; only the ways to the nodes asked for";
  if (rows_.size() < by_round_.size() + 1) {
    note += fmt::format("; the {} nodes reached first are drawn, --node shows the way to others",
                        rows_.size());
  }
  if (racks_.known()) note += "; " + racks_.Note(crossing, by_round_.size());
  const int64_t duration = trace_ == nullptr ? 0 : RunDuration(plan_, *trace_);
  const bool is_partial =
      std::ranges::any_of(nodes_, [](const TreeNode& node) { return !node.has_trace; });
  if (duration > 0) {
    note +=
        fmt::format("; the run took {}{}", is_partial ? "at least " : "", ShortDuration(duration));
  }
  return {.headline = Headline(plan_.header()) + (trace_ == nullptr          ? ""
                                                  : trace_->modelled.empty() ? ", measured"
                                                                             : ", modelled"),
          .subline = Subline(plan_.header()) +
                     (trace_ == nullptr || trace_->modelled.empty() ? "" : "; " + trace_->modelled),
          .note = std::move(note),
          .right = ""};
}

/// "node 5", "node 0 (root)", "node 5, rack r1, 1.23 ms (+12 not drawn)".
std::string Tree::TextOf(uint32_t node) const {
  std::string text = RowLabel(plan_.header(), NodeId(node));
  if (racks_.known()) text += ", " + racks_.Name(NodeId(node));
  const TreeNode& here = nodes_[node];
  if (node != root() && grid_.cell_width < kRoundWidth) {
    text += fmt::format(", round {}", here.round);
  }
  if (trace_ != nullptr && node != root()) {
    const bool has_trace = here.has_trace && (!is_upside_down_ || nodes_[here.parent].has_trace);
    text += !has_trace ? ", no trace"
            : here.completed_ns == 0
                ? ", never"
                : ", " + ShortDuration(static_cast<int64_t>(here.completed_ns) -
                                       static_cast<int64_t>(trace_->start_ns));
  }
  if (here.below != here.drawn_below)
    text += fmt::format(" (+{} not drawn)", here.below - here.drawn_below);
  return text;
}

void Tree::DrawColumns(Svg& svg) const {
  int free = 0;
  for (size_t i = 0; i < rounds_.size(); ++i) {
    const int x = grid_.left + (static_cast<int>(i) + 1) * grid_.cell_width;
    svg.Rect("round", {x, grid_.top, 1, grid_.bottom() - grid_.top});
    const std::string name = fmt::to_string(rounds_[i]);
    const int half = static_cast<int>(std::ceil(TextWidth(name, 11) / 2)) + 3;
    if (x - half < free) continue;
    svg.Text("column", x, grid_.top - 8, name);
    free = x + half;
  }
  if (!rounds_.empty())
    svg.Text("x", kChartMargin, grid_.top - 22,
             is_upside_down_ ? "its value leaves in round" : "has it in round");
}

/// From `node` to its children, each with its round.
void Tree::DrawLines(Svg& svg, uint32_t node) const {
  const TreeNode& here = nodes_[node];
  if (here.children.empty()) return;
  const int x = X(node);
  const int bottom = Y(nodes_[here.children.back()].row);
  svg.Rect("line", {x, Y(here.row), 1, bottom - Y(here.row)});
  for (const uint32_t child : here.children) {
    const int y = Y(nodes_[child].row);
    if (Crosses(child)) {
      DrawCrossing(svg, x, X(child), y);
    } else {
      svg.Rect("line", {x, y, X(child) - x, 1});
    }
    if (grid_.cell_width < kRoundWidth) continue;
    svg.Text("e", X(child) - kDot / 2 - 2, y - 2, fmt::to_string(nodes_[child].round));
  }
}

void Tree::DrawDot(Svg& svg, const Box& dot, bool hollow) const {
  svg.Rect("dot", dot, BlockColor(block_, plan_.header().payload.blocks));
  if (hollow) svg.Rect("hollow", {dot.x + 2, dot.y + 2, dot.width - 4, dot.height - 4});
}

void Tree::DrawLegend(Svg& svg) const {
  if (by_round_.empty()) return;
  Legend legend(svg);
  const auto sample = [&](bool hollow) {
    const Box box = legend.Sample(kDot);
    DrawDot(svg, {box.x, box.y + 4, kDot, kDot}, hollow);
  };
  sample(/*hollow=*/false);
  legend.Meaning(is_upside_down_
                     ? "combines what those below send, and sends it in the round on its line"
                     : "receives the block in the round on the line to it, and sends it on");
  sample(/*hollow=*/true);
  const bool all_drawn =
      rows_.size() == by_round_.size() + 1 && (is_upside_down_ || selection_.nodes.empty());
  legend.Meaning(is_upside_down_ ? all_drawn
                                       ? "sends what it contributes"
                                       : "sends what it contributes, or what is below is not drawn"
                 : all_drawn     ? "receives it only"
                                 : "receives it only, or what is below is not drawn");
  if (!racks_.known()) return;
  const Box line = legend.Sample(30);
  DrawCrossing(svg, line.x, line.x + line.width, line.y + 8);
  legend.Meaning(fmt::format("goes between {}s", racks_.word()));
}

void Tree::DrawNode(Svg& svg, uint32_t node) const {
  const TreeNode& here = nodes_[node];
  std::string tooltip = fmt::format("node {} has block {} from the start", node, block_);
  if (is_upside_down_) {
    tooltip = node == root()
                  ? fmt::format("block {} is whole at node {}", block_, node)
                  : fmt::format("node {} sends its value of block {} to node {}{} in round {}",
                                node, block_, here.parent,
                                racks_.PeerText(NodeId(node), NodeId(here.parent)), here.round);
  } else if (node != root()) {
    tooltip =
        fmt::format("node {} receives block {} from node {}{} in round {}", node, block_,
                    here.parent, racks_.PeerText(NodeId(node), NodeId(here.parent)), here.round);
  }
  svg.BeginGroup("node", fmt::format("{}; {} below it", tooltip, Count(here.below, "node")));
  const Box dot{X(node) - kDot / 2, Y(here.row) - kDot / 2, kDot, kDot};
  DrawDot(svg, dot, here.children.empty());
  svg.Text("l", X(node) + kDot, Y(here.row) + 4, TextOf(node));
  svg.EndGroup();
}

std::string Tree::Draw() const {
  int right_width = 0;
  for (const uint32_t node : rows_) {
    const int end = X(node) + kDot + static_cast<int>(std::ceil(TextWidth(TextOf(node), 12)));
    right_width = std::max(right_width, end - grid_.right());
  }
  Svg svg = StartChart(grid_, Title(), right_width + kChartMargin,
                       fmt::format("{}{}", kTreeStyle, racks_.Style()));
  DrawLegend(svg);
  DrawColumns(svg);
  for (const uint32_t node : rows_) DrawLines(svg, node);
  for (const uint32_t node : rows_) DrawNode(svg, node);
  return std::move(svg).Finish();
}

}  // namespace

Result<std::string> DrawTree(const Plan& plan, const Selection& selection, const RunTrace* trace,
                             const Network* network) {
  if (selection.blocks.size() > 1) {
    return Status(StatusCode::kUsage, "the tree view shows one --block");
  }
  if (selection.rounds) {
    return Status(StatusCode::kUsage, "the tree view shows all rounds, --rounds is for others");
  }
  if (!plan.header().combine.is_none()) {
    const uint32_t block = selection.blocks.empty() ? 0 : selection.blocks.front();
    const Roles roles = plan.header().roles();
    if (selection.nodes.size() > 1)
      return Status(StatusCode::kUsage, "the tree of a value is that of one --node");
    if (!selection.nodes.empty() && !roles.Wants(selection.nodes.front(), block)) {
      return Rejected(fmt::format("node {} does not want block {}, and has no value of it",
                                  selection.nodes.front().value, block));
    }
  }
  return Tree(plan, selection, trace, network).Draw();
}

}  // namespace prepost::viz
