// SPDX-License-Identifier: Apache-2.0
//
// Internal to viz: how pictures show the racks that nodes stand in, where the network is known:
// rows of one rack below a heading, and a mark on what crosses from one rack to another. The mark
// is a dashed frame on white, so that it is seen without its colour and on every block's colour.
#ifndef PREPOST_VIZ_SVG_RACKS_H_
#define PREPOST_VIZ_SVG_RACKS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/analysis/network.h"
#include "ir/plan.h"
#include "viz/selection.h"
#include "viz/svg/chart.h"

namespace prepost::viz {

/// Consecutive rows of one rack.
struct RackBand {
  size_t begin = 0;
  size_t end = 0;
  std::string name;  ///< as Racks::Name()
};

class Racks {
 public:
  /// `network` is checked, has all nodes of the picture's plan and outlives this; null: no rack is
  /// known, nothing crosses and nothing is drawn.
  explicit Racks(const Network* network);

  bool known() const { return network_ != nullptr; }
  /// "rack" or "site".
  const char* word() const { return known() ? network_->RackWord() : "rack"; }
  bool Cross(NodeId from, NodeId to) const;
  /// "rack r1", a long name cut; "" if none is known.
  std::string Name(NodeId node) const;
  /// " in rack r1", where what goes between `node` and `peer` crosses; else "".
  std::string PeerText(NodeId node, NodeId peer) const;
  /// "2 racks: 4 of 28 transfers cross between racks"; "" if none is known.
  std::string Note(uint64_t crossing, uint64_t transfers) const;
  /// The note on the plan's block transfers that have an end at a selected node; where few pairs of
  /// racks have crossings, how many each of them has: ", 8 from london to tokyo, ...".
  std::string Note(const Plan& plan, const Selection& selection) const;
  /// `text` and the note of `plan`, each if there.
  std::string WithNote(std::string text, const Plan& plan, const Selection& selection) const;
  /// CSS of the classes that the functions below use; "" if none is known.
  std::string Style() const;

  /// Brings `rows`, which have a `node`, into the order of nodes, those of a rack together: racks
  /// in the order of their lowest nodes. Then `bands` are theirs; none if no rack is known.
  template <typename Row>
  std::vector<RackBand> Arrange(std::vector<Row>& rows) const {
    std::ranges::sort(rows, {}, [&](const Row& row) {
      return std::pair(known() ? LowestBeside(row.node) : 0, row.node.value);
    });
    std::vector<RackBand> bands;
    for (size_t i = 0; known() && i < rows.size(); ++i) {
      if (i == 0 || Cross(rows[i - 1].node, rows[i].node)) {
        bands.push_back({.begin = i, .end = i, .name = Name(rows[i].node)});
      }
      bands.back().end = i + 1;
    }
    return bands;
  }

 private:
  uint32_t RackOf(NodeId node) const { return network_->nodes[node.index()].rack; }
  uint32_t LowestBeside(NodeId node) const { return lowest_[RackOf(node)]; }

  const Network* network_;
  std::vector<uint32_t> lowest_;  ///< node of each rack
};

/// Pixels that each row stands lower for the headings of `bands`, for Grid::offsets.
std::vector<int> RackOffsets(const std::vector<RackBand>& bands);
/// A line above each band, and its name.
void DrawRackHeadings(Svg& svg, const Grid& grid, const std::vector<RackBand>& bands);
/// Says that the transfer drawn as `box` crosses.
void MarkCrossing(Svg& svg, const Box& box);
/// The legend's entry for that.
void ExplainCrossing(Svg& svg, Legend& legend, const Racks& racks);

}  // namespace prepost::viz

#endif  // PREPOST_VIZ_SVG_RACKS_H_
