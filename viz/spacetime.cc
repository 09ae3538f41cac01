// SPDX-License-Identifier: Apache-2.0
//
// One walk over the ops fills a Timeline: per selected node its block transfers and the round in
// which it has all of the selected blocks. The picture is a header (title, legend), round numbers,
// and rows. Cells come in three sizes: Words
// ("b2 from 4", "b2 to 5"), Numbers (the block received; a strip in the colour of the block sent),
// and, when there are too many, a summary whose cells stand for several nodes and rounds and show
// the percentage of blocks that they hold.
#include "prepost/viz/spacetime.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "prepost/viz/svg.h"

namespace prepost::viz {
namespace {

constexpr uint32_t kWordsNodesMax = 32;
constexpr uint32_t kWordsRoundsMax = 24;
constexpr uint32_t kSummaryCellsMax = 64;  ///< rows, and columns
constexpr int kMargin = 16;
constexpr int kHeaderHeight = 132;

constexpr std::string_view kStyle =
    "text{fill:#222}.h{font-size:18px;font-weight:bold}.s{font-size:13px}.l{font-size:12px}"
    ".c,.n,.b{text-anchor:middle}.c{font-size:11px}.n{font-size:10px}.b{font-size:11px;font-weight:"
    "bold}"
    ".r{font-size:11px;text-anchor:end}.n,.b{fill:#000}.w{fill:#fff}.cell{fill:#f3f3f3}.root{fill:#"
    "e4e8ee}"
    ".held{fill:#444}.rest{fill:#ddd}.out{fill:#fff;stroke:#888}.done{fill:none;stroke:#000;stroke-"
    "width:2}";

/// One block received or sent.
struct Move {
  uint32_t round = 0;
  uint32_t block = 0;
  NodeId peer;
};

/// One row: what a node does with the selected blocks, in op order (rounds never fall on a channel,
/// but may across).
struct Timeline {
  NodeId node;
  bool is_root = false;
  std::vector<Move> received;
  std::vector<Move> sent;
  std::optional<uint32_t> complete_round;  ///< none for the root, and when a block never comes
};

struct Picture {
  const Plan& plan;
  const Selection& selection;
  std::vector<Timeline> rows;
  Rounds rounds;         ///< shown; meaningless when `columns` is 0
  uint64_t columns = 0;  ///< rounds shown
  uint64_t blocks = 0;   ///< selected blocks
};

Timeline ReadTimeline(const Plan& plan, const Program& program, const Selection& selection,
                      uint64_t blocks) {
  Timeline row{.node = program.node,
               .is_root = program.node == plan.header().root,
               .received = {},
               .sent = {},
               .complete_round = {}};
  for (const Op& op : plan.ops(program)) {
    if (op.is_credit() || !selection.HasBlock(op.block)) continue;
    const Channel& channel = plan.channels()[op.channel.index()];
    const Move move{
        .round = op.round, .block = op.block, .peer = op.is_send() ? channel.to : channel.from};
    (op.is_send() ? row.sent : row.received).push_back(move);
  }
  std::ranges::stable_sort(row.received, {}, &Move::round);
  std::ranges::stable_sort(row.sent, {}, &Move::round);
  if (!row.is_root && row.received.size() >= blocks) row.complete_round = row.received.back().round;
  return row;
}

Picture ReadPicture(const Plan& plan, const Selection& selection) {
  Picture picture{
      .plan = plan,
      .selection = selection,
      .rows = {},
      .rounds = {},
      .columns = 0,
      .blocks = selection.blocks.empty() ? plan.header().message.blocks : selection.blocks.size()};
  for (const Program& program : plan.programs()) {
    if (!selection.HasNode(program.node)) continue;
    picture.rows.push_back(ReadTimeline(plan, program, selection, picture.blocks));
  }
  std::ranges::sort(picture.rows, {}, &Timeline::node);
  if (plan.header().rounds == 0) return picture;
  picture.rounds = selection.rounds.value_or(Rounds{.first = 0, .last = plan.header().rounds - 1});
  picture.columns = uint64_t{picture.rounds.last} - picture.rounds.first + 1;
  return picture;
}

/// Blocks that `row` holds at the end of `round`.
uint64_t HeldAfter(const Timeline& row, uint64_t blocks, uint64_t round) {
  if (row.is_root) return blocks;
  const auto end = std::ranges::upper_bound(row.received, round, {}, &Move::round);
  return static_cast<uint64_t>(end - row.received.begin());
}

std::span<const Move> InRound(const std::vector<Move>& moves, uint32_t round) {
  const auto found = std::ranges::equal_range(moves, round, {}, &Move::round);
  return {found.begin(), found.end()};
}

/// A filled box with a centred text that reads on it.
void Label(Svg& svg, std::string_view css_class, const Box& box, Color fill,
           std::string_view text) {
  svg.Rect("", box, fill);
  svg.Text(fmt::format("{}{}", css_class, NeedsWhiteText(fill) ? " w" : ""), box.x + box.width / 2,
           box.y + box.height / 2 + 4, text);
}

std::string CompleteText(const Timeline& row) {
  if (row.is_root) return "from the start";
  return row.complete_round ? fmt::format("round {}", *row.complete_round) : "never";
}

/// Where the rows and columns lie.
struct Grid {
  int left = 0;
  int top = 0;
  int cell_width = 0;
  int cell_height = 0;
  int columns = 0;
  int rows = 0;

  Box Cell(int row, int column) const {
    return {left + column * cell_width, top + row * cell_height, cell_width, cell_height};
  }
  int right() const { return left + columns * cell_width; }
  int bottom() const { return top + rows * cell_height; }
};

Svg StartPicture(const Picture& picture, const Grid& grid, std::string_view note) {
  constexpr int kRightColumn = 110;
  constexpr int kWidthMin = 860;
  const PlanHeader& header = picture.plan.header();
  const std::string headline = Headline(header);
  const std::string subline = Subline(header);
  const double text_width =
      std::max({TextWidth(headline, 19.5), TextWidth(subline, 13), TextWidth(note, 13)});
  const int width = std::max({grid.right() + kRightColumn, kWidthMin,
                              static_cast<int>(std::ceil(text_width)) + 2 * kMargin});
  Svg svg(width, grid.bottom() + kMargin, headline, kStyle);
  svg.Text("h", kMargin, 28, headline);
  svg.Text("s", kMargin, 48, subline);
  svg.Text("s", kMargin, 66, note);
  const bool all = picture.selection.blocks.empty();
  svg.Text("l", grid.right() + 10, grid.top - 8, all ? "has all blocks" : "has these blocks");
  return svg;
}

/// Draws legend entries from left to right, each a sample and its meaning.
class Legend {
 public:
  explicit Legend(Svg& svg) : svg_(svg) {}
  Box Sample(int width) {
    const Box box{x_, 78, width, 16};
    x_ += width + 6;
    return box;
  }
  void Meaning(std::string_view text) {
    svg_.Text("l", x_, 91, text);
    x_ += static_cast<int>(std::ceil(TextWidth(text, 12))) + 18;
  }

 private:
  Svg& svg_;
  int x_ = kMargin;
};

/// The bar at the foot of a cell: the share of the blocks held after its round.
void HeldBar(Svg& svg, const Box& cell, int height, uint64_t held, uint64_t blocks) {
  const int width = cell.width - 4;
  const Box rest{cell.x + 2, cell.y + cell.height - height - 1, width, height};
  const int share =
      static_cast<int>(std::min(held, blocks) * static_cast<uint64_t>(width) / blocks);
  svg.Rect("rest", rest);
  svg.Rect("held", {rest.x, rest.y, share, height});
}

struct CellStyle {
  bool words = false;
  int width = 0;
  int height = 0;
  int in_height = 0;   ///< the upper box: the block received
  int out_height = 0;  ///< below it: the block sent
  int bar_height = 0;
};

CellStyle ChooseStyle(const Picture& picture) {
  const PlanHeader& header = picture.plan.header();
  if (picture.rows.size() <= kWordsNodesMax && picture.columns <= kWordsRoundsMax) {
    const std::string widest =
        fmt::format("b{} from {}", header.message.blocks - 1, header.nodes - 1);
    return {.words = true,
            .width = static_cast<int>(std::ceil(TextWidth(widest, 12))) + 12,
            .height = 46,
            .in_height = 20,
            .out_height = 16,
            .bar_height = 3};
  }
  const std::string widest = fmt::to_string(std::max(header.message.blocks, header.rounds) - 1);
  return {.words = false,
          .width = std::max(26, static_cast<int>(std::ceil(TextWidth(widest, 11))) + 8),
          .height = 26,
          .in_height = 14,
          .out_height = 5,
          .bar_height = 2};
}

std::string CellTooltip(const Timeline& row, uint32_t round, std::span<const Move> received,
                        std::span<const Move> sent, uint64_t held, uint64_t blocks) {
  std::string text = fmt::format("round {}: node {}", round, row.node.value);
  const char* separator = " ";
  for (const Move& move : received) {
    text += fmt::format("{}receives block {} from node {}", separator, move.block, move.peer.value);
    separator = ", ";
  }
  for (const Move& move : sent) {
    text += fmt::format("{}sends block {} to node {}", separator, move.block, move.peer.value);
    separator = ", ";
  }
  if (received.empty() && sent.empty()) text += " is idle";
  return text + fmt::format("; it then has {} of {} blocks", held, blocks);
}

/// Splits `box` evenly among the moves of one cell (more than one only in plans with several
/// ports).
Box Part(const Box& box, size_t index, size_t count) {
  const int width = box.width / static_cast<int>(count);
  return {box.x + static_cast<int>(index) * width, box.y, width, box.height};
}

void DrawCell(Svg& svg, const Picture& picture, const CellStyle& style, const Timeline& row,
              uint32_t round, const Box& cell) {
  const uint32_t blocks = picture.plan.header().message.blocks;
  const auto received = InRound(row.received, round);
  const auto sent = InRound(row.sent, round);
  const uint64_t held = HeldAfter(row, picture.blocks, round);
  svg.BeginGroup("", CellTooltip(row, round, received, sent, held, picture.blocks));
  svg.Rect(row.is_root ? "root" : "cell",
           {cell.x + 1, cell.y + 1, cell.width - 2, cell.height - 2});
  const Box in{cell.x + 2, cell.y + 2, cell.width - 4, style.in_height};
  for (size_t i = 0; i < received.size(); ++i) {
    const Move& move = received[i];
    const std::string text = style.words ? fmt::format("b{} from {}", move.block, move.peer.value)
                                         : fmt::to_string(move.block);
    const Box part = Part(in, i, received.size());
    const bool fits = TextWidth(text, style.words ? 11 : 10) <= part.width;
    Label(svg, style.words ? "b" : "n", part, BlockColor(move.block, blocks), fits ? text : "");
  }
  const Box out{in.x, in.y + in.height + 1, in.width, style.out_height};
  for (size_t i = 0; i < sent.size(); ++i) {
    const Move& move = sent[i];
    const Box part = Part(out, i, sent.size());
    const Color color = BlockColor(move.block, blocks);
    if (!style.words) {
      svg.Rect("", part, color);
      continue;
    }
    svg.Rect("out", part);
    svg.Rect("", {part.x, part.y, 7, part.height}, color);
    const std::string text = fmt::format("b{} to {}", move.block, move.peer.value);
    if (TextWidth(text, 11) + 9 <= part.width) {
      svg.Text("c", part.x + 4 + part.width / 2, part.y + part.height - 4, text);
    }
  }
  HeldBar(svg, cell, style.bar_height, held, picture.blocks);
  if (row.complete_round == round) {
    svg.Rect("done", {cell.x + 1, cell.y + 1, cell.width - 2, cell.height - 2});
  }
  svg.EndGroup();
}

void DrawDetailedLegend(Svg& svg, const Picture& picture, const CellStyle& style) {
  constexpr Color kSample{0x26, 0x82, 0x8e};
  Legend legend(svg);
  Label(svg, style.words ? "b" : "n", legend.Sample(style.words ? 70 : 26), kSample,
        style.words ? "b2 from 4" : "2");
  legend.Meaning("receives block 2");
  Box out = legend.Sample(style.words ? 56 : 26);
  if (style.words) {
    svg.Rect("out", out);
    svg.Rect("", {out.x, out.y, 7, out.height}, kSample);
    svg.Text("c", out.x + 31, out.y + 12, "b2 to 5");
  } else {
    svg.Rect("", {out.x, out.y + 6, out.width, style.out_height}, kSample);
  }
  legend.Meaning(style.words ? "sends block 2" : "sends the block of that colour");
  Box bar = legend.Sample(40);
  HeldBar(svg, {bar.x, bar.y, bar.width, 12}, 3, 3, 5);
  legend.Meaning(picture.selection.blocks.empty() ? "share of the blocks held"
                                                  : "share of these blocks held");
  Box done = legend.Sample(24);
  svg.Rect("done", {done.x + 1, done.y + 1, done.width - 2, done.height - 2});
  legend.Meaning(picture.selection.blocks.empty() ? "has its last block"
                                                  : "has the last of these blocks");
}

std::string DrawDetailed(const Picture& picture) {
  const CellStyle style = ChooseStyle(picture);
  const std::string widest = fmt::format("node {} (root)", picture.plan.header().nodes - 1);
  const Grid grid{.left = kMargin + static_cast<int>(std::ceil(TextWidth(widest, 11))) + 10,
                  .top = kHeaderHeight,
                  .cell_width = style.width,
                  .cell_height = style.height,
                  .columns = static_cast<int>(picture.columns),
                  .rows = static_cast<int>(picture.rows.size())};
  std::string note = Describe(picture.selection);
  if (picture.columns == 0) note = "one node: it has the whole message and nothing is sent";
  Svg svg = StartPicture(picture, grid, note);
  DrawDetailedLegend(svg, picture, style);
  if (picture.columns != 0) svg.Text("r", grid.left - 8, grid.top - 8, "round");
  for (int column = 0; column < grid.columns; ++column) {
    svg.Text("c", grid.Cell(0, column).x + grid.cell_width / 2, grid.top - 8,
             fmt::to_string(picture.rounds.first + static_cast<uint32_t>(column)));
  }
  for (int i = 0; i < grid.rows; ++i) {
    const Timeline& row = picture.rows[static_cast<size_t>(i)];
    const int base = grid.Cell(i, 0).y + grid.cell_height / 2 + 4;
    svg.Text("r", grid.left - 8, base,
             fmt::format("node {}{}", row.node.value, row.is_root ? " (root)" : ""));
    for (int column = 0; column < grid.columns; ++column) {
      DrawCell(svg, picture, style, row, picture.rounds.first + static_cast<uint32_t>(column),
               grid.Cell(i, column));
    }
    svg.Text("l", grid.right() + 10, base, CompleteText(row));
  }
  return std::move(svg).Finish();
}

// ---- Summary
// --------------------------------------------------------------------------------------------------------

/// `count` things in at most kSummaryCellsMax bins of `size` each; the last may be short.
struct Bins {
  uint64_t count = 0;
  uint64_t size = 1;

  explicit Bins(uint64_t things)
      : count(things), size((things + kSummaryCellsMax - 1) / kSummaryCellsMax) {
    size = std::max<uint64_t>(size, 1);
  }
  uint64_t bins() const { return (count + size - 1) / size; }
  uint64_t Begin(uint64_t bin) const { return bin * size; }
  uint64_t End(uint64_t bin) const { return std::min(count, (bin + 1) * size); }
};

std::string Range(uint64_t first, uint64_t last) {
  return first == last ? fmt::to_string(first) : fmt::format("{}-{}", first, last);
}

/// Percentage of the selected blocks that `rows` hold after `round`, rounded down; the root counts
/// only when alone.
uint32_t PercentHeld(std::span<const Timeline> rows, uint64_t blocks, uint64_t round) {
  uint64_t held = 0;
  uint64_t nodes = 0;
  for (const Timeline& row : rows) {
    if (row.is_root && rows.size() > 1) continue;
    held += HeldAfter(row, blocks, round);
    ++nodes;
  }
  return static_cast<uint32_t>(std::min<uint64_t>(100, held * 100 / (nodes * blocks)));
}

void DrawSummaryLegend(Svg& svg) {
  Legend legend(svg);
  for (uint32_t percent : {0u, 25u, 50u, 75u, 100u}) {
    Label(svg, "n", legend.Sample(28), ShareColor(percent), fmt::to_string(percent));
  }
  legend.Meaning(
      "percent of the blocks that these nodes, but for the root, hold after these rounds");
  Box done = legend.Sample(24);
  svg.Rect("done", {done.x + 1, done.y + 1, done.width - 2, done.height - 2});
  legend.Meaning("now all of them have every block");
}

void DrawSummaryRow(Svg& svg, const Picture& picture, const Grid& grid, const Bins& columns,
                    int index, std::span<const Timeline> rows) {
  const std::string nodes = Range(rows.front().node.value, rows.back().node.value);
  const int base = grid.Cell(index, 0).y + grid.cell_height / 2 + 4;
  const bool has_root = std::ranges::any_of(rows, &Timeline::is_root);
  svg.Text("r", grid.left - 8, base, fmt::format("{}{}", nodes, has_root ? " (root)" : ""));
  uint32_t before = 0;
  for (uint64_t bin = 0; bin < columns.bins(); ++bin) {
    const uint64_t first = picture.rounds.first + columns.Begin(bin);
    const uint64_t last = picture.rounds.first + columns.End(bin) - 1;
    const uint32_t percent = PercentHeld(rows, picture.blocks, last);
    const Box cell = grid.Cell(index, static_cast<int>(bin));
    const Box inner{cell.x + 1, cell.y + 1, cell.width - 1, cell.height - 1};
    svg.BeginGroup("", fmt::format("nodes {}, after rounds {}: {}% of the blocks", nodes,
                                   Range(first, last), percent));
    Label(svg, "n", inner, ShareColor(percent), fmt::to_string(percent));
    if (percent == 100 && before < 100) svg.Rect("done", inner);
    svg.EndGroup();
    before = percent;
  }
  std::optional<uint32_t> latest = 0;
  for (const Timeline& row : rows) {
    if (row.is_root) continue;
    latest = latest && row.complete_round ? std::max(latest, row.complete_round) : std::nullopt;
  }
  const bool only_root = rows.size() == 1 && has_root;
  const std::string all = latest ? fmt::format("by round {}", *latest) : "never";
  svg.Text("l", grid.right() + 10, base, only_root ? "from the start" : all);
}

std::string DrawSummary(const Picture& picture) {
  const Bins rows(picture.rows.size());
  const Bins columns(picture.columns);
  const PlanHeader& header = picture.plan.header();
  const std::string widest = fmt::format("{0}-{0} (root)", header.nodes - 1);
  const std::string round_label = fmt::to_string(picture.rounds.last);
  const Grid grid{
      .left = kMargin + static_cast<int>(std::ceil(TextWidth(widest, 11))) + 10,
      .top = kHeaderHeight,
      .cell_width = std::max(26, static_cast<int>(std::ceil(TextWidth(round_label, 11))) + 6),
      .cell_height = 18,
      .columns = static_cast<int>(columns.bins()),
      .rows = static_cast<int>(rows.bins())};
  const std::string only = Describe(picture.selection);
  Svg svg = StartPicture(
      picture, grid,
      fmt::format(
          "{}{}summary: a cell is {} node{} x {} round{}; --rounds first:last and --node show "
          "each block (up to {} nodes x {} rounds)",
          only, only.empty() ? "" : "; ", rows.size, rows.size == 1 ? "" : "s", columns.size,
          columns.size == 1 ? "" : "s", kDetailedNodesMax, kDetailedRoundsMax));
  DrawSummaryLegend(svg);
  svg.Text("r", grid.left - 8, grid.top - 8, "from round");
  for (uint64_t bin = 0; bin < columns.bins(); ++bin) {
    svg.Text("c", grid.Cell(0, static_cast<int>(bin)).x + grid.cell_width / 2, grid.top - 8,
             fmt::to_string(picture.rounds.first + columns.Begin(bin)));
  }
  const std::span<const Timeline> all = picture.rows;
  for (uint64_t bin = 0; bin < rows.bins(); ++bin) {
    DrawSummaryRow(svg, picture, grid, columns, static_cast<int>(bin),
                   all.subspan(rows.Begin(bin), rows.End(bin) - rows.Begin(bin)));
  }
  return std::move(svg).Finish();
}

}  // namespace

std::string DrawSpacetime(const Plan& plan, const Selection& selection) {
  const Picture picture = ReadPicture(plan, selection);
  const bool detailed =
      picture.rows.size() <= kDetailedNodesMax && picture.columns <= kDetailedRoundsMax;
  return detailed ? DrawDetailed(picture) : DrawSummary(picture);
}

}  // namespace prepost::viz
