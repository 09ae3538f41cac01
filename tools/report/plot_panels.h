// SPDX-License-Identifier: Apache-2.0
//
// PlotPanels: how the curves of a sweep are shared out among the panels of its plot. Curves are
// combinations of a place on each of several dimensions: the executors, and each axis after the
// first. A panel has a run of places of each dimension.
#ifndef PREPOST_TOOLS_REPORT_PLOT_PANELS_H_
#define PREPOST_TOOLS_REPORT_PLOT_PANELS_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "ir/status.h"

namespace prepost::tools {

/// What can be told apart in one panel, and what one picture has room for.
inline constexpr size_t kPanelCurvesMax = 12;
inline constexpr size_t kPanelsMax = 24;

class PlotPanels {
 public:
  /// All in one panel. `sizes`: of dimensions, each 1 or more.
  explicit PlotPanels(std::vector<size_t> sizes)
      : sizes_(std::move(sizes)), parts_(sizes_.size(), 1) {}
  /// Few panels of at most kPanelCurvesMax curves each, of whole dimensions rather than of parts,
  /// and of the first rather than of later ones. Errors (kUsage): kPanelsMax are not enough.
  static Result<PlotPanels> Choose(const std::vector<size_t>& sizes);

  /// Of the curve with these places, by dimension.
  size_t PanelOf(const std::vector<size_t>& places) const;
  size_t panels() const;

  /// Of a dimension: into how many parts it is cut, and how many places each has (the last may have
  /// fewer).
  size_t parts(size_t dimension) const { return parts_[dimension]; }
  size_t part_size(size_t dimension) const {
    return (sizes_[dimension] + parts_[dimension] - 1) / parts_[dimension];
  }
  /// Which part of a dimension a panel has.
  size_t PartOf(size_t panel, size_t dimension) const;

 private:
  std::vector<size_t> sizes_;
  std::vector<size_t> parts_;
};

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_REPORT_PLOT_PANELS_H_
