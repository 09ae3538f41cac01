// SPDX-License-Identifier: Apache-2.0
//
// One walk over the ops fills a Timeline: per selected node its block transfers and the round in
// which it has all of the selected blocks. The picture is a header (title, legend), round numbers,
// and rows. Cells come in three sizes: Words ("b2 from 4", "b2 to 5"), Numbers (the block received;
// a strip in the colour of the block sent), and, when there are too many, a summary whose cells
// stand for several nodes and rounds and show the percentage of blocks that they hold.
#include "viz/plan/spacetime.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "ir/base/count.h"
#include "viz/svg/chart.h"
#include "viz/svg/racks.h"
#include "viz/svg/share_table.h"

namespace prepost::viz {
namespace {

constexpr uint32_t kWordsNodesMax = 32;
constexpr uint32_t kWordsRoundsMax = 24;

/// One message received or sent.
struct Move {
  uint32_t round = 0;
  uint32_t block = 0;
  NodeId peer;
  uint32_t count = 1;  ///< of blocks
  bool combines = false;
  uint64_t held = 0;  ///< blocks that its node has received after it
};

/// "b2", "b2-5".
std::string BlocksText(const Move& move) {
  return move.count == 1 ? fmt::format("b{}", move.block)
                         : fmt::format("b{}-{}", move.block, move.block + move.count - 1);
}
/// "+b2 from 4": a plus where it is combined.
std::string ReceivedText(const Move& move) {
  return fmt::format("{}{} from {}", move.combines ? "+" : "", BlocksText(move), move.peer.value);
}

/// One row: what a node does with the selected blocks, in op order (rounds never fall on a channel,
/// but may across).
struct Timeline {
  NodeId node;
  bool is_root = false;   ///< it has all that is asked for from the start
  uint64_t expected = 0;  ///< blocks, of those selected, that it receives or, in multicasts, has
  std::vector<Move> received;
  std::vector<Move> sent;
  std::optional<uint32_t> complete_round;  ///< none for the root, and when a block never comes
};

struct Picture {
  const Plan& plan;
  const Selection& selection;
  Racks racks;
  std::vector<Timeline> rows;
  std::vector<RackBand> bands;  ///< of rows
  Rounds rounds;                ///< shown; meaningless when `columns` is 0
  uint64_t columns = 0;         ///< rounds shown
  uint64_t blocks = 0;          ///< selected blocks
};

Timeline ReadTimeline(const Plan& plan, const Program& program, const Selection& selection,
                      uint64_t blocks) {
  const bool is_multicast = plan.header().collective.kind == CollectiveKind::kMulticast;
  Timeline row{.node = program.node,
               .is_root = is_multicast && plan.header().roles().IsSource(program.node),
               .expected = blocks,
               .received = {},
               .sent = {},
               .complete_round = {}};
  for (const Op& op : plan.ops(program)) {
    if (op.is_credit() || !selection.HasSome(op)) continue;
    const Channel& channel = plan.channels()[op.channel.index()];
    const Move move{.round = op.round,
                    .block = op.block,
                    .peer = op.is_send() ? channel.to : channel.from,
                    .count = op.count,
                    .combines = op.is_combine()};
    (op.is_send() ? row.sent : row.received).push_back(move);
  }
  std::ranges::stable_sort(row.received, {}, &Move::round);
  std::ranges::stable_sort(row.sent, {}, &Move::round);
  uint64_t held = 0;
  for (Move& move : row.received) move.held = held += move.count;
  if (!is_multicast) {
    row.is_root = row.received.empty();
    row.expected = held;
  }
  if (!row.is_root && held >= row.expected) row.complete_round = row.received.back().round;
  return row;
}

Picture ReadPicture(const Plan& plan, const Selection& selection, const Network* network) {
  Picture picture{
      .plan = plan,
      .selection = selection,
      .racks = Racks(network),
      .rows = {},
      .bands = {},
      .rounds = {},
      .columns = 0,
      .blocks = selection.blocks.empty() ? plan.header().payload.blocks : selection.blocks.size()};
  for (const Program& program : plan.programs()) {
    if (!selection.HasNode(program.node)) continue;
    picture.rows.push_back(ReadTimeline(plan, program, selection, picture.blocks));
  }
  picture.bands = picture.racks.Arrange(picture.rows);
  if (plan.header().rounds == 0) return picture;
  picture.rounds = selection.rounds.value_or(Rounds{.first = 0, .last = plan.header().rounds - 1});
  picture.columns = uint64_t{picture.rounds.last} - picture.rounds.first + 1;
  return picture;
}

/// Blocks, of those that `row` expects, that it holds at the end of `round`.
uint64_t HeldAfter(const Timeline& row, uint64_t round) {
  if (row.is_root) return row.expected;
  const auto end = std::ranges::upper_bound(row.received, round, {}, &Move::round);
  return end == row.received.begin() ? 0 : std::prev(end)->held;
}

bool IsMulticast(const Picture& picture) {
  return picture.plan.header().collective.kind == CollectiveKind::kMulticast;
}

std::span<const Move> InRound(const std::vector<Move>& moves, uint32_t round) {
  const auto found = std::ranges::equal_range(moves, round, {}, &Move::round);
  return {found.begin(), found.end()};
}

std::string CompleteText(const Picture& picture, const Timeline& row) {
  if (row.is_root) return IsMulticast(picture) ? "from the start" : "receives nothing";
  return row.complete_round ? fmt::format("round {}", *row.complete_round) : "never";
}

ChartTitle TitleOf(const Picture& picture, std::string note) {
  const PlanHeader& header = picture.plan.header();
  const bool all = picture.selection.blocks.empty();
  return {.headline = Headline(header),
          .subline = Subline(header),
          .note = picture.racks.WithNote(std::move(note), picture.plan, picture.selection),
          .right = !IsMulticast(picture) ? "has its last block"
                   : all                 ? "has all blocks"
                                         : "has these blocks"};
}

/// The bar at the foot of a cell: the share of the blocks held after its round.
void HeldBar(Svg& svg, const Box& cell, int height, uint64_t held, uint64_t blocks) {
  const int width = cell.width - 4;
  const Box rest{cell.x + 2, cell.y + cell.height - height - 1, width, height};
  const int share = static_cast<int>(std::min(held, blocks) * static_cast<uint64_t>(width) /
                                     std::max<uint64_t>(blocks, 1));
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
    size_t longest = 0;  // of what stands side by side in a cell
    for (const Timeline& row : picture.rows) {
      size_t length = 0;
      for (size_t i = 0; i < row.received.size(); ++i) {
        if (i == 0 || row.received[i].round != row.received[i - 1].round) length = 0;
        length += ReceivedText(row.received[i]).size();
        longest = std::max(longest, length);
      }
    }
    const std::string last =
        fmt::format("b{} from {}", header.payload.blocks - 1, header.nodes - 1);
    const std::string widest = IsMulticast(picture) ? last : std::string(longest, '0');
    return {.words = true,
            .width = static_cast<int>(std::ceil(TextWidth(widest, 12))) + 12,
            .height = 46,
            .in_height = 20,
            .out_height = 16,
            .bar_height = 3};
  }
  const std::string widest = fmt::to_string(std::max(header.payload.blocks, header.rounds) - 1);
  return {.words = false,
          .width = std::max(26, static_cast<int>(std::ceil(TextWidth(widest, 11))) + 8),
          .height = picture.racks.known() ? 31 : 26,
          .in_height = picture.racks.known() ? 16 : 14,
          .out_height = picture.racks.known() ? 8 : 5,  // room for a mark
          .bar_height = 2};
}

std::string CellTooltip(const Picture& picture, const Timeline& row, uint32_t round,
                        std::span<const Move> received, std::span<const Move> sent, uint64_t held) {
  std::string text = fmt::format("round {}: node {}", round, row.node.value);
  const char* separator = " ";
  const auto blocks_of = [](const Move& move) {
    return move.count == 1
               ? fmt::format("block {}", move.block)
               : fmt::format("blocks {} to {}", move.block, move.block + move.count - 1);
  };
  for (const Move& move : received) {
    text +=
        fmt::format("{}{} {} from node {}{}", separator, move.combines ? "combines" : "receives",
                    blocks_of(move), move.peer.value, picture.racks.PeerText(row.node, move.peer));
    separator = ", ";
  }
  for (const Move& move : sent) {
    text += fmt::format("{}sends {} to node {}{}", separator, blocks_of(move), move.peer.value,
                        picture.racks.PeerText(row.node, move.peer));
    separator = ", ";
  }
  if (received.empty() && sent.empty()) text += " is idle";
  return text +
         (IsMulticast(picture)
              ? fmt::format("; it then has {} of {}", held, Count(picture.blocks, "block"))
              : fmt::format("; it then has received {} of {}", held, Count(row.expected, "block")));
}

/// Splits `box` evenly among the moves of one cell (more than one only in plans with several
/// ports).
Box Part(const Box& box, size_t index, size_t count) {
  const int width = box.width / static_cast<int>(count);
  return {box.x + static_cast<int>(index) * width, box.y, width, box.height};
}

void DrawSent(Svg& svg, const CellStyle& style, const Move& move, const Box& box, Color color) {
  if (!style.words) {
    svg.Rect("", box, color);
    return;
  }
  svg.Rect("out", box);
  svg.Rect("", {box.x, box.y, 7, box.height}, color);
  const std::string text = fmt::format("{} to {}", BlocksText(move), move.peer.value);
  if (TextWidth(text, 11) + 9 <= box.width) {
    svg.Text("c", box.x + 4 + box.width / 2, box.y + box.height - 4, text);
  }
}

void DrawCell(Svg& svg, const Picture& picture, const CellStyle& style, const Timeline& row,
              uint32_t round, const Box& cell) {
  const uint32_t blocks = picture.plan.header().payload.blocks;
  const auto received = InRound(row.received, round);
  const auto sent = InRound(row.sent, round);
  const uint64_t held = HeldAfter(row, round);
  svg.BeginGroup("", CellTooltip(picture, row, round, received, sent, held));
  svg.Rect(row.is_root ? "root" : "cell",
           {cell.x + 1, cell.y + 1, cell.width - 2, cell.height - 2});
  const Box in{cell.x + 2, cell.y + 2, cell.width - 4, style.in_height};
  for (size_t i = 0; i < received.size(); ++i) {
    const Move& move = received[i];
    const std::string text = style.words     ? ReceivedText(move)
                             : move.combines ? fmt::format("+{}", move.block)
                                             : fmt::to_string(move.block);
    const Box part = Part(in, i, received.size());
    const bool fits = TextWidth(text, style.words ? 11 : 10) <= part.width;
    Label(svg, style.words ? "b" : "n", part, BlockColor(move.block, blocks), fits ? text : "");
    if (picture.racks.Cross(move.peer, row.node)) MarkCrossing(svg, part);
  }
  const Box out{in.x, in.y + in.height + 1, in.width, style.out_height};
  for (size_t i = 0; i < sent.size(); ++i) {
    const Box part = Part(out, i, sent.size());
    DrawSent(svg, style, sent[i], part, BlockColor(sent[i].block, blocks));
    if (picture.racks.Cross(row.node, sent[i].peer)) MarkCrossing(svg, part);
  }
  HeldBar(svg, cell, style.bar_height, held, row.expected);
  if (row.complete_round == round) {
    svg.Rect("done", {cell.x + 1, cell.y + 1, cell.width - 2, cell.height - 2});
  }
  svg.EndGroup();
}

void DrawDetailedLegend(Svg& svg, const Picture& picture, const CellStyle& style) {
  if (picture.columns == 0) return;
  constexpr Color kSample{0x26, 0x82, 0x8e};
  Legend legend(svg);
  const auto in_some = [&](const auto& moves_of) {
    return std::ranges::any_of(picture.rows, [&](const Timeline& row) {
      return std::ranges::any_of(
          row.*moves_of, [&](const Move& move) { return picture.rounds.Contains(move.round); });
    });
  };
  const bool receives = in_some(&Timeline::received);
  const bool sends = in_some(&Timeline::sent);
  if (receives) {
    Label(svg, style.words ? "b" : "n", legend.Sample(style.words ? 70 : 26), kSample,
          style.words ? "b2 from 4" : "2");
    legend.Meaning("receives block 2");
  }
  if (!picture.plan.header().combine.is_none()) {
    Label(svg, style.words ? "b" : "n", legend.Sample(style.words ? 76 : 26), kSample,
          style.words ? "+b2 from 4" : "+2");
    legend.Meaning("and combines it with its own");
  }
  if (sends) {
    const Box out = legend.Sample(style.words ? 56 : 26);
    if (style.words) {
      svg.Rect("out", out);
      svg.Rect("", {out.x, out.y, 7, out.height}, kSample);
      svg.Text("c", out.x + 31, out.y + 12, "b2 to 5");
    } else {
      svg.Rect("", {out.x, out.y + 6, out.width, style.out_height}, kSample);
    }
    legend.Meaning(style.words ? "sends block 2" : "sends the block of that colour");
  }
  Box bar = legend.Sample(40);
  HeldBar(svg, {bar.x, bar.y, bar.width, 12}, 3, 3, 5);
  legend.Meaning(!IsMulticast(picture)              ? "share of what it receives"
                 : picture.selection.blocks.empty() ? "share of the blocks held"
                                                    : "share of these blocks held");
  const bool completes = std::ranges::any_of(picture.rows, [&](const Timeline& row) {
    return row.complete_round && picture.rounds.Contains(*row.complete_round);
  });
  if (completes) {
    const Box done = legend.Sample(24);
    svg.Rect("done", {done.x + 1, done.y + 1, done.width - 2, done.height - 2});
    legend.Meaning(picture.selection.blocks.empty() ? "has its last block"
                                                    : "has the last of these blocks");
  }
  if ((receives || sends) && picture.racks.known()) ExplainCrossing(svg, legend, picture.racks);
}

std::string DrawDetailed(const Picture& picture) {
  const CellStyle style = ChooseStyle(picture);
  const Grid grid{.left = ChartLeft(fmt::format("node {} (root)", picture.plan.header().nodes - 1)),
                  .top = kChartHeaderHeight,
                  .cell_width = style.width,
                  .cell_height = style.height,
                  .columns = static_cast<int>(picture.columns),
                  .rows = static_cast<int>(picture.rows.size()),
                  .offsets = RackOffsets(picture.bands)};
  std::string note = Describe(picture.selection);
  if (picture.columns == 0) note = "one node: it has the whole message and nothing is sent";
  Svg svg = StartChart(grid, TitleOf(picture, note), kChartRight, picture.racks.Style());
  DrawDetailedLegend(svg, picture, style);
  if (picture.columns != 0) svg.Text("r", grid.left - 8, grid.top - 8, "round");
  for (int column = 0; column < grid.columns; ++column) {
    svg.Text("c", grid.Cell(0, column).x + grid.cell_width / 2, grid.top - 8,
             fmt::to_string(picture.rounds.first + static_cast<uint32_t>(column)));
  }
  DrawRackHeadings(svg, grid, picture.bands);
  for (int i = 0; i < grid.rows; ++i) {
    const Timeline& row = picture.rows[static_cast<size_t>(i)];
    const int base = grid.Cell(i, 0).y + grid.cell_height / 2 + 4;
    svg.Text("r", grid.left - 8, base, RowLabel(picture.plan.header(), row.node));
    for (int column = 0; column < grid.columns; ++column) {
      DrawCell(svg, picture, style, row, picture.rounds.first + static_cast<uint32_t>(column),
               grid.Cell(i, column));
    }
    svg.Text("l", grid.right() + 10, base, CompleteText(picture, row));
  }
  return std::move(svg).Finish();
}

// ---- Summary ----------------------------------------------------------------------------------

/// When all of `rows` have all of the blocks.
std::string EndText(std::span<const Timeline> rows) {
  if (rows.size() == 1 && rows.front().is_root)
    return rows.front().expected == 0 ? "receives nothing" : "from the start";
  uint32_t latest = 0;
  for (const Timeline& row : rows) {
    if (row.is_root) continue;
    if (!row.complete_round) return "never";
    latest = std::max(latest, *row.complete_round);
  }
  return fmt::format("by round {}", latest);
}

std::string DrawSummary(const Picture& picture) {
  const RowBins rows = BinRows(picture.rows.size(), picture.bands);
  const Bins columns(picture.columns);
  const std::string only = Describe(picture.selection);
  ShareTable table{
      .title = TitleOf(
          picture,
          fmt::format(
              "{}{}summary: a cell is {} node{} x {} round{}; --rounds first:last and --node show "
              "each block (up to {} nodes x {} rounds){}",
              only, only.empty() ? "" : "; ", rows.size, rows.size == 1 ? "" : "s", columns.size,
              columns.size == 1 ? "" : "s", kDetailedNodesMax, kDetailedRoundsMax,
              rows.MixedNote())),
      .corner = "from round",
      .legend =
          IsMulticast(picture)
              ? "percent of the blocks that these nodes, but for the root, hold after these rounds"
              : "percent of what these nodes receive that is there after these rounds",
      .completed = "now all of them have every block",
      .columns = {},
      .rows = {},
      .bands = rows.bands,
      .style = picture.racks.Style()};
  for (uint64_t bin = 0; bin < columns.bins(); ++bin) {
    const uint64_t first = picture.rounds.first + columns.Begin(bin);
    const uint64_t last = picture.rounds.first + columns.End(bin) - 1;
    table.columns.push_back(
        {.name = fmt::to_string(first), .meaning = "after rounds " + Range(first, last)});
  }
  uint64_t most = 1;  // nodes expect more or fewer: shares of the most
  for (const Timeline& row : picture.rows) most = std::max(most, row.expected);
  const auto held = [&](const Timeline& row, size_t column) {
    const uint64_t blocks = HeldAfter(row, picture.rounds.first + columns.End(column) - 1);
    return row.expected == 0 ? most : blocks * most / row.expected;
  };
  AddShareRows<Timeline>(table, picture.rows, rows, most, held, EndText);
  return DrawShareTable(picture.plan.header(), table);
}

}  // namespace

std::string DrawSpacetime(const Plan& plan, const Selection& selection, const Network* network) {
  const Picture picture = ReadPicture(plan, selection, network);
  const bool detailed =
      picture.rows.size() <= kDetailedNodesMax && picture.columns <= kDetailedRoundsMax;
  return detailed ? DrawDetailed(picture) : DrawSummary(picture);
}

}  // namespace prepost::viz
