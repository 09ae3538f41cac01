// SPDX-License-Identifier: Apache-2.0
//
// Plot: curves over two axes, for what is measured or modelled at many sizes, in one panel or in
// several beside and below each other. Each curve's name stands at its end, so nothing is said by
// colour alone; the same values give the same bytes.
#ifndef PREPOST_VIZ_PLOT_H_
#define PREPOST_VIZ_PLOT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/status.h"

namespace prepost::viz {

struct PlotPoint {
  double x = 0;
  double y = 0;
};

/// Points in the order in which they are joined; one alone is a dot.
struct Curve {
  std::string name;
  std::vector<PlotPoint> points;
  /// Those with one number have one colour, and one is dashed; none: a colour of its own.
  std::optional<uint32_t> color = {};
  bool is_dashed = false;
  uint32_t panel = 0;  ///< of Plot::panels
};

struct PlotAxis {
  std::string name;
  std::string unit;  ///< "s", "B"; with one, numbers get the prefixes of SI
  bool logarithmic = false;
};

struct Plot {
  std::string headline;
  std::string subline;
  std::string note;
  PlotAxis x;
  PlotAxis y;
  std::vector<Curve> curves;
  /// Titles of panels, which have the same axes; empty: one without a title.
  std::vector<std::string> panels = {};
};

/// The picture as SVG. Errors (kRejected): no point, a value that is not finite, or on a
/// logarithmic axis not above 0.
Result<std::string> DrawPlot(const Plot& plot);

/// The exponent a of the y = c x^a that fits the points best: least squares of the logarithms. 0
/// where all x are the same. Values must be above 0.
double GrowthExponent(const Curve& curve);

}  // namespace prepost::viz

#endif  // PREPOST_VIZ_PLOT_H_
