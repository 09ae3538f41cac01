// SPDX-License-Identifier: Apache-2.0
//
// One walk over the selected ops makes a row per node of its receives and sends with their times.
// The ideal run of the plan's R rounds takes as long as the measured one, T, and its round r ends
// at (r + 1) / R x T: a receive that completes d later is late by d. Bars of one row that overlap
// (a node that receives from two peers at once) are put into tracks, each into the first that is
// free.
#include "viz/plan/trace_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "ir/base/count.h"
#include "ir/json/rate_text.h"
#include "viz/plan/spacetime.h"
#include "viz/svg/chart.h"
#include "viz/svg/racks.h"
#include "viz/svg/share_table.h"

namespace prepost::viz {
namespace {

constexpr int kTracksMax = 4;
constexpr int kReceiveHeight = 20;
constexpr int kSendHeight = 12;
constexpr int kRowHeight = kReceiveHeight + kSendHeight + 8;
constexpr int kWidthMin = 960;
constexpr int kWidthMax = 4800;
constexpr int kBarWidth = 22;  ///< wished for
constexpr uint64_t kTicks = 10;

constexpr std::string_view kTraceStyle =
    ".round{fill:#c9c9d6}.tick{fill:#888}.t{font-size:9px;fill:#77778c;text-anchor:middle}"
    ".open{fill-opacity:0.35;stroke:#000;stroke-dasharray:3 2}";

/// One block received or sent; times in ns since the start of the transfer.
struct TimedMove {
  uint32_t block = 0;
  uint32_t count = 1;  ///< of blocks
  bool combines = false;
  uint32_t round = 0;
  NodeId peer;
  int64_t started = 0;
  std::optional<int64_t> completed;
};

struct TimedRow {
  NodeId node;
  bool is_root = false;   ///< of a multicast; of others, nothing is sent to it
  uint64_t expected = 0;  ///< receives that the selected part of the plan has
  bool has_trace = true;
  std::vector<TimedMove> received;  ///< both by start
  std::vector<TimedMove> sent;
  std::vector<int64_t> completed;  ///< of receives, sorted
};

/// The receive that is latest.
struct Latest {
  int64_t late = 0;
  NodeId node;
  std::string blocks;  ///< "block 3"
};

struct TracePicture {
  const Plan& plan;
  const Selection& selection;
  Racks racks;
  std::string modelled;  ///< and with what; empty: measured
  std::vector<TimedRow> rows;
  std::vector<RackBand> bands;    ///< of rows
  uint64_t blocks = 0;            ///< selected
  uint64_t bars = 0;              ///< all moves
  uint64_t expected = 0;          ///< receives that the selected part of the plan has
  int64_t total = 1;              ///< to the last receive of the whole trace, at least 1
  int64_t first = 0;              ///< shown from
  int64_t last = 1;               ///< to, later than `first`
  std::vector<int64_t> lateness;  ///< of completed receives, sorted
  std::optional<Latest> latest;
  std::optional<NodeId> slowest;  ///< that of the last receive
  std::vector<uint32_t> unknown;  ///< nodes of `rows` without a trace, sorted
  bool is_partial = false;        ///< some node of the plan has no trace
};

/// "block 3", "blocks 4-7".
std::string BlocksText(const TimedMove& move) {
  return move.count == 1
             ? fmt::format("block {}", move.block)
             : fmt::format("blocks {}", Range(move.block, uint64_t{move.block} + move.count - 1));
}

bool IsMulticast(const TracePicture& picture) {
  return picture.plan.header().collective.kind == CollectiveKind::kMulticast;
}

/// `time` since the start; what was before it counts as at it.
int64_t SinceStart(const RunTrace& trace, uint64_t time) {
  return time <= trace.start_ns ? 0 : static_cast<int64_t>(time - trace.start_ns);
}

/// When `round` ends in the ideal run.
int64_t IdealEnd(const TracePicture& picture, uint32_t round) {
  const double share = (round + 1.0) / std::max(1u, picture.plan.header().rounds);
  return static_cast<int64_t>(share * static_cast<double>(picture.total));
}

TimedRow ReadRow(TracePicture& picture, const RunTrace& trace, const Program& program,
                 bool has_trace) {
  const Plan& plan = picture.plan;
  TimedRow row{.node = program.node,
               .is_root = IsMulticast(picture) && plan.header().roles().IsSource(program.node),
               .has_trace = has_trace,
               .received = {},
               .sent = {},
               .completed = {}};
  const std::span<const OpTimes> all = trace.times(program.node);
  for (uint32_t id = 0; id < program.op_count; ++id) {
    const Op& op = plan.ops(program)[id];
    if (op.is_credit() || !picture.selection.HasSome(op)) continue;
    if (!picture.selection.HasRound(op.round)) continue;
    if (!op.is_send()) ++row.expected;
    const OpTimes& times = all[id];
    if (times.started_ns == 0 && times.completed_ns == 0) continue;
    const Channel& channel = plan.channels()[op.channel.index()];
    TimedMove move{.block = op.block,
                   .count = op.count,
                   .combines = op.is_combine(),
                   .round = op.round,
                   .peer = op.is_send() ? channel.to : channel.from,
                   .started = 0,
                   .completed = {}};
    if (times.completed_ns != 0) move.completed = SinceStart(trace, times.completed_ns);
    move.started = times.started_ns != 0 ? SinceStart(trace, times.started_ns) : *move.completed;
    if (!op.is_send() && move.completed) row.completed.push_back(*move.completed);
    (op.is_send() ? row.sent : row.received).push_back(move);
  }
  std::ranges::stable_sort(row.received, {}, &TimedMove::started);
  std::ranges::stable_sort(row.sent, {}, &TimedMove::started);
  std::ranges::sort(row.completed);
  picture.expected += row.expected;
  if (!IsMulticast(picture)) row.is_root = row.expected == 0;
  return row;
}

void MeasureLateness(TracePicture& picture) {
  int64_t last = -1;
  for (const TimedRow& row : picture.rows) {
    for (const TimedMove& move : row.received) {
      if (!move.completed) continue;
      const int64_t late = *move.completed - IdealEnd(picture, move.round);
      picture.lateness.push_back(late);
      if (!picture.latest || late > picture.latest->late) {
        picture.latest = Latest{.late = late, .node = row.node, .blocks = BlocksText(move)};
      }
      if (*move.completed > last) {
        last = *move.completed;
        picture.slowest = row.node;
      }
    }
  }
  std::ranges::sort(picture.lateness);
}

/// The whole transfer or, when rounds are selected, from their first start to their last end, in
/// the run and in the ideal one.
void ChooseAxis(TracePicture& picture) {
  const std::optional<Rounds>& rounds = picture.selection.rounds;
  int64_t last = rounds ? IdealEnd(picture, rounds->last) : picture.total;
  int64_t first = rounds && rounds->first > 0 ? IdealEnd(picture, rounds->first - 1) : 0;
  for (const TimedRow& row : picture.rows) {
    for (const std::vector<TimedMove>* moves : {&row.received, &row.sent}) {
      for (const TimedMove& move : *moves) {
        first = std::min(first, move.started);
        last = std::max(last, move.completed.value_or(move.started));
      }
    }
  }
  picture.first = std::min(first, last);
  picture.last = std::max(picture.first + 1, last);
}

TracePicture ReadTracePicture(const Plan& plan, const RunTrace& trace, const Selection& selection,
                              const Network* network) {
  TracePicture picture{
      .plan = plan, .selection = selection, .racks = Racks(network), .modelled = trace.modelled};
  picture.blocks =
      selection.blocks.empty() ? plan.header().payload.blocks : selection.blocks.size();
  picture.total = std::max<int64_t>(1, RunDuration(plan, trace));
  const std::vector<bool> without_trace = NodesWithoutTrace(plan, trace);
  for (const Program& program : plan.programs()) {
    const bool has_trace = !without_trace[program.node.index()];
    picture.is_partial |= !has_trace;
    if (!selection.HasNode(program.node)) continue;
    if (!has_trace) picture.unknown.push_back(program.node.value);
    picture.rows.push_back(ReadRow(picture, trace, program, has_trace));
    picture.bars += picture.rows.back().received.size() + picture.rows.back().sent.size();
  }
  picture.bands = picture.racks.Arrange(picture.rows);
  MeasureLateness(picture);
  ChooseAxis(picture);
  return picture;
}

/// "1.2 ms late", "30 us early", "on time".
std::string LateText(int64_t late) {
  if (late == 0) return "on time";
  return fmt::format("{} {}", ShortDuration(std::abs(late)), late < 0 ? "early" : "late");
}

/// "took 27.94 ms; against rounds of equal length, receives end 1.2 ms early at the median, at
/// worst 3.4 ms late (node 5, block 3); ..."
std::string Findings(const TracePicture& picture) {
  if (picture.expected == 0) return "nothing is received here";
  const bool is_known = picture.unknown.empty();
  const std::string of =
      fmt::format("{} of {}", picture.lateness.size(), Count(picture.expected, "receive"));
  const std::string missing = is_known ? "" : NamesOf("no trace of node", picture.unknown) + "; ";
  if (picture.lateness.empty()) {
    return is_known ? "no receive of these completed" : fmt::format("{}known: {}", missing, of);
  }
  const int64_t median = picture.lateness[picture.lateness.size() / 2];
  const std::string text = fmt::format(
      "{}took {}{}; against rounds of equal length, receives end {} at the median, at worst {} "
      "(node {}, {}); the last one at node {}",
      missing, picture.is_partial ? "at least " : "", ShortDuration(picture.total),
      LateText(median), LateText(picture.latest->late), picture.latest->node.value,
      picture.latest->blocks, picture.slowest->value);
  if (picture.lateness.size() == picture.expected) return text;
  return is_known ? fmt::format("{}; {} completed", text, of)
                  : fmt::format("{}; known: {}", text, of);
}

/// `summary` is what the picture leaves out, or "".
ChartTitle TitleOf(const TracePicture& picture, const std::string& summary) {
  const std::string only = Describe(picture.selection);
  const std::string findings =
      fmt::format("{}{}{}", only, only.empty() ? "" : "; ", Findings(picture));
  const std::string with = picture.modelled.empty() ? "" : "; " + picture.modelled;
  const std::string subline =
      picture.racks.WithNote(Subline(picture.plan.header()), picture.plan, picture.selection);
  return {.headline = Headline(picture.plan.header()) +
                      (picture.modelled.empty() ? ", measured" : ", modelled"),
          .subline = (summary.empty() ? subline : findings) + with,
          .note = summary.empty()
                      ? findings
                      : picture.racks.WithNote(summary, picture.plan, picture.selection),
          .right = !IsMulticast(picture)     ? "has its last block"
                   : picture.selection.all() ? "has all blocks"
                                             : "has these"};
}

/// "27.94 ms", "never", "nothing known".
std::string EndOf(const TracePicture& picture, const TimedRow& row) {
  if (row.is_root) return IsMulticast(picture) ? "from the start" : "receives nothing";
  if (picture.selection.rounds) {
    return row.completed.empty() ? "" : ShortDuration(row.completed.back());
  }
  if (!row.has_trace) return "no trace";
  if (row.received.empty()) return "nothing known";
  return row.completed.size() < row.expected ? "never" : ShortDuration(row.completed.back());
}

// ---- Detail -----------------------------------------------------------------------------------

/// Where times lie on the axis.
class TimeAxis {
 public:
  TimeAxis(const TracePicture& picture, int left, int width)
      : first_(picture.first), last_(picture.last), left_(left), width_(width) {}

  int X(int64_t time) const {
    const double share = static_cast<double>(time - first_) / static_cast<double>(last_ - first_);
    return left_ + static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * width_));
  }
  bool Shows(int64_t time) const { return first_ <= time && time <= last_; }
  int64_t first() const { return first_; }
  int64_t last() const { return last_; }
  int right() const { return left_ + width_; }

 private:
  int64_t first_;
  int64_t last_;
  int left_;
  int width_;
};

/// 1, 2 or 5 times a power of ten, so that there are about kTicks.
int64_t TickStep(int64_t span) {
  int64_t step = 1;
  for (const int64_t limit = std::max<int64_t>(1, span / static_cast<int64_t>(kTicks));;) {
    for (const int64_t factor : {1, 2, 5}) {
      if (step * factor >= limit) return step * factor;
    }
    step *= 10;
  }
}

void DrawAxis(Svg& svg, const TracePicture& picture, const Grid& grid, const TimeAxis& axis) {
  const int height = grid.bottom() - grid.top;
  const int64_t step = TickStep(axis.last() - axis.first());
  for (int64_t time = (axis.first() + step - 1) / step * step; time <= axis.last(); time += step) {
    svg.Rect("tick", {axis.X(time), grid.top - 5, 1, 5});
    svg.Text("c", axis.X(time), grid.top - 20, ShortDuration(time));
  }
  const uint32_t rounds = picture.plan.header().rounds;
  int free = 0;
  int line = 0;
  for (uint32_t round = 0; round < rounds; ++round) {
    if (!picture.selection.HasRound(round)) continue;
    const int64_t end = IdealEnd(picture, round);
    const int64_t begin = round == 0 ? 0 : IdealEnd(picture, round - 1);
    if (!axis.Shows(begin) && !axis.Shows(end)) continue;
    if (axis.Shows(begin) && axis.X(begin) >= line) {
      svg.Rect("round", {axis.X(begin), grid.top, 1, height});
      line = axis.X(begin) + 6;
    }
    const std::string name = fmt::to_string(round);
    const int middle = (axis.X(begin) + axis.X(end)) / 2;
    const int half = static_cast<int>(std::ceil(TextWidth(name, 9) / 2)) + 3;
    if (middle - half < free) continue;
    svg.Text("t", middle, grid.top - 8, name);
    free = middle + half;
  }
}

/// A track for each of `moves`, and how many there are.
std::pair<std::vector<int>, int> TracksOf(const std::vector<TimedMove>& moves, int64_t end) {
  std::vector<int> tracks;
  std::vector<int64_t> free_at;
  for (const TimedMove& move : moves) {
    size_t track = 0;
    while (track < free_at.size() && free_at[track] > move.started) ++track;
    track = std::min<size_t>(track, kTracksMax - 1);
    if (track == free_at.size()) free_at.push_back(0);
    free_at[track] = move.completed.value_or(end);
    tracks.push_back(static_cast<int>(track));
  }
  return {std::move(tracks), std::max(1, static_cast<int>(free_at.size()))};
}

std::string BarTooltip(const TracePicture& picture, const TimedRow& row, const TimedMove& move,
                       bool sent) {
  std::string text = fmt::format("node {} {} {} {} node {}{}, round {}: from {}", row.node.value,
                                 sent            ? "sends"
                                 : move.combines ? "combines"
                                                 : "receives",
                                 BlocksText(move), sent ? "to" : "from", move.peer.value,
                                 picture.racks.PeerText(row.node, move.peer), move.round,
                                 ShortDuration(move.started));
  if (!move.completed) return text + ", never completed";
  text += fmt::format(" to {}", ShortDuration(*move.completed));
  if (sent) return text;
  return text + ", " + LateText(*move.completed - IdealEnd(picture, move.round));
}

/// Draws `moves` into `area`, whose height the tracks share.
void DrawBars(Svg& svg, const TracePicture& picture, const TimeAxis& axis, const TimedRow& row,
              bool sent, const Box& area) {
  const std::vector<TimedMove>& moves = sent ? row.sent : row.received;
  const uint32_t blocks = picture.plan.header().payload.blocks;
  const auto [tracks, count] = TracksOf(moves, axis.last());
  for (size_t i = 0; i < moves.size(); ++i) {
    const TimedMove& move = moves[i];
    const int begin = axis.X(move.started);
    const int end = axis.X(move.completed.value_or(axis.last()));
    const int height = area.height / count;
    const Box bar{begin, area.y + tracks[i] * height, std::max(1, end - begin),
                  std::max(1, height - 1)};
    svg.BeginGroup(sent ? "send" : "recv", BarTooltip(picture, row, move, sent));
    const Color color = BlockColor(move.block, blocks);
    const std::string text = fmt::format("{}{}", move.combines ? "+" : "",
                                         Range(move.block, uint64_t{move.block} + move.count - 1));
    const bool crosses = picture.racks.Cross(row.node, move.peer);
    const int frame = crosses ? 8 : 2;
    const bool fits = !sent && bar.height >= 9 && TextWidth(text, 10) + frame <= bar.width;
    if (!move.completed) {
      svg.Rect("open", bar, color);
    } else if (fits) {
      Label(svg, "n", bar, color, text);
    } else {
      svg.Rect("", bar, color);
    }
    if (crosses) MarkCrossing(svg, bar);
    svg.EndGroup();
  }
}

void DrawTraceLegend(Svg& svg, const TracePicture& picture) {
  constexpr Color kSample{0x26, 0x82, 0x8e};
  Legend legend(svg);
  const auto some_row = [&](const auto& has) { return std::ranges::any_of(picture.rows, has); };
  const auto is_open = [](const TimedMove& move) { return !move.completed; };
  if (some_row([](const TimedRow& row) { return !row.received.empty(); })) {
    Label(svg, "n", legend.Sample(40), kSample, "2");
    legend.Meaning("receives block 2, from its first bytes to its completion");
  }
  if (!picture.plan.header().combine.is_none()) {
    Label(svg, "n", legend.Sample(40), kSample, "+2");
    legend.Meaning("and combines it with its own");
  }
  if (some_row([](const TimedRow& row) { return !row.sent.empty(); })) {
    const Box sent = legend.Sample(40);
    svg.Rect("", {sent.x, sent.y + 4, sent.width, 9}, kSample);
    legend.Meaning("sends the block of that colour");
  }
  if (picture.plan.header().rounds > 0) {
    const Box round = legend.Sample(8);
    svg.Rect("round", {round.x + 3, round.y, 1, round.height});
    legend.Meaning("rounds of equal length");
  }
  if (some_row([&](const TimedRow& row) {
        return std::ranges::any_of(row.received, is_open) || std::ranges::any_of(row.sent, is_open);
      })) {
    const Box open = legend.Sample(30);
    svg.Rect("open", {open.x, open.y + 2, open.width, 11}, kSample);
    legend.Meaning("never completed");
  }
  if (picture.bars > 0 && picture.racks.known()) ExplainCrossing(svg, legend, picture.racks);
}

std::string DrawDetailed(const TracePicture& picture) {
  size_t most = 0;
  for (const TimedRow& row : picture.rows) {
    most = std::max({most, row.received.size(), row.sent.size()});
  }
  const int width = std::clamp(static_cast<int>(most) * kBarWidth, kWidthMin, kWidthMax);
  const PlanHeader& header = picture.plan.header();
  const Grid grid{.left = ChartLeft(fmt::format("node {} (root)", header.nodes - 1)),
                  .top = kChartHeaderHeight + 14,
                  .cell_width = width,
                  .cell_height = kRowHeight,
                  .columns = 1,
                  .rows = static_cast<int>(picture.rows.size()),
                  .offsets = RackOffsets(picture.bands)};
  Svg svg = StartChart(grid, TitleOf(picture, ""), 120,
                       fmt::format("{}{}", kTraceStyle, picture.racks.Style()));
  DrawTraceLegend(svg, picture);
  const TimeAxis axis(picture, grid.left, width);
  for (int i = 0; i < grid.rows; ++i) {
    const Box cell = grid.Cell(i, 0);
    svg.Rect(picture.rows[static_cast<size_t>(i)].is_root ? "root" : "cell",
             {cell.x, cell.y + 1, cell.width, cell.height - 2});
  }
  svg.Text("r", grid.left - 8, grid.top - 20, "time");
  svg.Text("r", grid.left - 8, grid.top - 8, "round");
  DrawAxis(svg, picture, grid, axis);
  DrawRackHeadings(svg, grid, picture.bands);
  for (int i = 0; i < grid.rows; ++i) {
    const TimedRow& row = picture.rows[static_cast<size_t>(i)];
    const Box cell = grid.Cell(i, 0);
    const int base = cell.y + cell.height / 2 + 4;
    svg.Text("r", grid.left - 8, base, RowLabel(header, row.node));
    DrawBars(svg, picture, axis, row, /*sent=*/false,
             {cell.x, cell.y + 3, cell.width, kReceiveHeight});
    DrawBars(svg, picture, axis, row, /*sent=*/true,
             {cell.x, cell.y + kReceiveHeight + 5, cell.width, kSendHeight});
    svg.Text("l", grid.right() + 10, base, EndOf(picture, row));
  }
  return std::move(svg).Finish();
}

// ---- Summary ----------------------------------------------------------------------------------

/// When the last of `rows` has the blocks; "never" when one does not get them.
std::string EndOfGroup(const TracePicture& picture, std::span<const TimedRow> rows) {
  if (rows.size() == 1) return EndOf(picture, rows.front());
  int64_t last = 0;
  for (const TimedRow& row : rows) {
    if (row.is_root) continue;
    if (!row.has_trace) return "no trace of all";
    if (!picture.selection.rounds && row.completed.size() < row.expected) return "never";
    if (!row.completed.empty()) last = std::max(last, row.completed.back());
  }
  return "by " + ShortDuration(last);
}

std::string DrawSummary(const TracePicture& picture) {
  const RowBins rows = BinRows(picture.rows.size(), picture.bands);
  constexpr int64_t kColumns = 40;
  ShareTable table{
      .title = TitleOf(
          picture,
          fmt::format("summary: a cell is {} node{} at one time; --rounds first:last, --block and "
                      "--node show each block (up to {} nodes and {} bars){}",
                      rows.size, rows.size == 1 ? "" : "s", kDetailedNodesMax, kTraceBarsMax,
                      rows.MixedNote())),
      .corner = "at",
      .legend = IsMulticast(picture)
                    ? "percent of the blocks that these nodes, but for the root, have received"
                    : "percent of the messages to these nodes that have been received",
      .completed = "now all of them have every block",
      .columns = {},
      .rows = {},
      .bands = rows.bands,
      .style = picture.racks.Style()};
  const auto time_of = [&](int64_t column) {
    const double share = static_cast<double>(column + 1) / static_cast<double>(kColumns);
    const auto span = static_cast<double>(picture.last - picture.first);
    return column + 1 == kColumns ? picture.last
                                  : picture.first + static_cast<int64_t>(share * span);
  };
  for (int64_t column = 0; column < kColumns; ++column) {
    const std::string time = ShortDuration(time_of(column));
    table.columns.push_back({.name = column % 2 == 1 ? time : "", .meaning = "at " + time});
  }
  uint64_t most = picture.blocks;  // nodes of others expect more or fewer: shares of the most
  for (const TimedRow& row : picture.rows) {
    if (!IsMulticast(picture)) most = std::max(most, row.expected);
  }
  const auto held = [&](const TimedRow& row, size_t column) {
    if (row.is_root) return most;
    const auto end = std::ranges::upper_bound(row.completed, time_of(static_cast<int64_t>(column)));
    const auto count = static_cast<uint64_t>(end - row.completed.begin());
    return IsMulticast(picture) ? count : count * most / row.expected;
  };
  const auto end_of = [&](std::span<const TimedRow> group) { return EndOfGroup(picture, group); };
  AddShareRows<TimedRow>(table, picture.rows, rows, most, held, end_of);
  return DrawShareTable(picture.plan.header(), table);
}

}  // namespace

std::vector<bool> NodesWithoutTrace(const Plan& plan, const RunTrace& trace) {
  std::vector<bool> without(plan.header().nodes, false);
  bool is_some_known = false;
  for (const Program& program : plan.programs()) {
    const bool is_known = std::ranges::any_of(trace.times(program.node), [](const OpTimes& it) {
      return it.posted_ns != 0 || it.started_ns != 0 || it.completed_ns != 0;
    });
    without[program.node.index()] = program.op_count != 0 && !is_known;
    is_some_known |= is_known;
  }
  return is_some_known ? without : std::vector<bool>(without.size(), false);
}

int64_t RunDuration(const Plan& plan, const RunTrace& trace) {
  const std::vector<bool> without_trace = NodesWithoutTrace(plan, trace);
  int64_t total = 0;
  for (const Program& program : plan.programs()) {
    const std::span<const OpTimes> all = trace.times(program.node);
    for (uint32_t id = 0; id < program.op_count; ++id) {
      const Op& op = plan.ops(program)[id];
      if (op.is_credit()) continue;
      if (op.is_send() && !without_trace[plan.channels()[op.channel.index()].to.index()]) continue;
      total = std::max(total, SinceStart(trace, all[id].completed_ns));
    }
  }
  return total;
}

std::string DrawTrace(const Plan& plan, const RunTrace& trace, const Selection& selection,
                      const Network* network) {
  const TracePicture picture = ReadTracePicture(plan, trace, selection, network);
  const bool detailed = picture.rows.size() <= kDetailedNodesMax && picture.bars <= kTraceBarsMax;
  return detailed ? DrawDetailed(picture) : DrawSummary(picture);
}

}  // namespace prepost::viz
