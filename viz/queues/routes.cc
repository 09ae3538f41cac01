// SPDX-License-Identifier: Apache-2.0
//
// Between columns are gutters, gutter i left of column i. A route leaves its box to the right or,
// when none of its targets is further right, to the left, goes up or down there in a track of its
// own, and enters targets at that gutter's right side. For targets in other columns it goes up to a
// level of its own above all columns, along it, and down in a track of each target's gutter:
//
//        +-----------------------+           a level
//   [A]--|--+     [C]   +->[E]   |
//   [B]--+  +---->[D]   |        +-->[F]     tracks
//                    [G]+
//
// Lines of two routes only cross: tracks and levels are given to the first that they are free for,
// and along the columns entries, exits to the left and exits to the right are at heights that
// differ modulo kRouteGrid. The order in which tracks are given avoids crossings where it can: of
// those that go down, the one that begins first is the rightmost; of those that go up, the one that
// begins last.
#include "viz/queues/routes.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace prepost::viz {
namespace {

constexpr int kEntry = 8;  ///< below a box's top; these three differ by 6 and more, modulo the grid
constexpr int kLeftExit = 14;
constexpr int kRightExit = 21;
constexpr int kAbove = -1;  ///< the height of all levels, for tracks
constexpr int kTrack = 6;   ///< from one track or level to the next
constexpr int kHeadRoom = 14;
constexpr int kExitRoom = 8;
constexpr int kGutterMin = 24;

/// Lines that are taken, by track.
class Tracks {
 public:
  /// The first track that is free from `begin` to `end`.
  int Take(int begin, int end) {
    constexpr int kApart = 4;
    const auto overlaps = [&](const std::pair<int, int>& other) {
      return begin < other.second + kApart && other.first < end + kApart;
    };
    size_t track = 0;
    while (track < taken_.size() && std::ranges::any_of(taken_[track], overlaps)) ++track;
    if (track == taken_.size()) taken_.emplace_back();
    taken_[track].emplace_back(begin, end);
    return static_cast<int>(track);
  }
  int count() const { return static_cast<int>(taken_.size()); }

 private:
  std::vector<std::vector<std::pair<int, int>>> taken_;
};

}  // namespace

Routes::Routes(std::vector<Route> routes, size_t columns)
    : routes_(std::move(routes)), tracks_(columns, 0) {
  for (size_t i = 0; i < routes_.size(); ++i) ways_.push_back(WayOf(i));
  for (size_t gutter = 0; gutter < columns; ++gutter) ChooseTracks(gutter);
  ChooseLevels();
}

int Routes::SourceY(size_t route) const {
  return routes_[route].from.y + (ways_[route].leaves_left ? kLeftExit : kRightExit);
}

Routes::Way Routes::WayOf(size_t index) const {
  const Route& route = routes_[index];
  Way way;
  way.leaves_left = std::ranges::all_of(
      route.to, [&](const RouteEnd& end) { return end.column <= route.from.column; });
  const size_t first = route.from.column + (way.leaves_left ? 0 : 1);
  std::map<size_t, std::vector<int>> stops;  // by gutter
  stops[first].push_back(route.from.y + (way.leaves_left ? kLeftExit : kRightExit));
  for (const RouteEnd& end : route.to) stops[end.column].push_back(end.y + kEntry);
  for (auto& [gutter, ys] : stops) {
    if (stops.size() > 1) ys.push_back(kAbove);
    const auto [top, bottom] = std::ranges::minmax(ys);
    way.uprights.push_back({.route = index,
                            .gutter = gutter,
                            .source = gutter == first,
                            .top = top,
                            .bottom = bottom});
  }
  return way;
}

void Routes::ChooseTracks(size_t gutter) {
  std::vector<Upright*> uprights;
  for (Way& way : ways_) {
    for (Upright& upright : way.uprights) {
      if (upright.gutter == gutter) uprights.push_back(&upright);
    }
  }
  const auto order = [&](const Upright* upright) {
    if (!upright->source) return std::tuple(1, kAbove, upright->bottom);
    const int y = SourceY(upright->route);
    const bool loop = ways_[upright->route].leaves_left && upright->top != kAbove;
    if (loop) return std::tuple(0, upright->bottom - upright->top, y);
    return upright->bottom > y ? std::tuple(1, y, upright->bottom) : std::tuple(2, -y, 0);
  };
  std::ranges::stable_sort(uprights, {}, order);
  Tracks tracks;
  for (Upright* upright : uprights) upright->track = tracks.Take(upright->top, upright->bottom);
  tracks_[gutter] = tracks.count();
}

/// Short ways lie lowest.
void Routes::ChooseLevels() {
  const auto length = [](const Way* way) {
    return way->uprights.back().gutter - way->uprights.front().gutter;
  };
  std::vector<Way*> ways;
  for (Way& way : ways_) {
    if (way.uprights.size() > 1) ways.push_back(&way);
  }
  std::ranges::stable_sort(ways, {}, length);
  Tracks levels;
  for (Way* way : ways) {
    constexpr int kGutter = 10;  // any distance that keeps lines of different gutters apart
    way->level = levels.Take(static_cast<int>(way->uprights.front().gutter) * kGutter,
                             static_cast<int>(way->uprights.back().gutter) * kGutter);
  }
  levels_ = levels.count();
}

int Routes::most() const {
  int most = levels_;
  for (const int tracks : tracks_) most = std::max(most, tracks);
  return most;
}

int Routes::GutterWidth(size_t column) const {
  const int tracks = tracks_[column];
  if (tracks == 0) return column == 0 ? 0 : kGutterMin;
  return std::max(kGutterMin, kExitRoom + tracks * kTrack + kHeadRoom);
}

int Routes::height() const { return levels_ == 0 ? 0 : (levels_ + 1) * kTrack; }

RoutePicture Routes::Place(size_t index, std::span<const Extent> columns, int top) const {
  const Route& route = routes_[index];
  const Way& way = ways_[index];
  const int level = top - (way.level + 1) * kTrack;
  RoutePicture picture;
  std::map<size_t, int> x_of;  // by gutter
  for (const Upright& upright : way.uprights) {
    const int x = columns[upright.gutter].left - kHeadRoom - upright.track * kTrack;
    x_of[upright.gutter] = x;
    picture.lines.push_back(
        {{x, upright.top == kAbove ? level : top + upright.top}, {x, top + upright.bottom}});
    if (!upright.source) continue;
    const Extent& box = columns[route.from.column];
    const int y = top + SourceY(index);
    picture.lines.push_back({{way.leaves_left ? box.left : box.right, y}, {x, y}});
  }
  if (way.level >= 0) {
    picture.lines.push_back({{x_of.begin()->second, level}, {x_of.rbegin()->second, level}});
  }
  for (const RouteEnd& end : route.to) {
    const Point tip{columns[end.column].left, top + end.y + kEntry};
    picture.lines.push_back({{x_of[end.column], tip.y}, {tip.x - kArrowHead, tip.y}});
    picture.heads.push_back(tip);
  }
  return picture;
}

}  // namespace prepost::viz
