// SPDX-License-Identifier: Apache-2.0
#include "tools/report/plot_panels.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace prepost::tools {
namespace {

using Parts = std::vector<size_t>;

size_t Product(const Parts& parts) {
  size_t product = 1;
  for (const size_t it : parts) product *= it;
  return product;
}

/// All ways to cut dimensions of these sizes into kPanelsMax panels at most, none of them empty.
/// Later ones cut more of the first dimensions.
std::vector<Parts> AllParts(const std::vector<size_t>& sizes) {
  std::vector<Parts> all = {{}};
  for (const size_t size : sizes) {
    std::vector<Parts> longer;
    for (const Parts& begun : all) {
      for (size_t parts = 1; parts <= size && parts * Product(begun) <= kPanelsMax; ++parts) {
        const size_t part = (size + parts - 1) / parts;
        if ((size + part - 1) / part != parts) continue;
        longer.push_back(begun);
        longer.back().push_back(parts);
      }
    }
    all = std::move(longer);
  }
  return all;
}

}  // namespace

Result<PlotPanels> PlotPanels::Choose(const std::vector<size_t>& sizes) {
  constexpr size_t kPartialCost = 4;  ///< panels that are put up with in place of one cut
  double curves = 1;                  // of many axes, more than can be counted in integers
  for (const size_t size : sizes) curves *= static_cast<double>(size);
  PlotPanels best(sizes);
  std::optional<size_t> least;
  if (curves <= static_cast<double>(kPanelCurvesMax * kPanelsMax)) {
    for (Parts& parts : AllParts(sizes)) {
      PlotPanels panels(sizes);
      panels.parts_ = std::move(parts);
      size_t in_each = 1, cost = panels.panels();
      for (size_t i = 0; i < sizes.size(); ++i) {
        in_each *= panels.part_size(i);
        if (panels.parts_[i] > 1 && panels.parts_[i] < sizes[i]) cost += kPartialCost;
      }
      if (in_each > kPanelCurvesMax || (least && cost > *least)) continue;
      least = cost;
      best = std::move(panels);
    }
  }
  if (least) return best;
  return Status(StatusCode::kUsage,
                fmt::format("--plot: {:.0f} curves do not fit in {} panels of {}: sweep fewer "
                            "values, or one executor",
                            curves, kPanelsMax, kPanelCurvesMax));
}

size_t PlotPanels::PanelOf(const std::vector<size_t>& places) const {
  PREPOST_CHECK(places.size() == sizes_.size());
  size_t panel = 0;
  for (size_t i = 0; i < sizes_.size(); ++i) panel = panel * parts_[i] + places[i] / part_size(i);
  return panel;
}

size_t PlotPanels::panels() const { return Product(parts_); }

size_t PlotPanels::PartOf(size_t panel, size_t dimension) const {
  for (size_t i = sizes_.size() - 1; i > dimension; --i) panel /= parts_[i];
  return panel % parts_[dimension];
}

}  // namespace prepost::tools
