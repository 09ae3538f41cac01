// SPDX-License-Identifier: Apache-2.0
//
// Internal to viz: arrows between boxes that stand in columns: which way each takes, so that none
// runs over a box or along another one. It knows nothing of what the boxes are.
#ifndef PREPOST_VIZ_QUEUES_ROUTES_H_
#define PREPOST_VIZ_QUEUES_ROUTES_H_

#include <cstddef>
#include <span>
#include <vector>

#include "viz/svg/svg.h"

namespace prepost::viz {

/// Tops of boxes must be multiples of this below the top of the columns, and boxes higher than it.
inline constexpr int kRouteGrid = 19;

/// A box that an arrow leaves or enters.
struct RouteEnd {
  size_t column = 0;
  int y = 0;  ///< the box's top, below the top of the columns
};

/// Arrows from one box, which share their lines as far as they can.
struct Route {
  RouteEnd from;
  std::vector<RouteEnd> to;
};

/// Where a column's boxes begin and end.
struct Extent {
  int left = 0;
  int right = 0;
};

/// What a route looks like: level and upright lines, and the tips of its arrows, at the left of the
/// boxes that they enter.
struct RoutePicture {
  std::vector<Line> lines;
  std::vector<Point> heads;
};

class Routes {
 public:
  /// Boxes of each end must differ from all boxes of their column and kind of end. Quadratic in
  /// routes.
  Routes(std::vector<Route> routes, size_t columns);

  const std::vector<Route>& routes() const { return routes_; }
  /// Lines side by side in the fullest place.
  int most() const;
  /// Needed left of `column`.
  int GutterWidth(size_t column) const;
  /// Needed above the columns.
  int height() const;
  /// `top`: of the columns.
  RoutePicture Place(size_t route, std::span<const Extent> columns, int top) const;

 private:
  /// The upright line of a route in a gutter, from `top` to `bottom`.
  struct Upright {
    size_t route = 0;
    size_t gutter = 0;  ///< left of the column of this index
    bool source = false;
    int top = 0;
    int bottom = 0;
    int track = 0;
  };
  /// How a route lies.
  struct Way {
    bool leaves_left = false;
    std::vector<Upright> uprights;  ///< by gutter
    int level = -1;                 ///< its track above the columns; -1: it has none
  };

  Way WayOf(size_t route) const;
  int SourceY(size_t route) const;
  void ChooseTracks(size_t gutter);
  void ChooseLevels();

  std::vector<Route> routes_;
  std::vector<Way> ways_;    ///< by route
  std::vector<int> tracks_;  ///< in use, by gutter
  int levels_ = 0;           ///< in use
};

}  // namespace prepost::viz

#endif  // PREPOST_VIZ_QUEUES_ROUTES_H_
