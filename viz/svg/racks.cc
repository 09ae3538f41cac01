// SPDX-License-Identifier: Apache-2.0
#include "viz/svg/racks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <utility>
#include <vector>

#include "ir/base/count.h"
#include "viz/svg/palette.h"

namespace prepost::viz {
namespace {

constexpr int kHeadingHeight = 22;
/// Pairs of racks whose crossings a note counts one by one.
constexpr size_t kNamedPairsMax = 4;

}  // namespace

Racks::Racks(const Network* network) : network_(network) {
  if (!known()) return;
  lowest_.assign(network->racks.size(), 0);
  for (size_t i = network->nodes.size(); i-- > 0;) {
    lowest_[network->nodes[i].rack] = static_cast<uint32_t>(i);
  }
}

bool Racks::Cross(NodeId from, NodeId to) const { return known() && RackOf(from) != RackOf(to); }

std::string Racks::Name(NodeId node) const {
  return known() ? fmt::format("{} ", network_->RackWord()) +
                       Shortened(network_->racks[RackOf(node)].name)
                 : "";
}

std::string Racks::PeerText(NodeId node, NodeId peer) const {
  return Cross(node, peer) ? " in " + Name(peer) : "";
}

std::string Racks::Note(uint64_t crossing, uint64_t transfers) const {
  if (!known()) return "";
  return fmt::format("{}: {} of {} between {}s",
                     Count(network_->OccupiedRacks(), network_->RackWord()), crossing,
                     Count(transfers, "transfer"), network_->RackWord());
}

std::string Racks::Note(const Plan& plan, const Selection& selection) const {
  if (!known()) return "";
  uint64_t crossing = 0;
  uint64_t transfers = 0;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> by_racks;  // that cross
  for (const Op& op : plan.ops()) {
    if (!op.is_send() || op.is_credit()) continue;
    if (!selection.HasBlock(op.block) || !selection.HasRound(op.round)) continue;
    const Channel& channel = plan.channels()[op.channel.index()];
    if (!selection.HasNode(channel.from) && !selection.HasNode(channel.to)) continue;
    ++transfers;
    if (!Cross(channel.from, channel.to)) continue;
    ++crossing;
    ++by_racks[{RackOf(channel.from), RackOf(channel.to)}];
  }
  std::string note = Note(crossing, transfers);
  if (by_racks.size() < 2 || by_racks.size() > kNamedPairsMax) return note;
  std::vector<std::string> parts;
  for (const auto& [racks, count] : by_racks) {
    parts.push_back(fmt::format("{} from {} to {}", count,
                                Shortened(network_->racks[racks.first].name),
                                Shortened(network_->racks[racks.second].name)));
  }
  return fmt::format("{}, {}", note, fmt::join(parts, ", "));
}

std::string Racks::WithNote(std::string text, const Plan& plan, const Selection& selection) const {
  const std::string note = Note(plan, selection);
  if (!text.empty() && !note.empty()) text += "; ";
  return text + note;
}

std::string Racks::Style() const {
  if (!known()) return "";
  return fmt::format(
      ".rack{{font-size:12px;font-weight:bold}}.edge{{fill:#222}}"
      ".under,.cross{{fill:none;stroke-width:2}}.under{{stroke:#fff}}"
      ".cross{{stroke:{};stroke-dasharray:4 2}}",
      Hex(kCrossingColor));
}

std::vector<int> RackOffsets(const std::vector<RackBand>& bands) {
  std::vector<int> offsets;
  for (size_t i = 0; i < bands.size(); ++i) {
    offsets.insert(offsets.end(), bands[i].end - bands[i].begin,
                   (static_cast<int>(i) + 1) * kHeadingHeight);
  }
  return offsets;
}

void DrawRackHeadings(Svg& svg, const Grid& grid, const std::vector<RackBand>& bands) {
  for (const RackBand& band : bands) {
    const int top = grid.Cell(static_cast<int>(band.begin), 0).y - kHeadingHeight;
    svg.Rect("edge", {kChartMargin, top + 3, grid.right() - kChartMargin, 1});
    svg.Text("rack", kChartMargin, top + 17, band.name);
  }
}

void MarkCrossing(Svg& svg, const Box& box) {
  constexpr int kFrameMin = 5;  // else the frame would hide the block's colour
  if (box.width < kFrameMin || box.height < kFrameMin) {
    svg.Rect("", {box.x, box.y, box.width, (box.height + 1) / 2}, kCrossingColor);
    return;
  }
  const Box frame{box.x + 1, box.y + 1, box.width - 2, box.height - 2};
  svg.Rect("under", frame);
  svg.Rect("cross", frame);
}

void ExplainCrossing(Svg& svg, Legend& legend, const Racks& racks) {
  MarkCrossing(svg, legend.Sample(30));
  legend.Meaning(fmt::format("goes between {}s", racks.word()));
}

}  // namespace prepost::viz
