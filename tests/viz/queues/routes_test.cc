// SPDX-License-Identifier: Apache-2.0
#include "viz/queues/routes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "tests/support/random.h"

namespace prepost::viz::routes_test {
namespace {

using test::Random;

constexpr int kWidth = 150;
constexpr int kHeight = 32;
constexpr int kPitch = 2 * kRouteGrid;
constexpr int kTop = 200;

bool operator==(const Point& a, const Point& b) { return a.x == b.x && a.y == b.y; }

/// What a line covers.
Extent Across(const Line& line) {
  return {std::min(line.from.x, line.to.x), std::max(line.from.x, line.to.x)};
}
Extent Along(const Line& line) {
  return {std::min(line.from.y, line.to.y), std::max(line.from.y, line.to.y)};
}

bool Meet(const Extent& a, const Extent& b) { return a.left <= b.right && b.left <= a.right; }
bool Touch(const Line& a, const Line& b) {
  return Meet(Across(a), Across(b)) && Meet(Along(a), Along(b));
}
bool IsLevel(const Line& line) { return line.from.y == line.to.y; }

std::vector<Extent> ColumnsOf(const Routes& routes, size_t count) {
  std::vector<Extent> columns;
  int x = 16;
  for (size_t i = 0; i < count; ++i) {
    x += routes.GutterWidth(i);
    columns.push_back({x, x + kWidth});
    x += kWidth;
  }
  return columns;
}

/// Each of the `columns` x `rows` boxes is a source, or a target of one route at most.
std::vector<Route> RandomRoutes(Random& random, size_t columns, uint32_t rows) {
  std::vector<Route> routes;
  std::vector<RouteEnd> targets;
  for (size_t column = 0; column < columns; ++column) {
    for (uint32_t row = 0; row < rows; ++row) {
      const RouteEnd box{column, static_cast<int>(row) * kPitch};
      if (random.Below(3) == 0) {
        routes.push_back({.from = box, .to = {}});
      } else {
        targets.push_back(box);
      }
    }
  }
  for (const RouteEnd& box : targets) {
    if (routes.empty() || random.Below(4) == 0) continue;
    routes[random.Below(static_cast<uint32_t>(routes.size()))].to.push_back(box);
  }
  std::erase_if(routes, [](const Route& route) { return route.to.empty(); });
  return routes;
}

/// Catches stubs and heads without lines: all lines hang together, from the source's edge to every
/// head, and every target has one.
void CheckConnected(const Route& route, const RoutePicture& picture,
                    const std::vector<Extent>& columns) {
  std::vector<Line> reached;
  std::vector<Line> open = picture.lines;
  const Extent& box = columns[route.from.column];
  const auto leaves = [&](const Line& line) {
    return (line.from.x == box.left || line.from.x == box.right) &&
           line.from.y > kTop + route.from.y && line.from.y < kTop + route.from.y + kHeight;
  };
  const auto source = std::ranges::find_if(open, leaves);
  ASSERT_NE(source, open.end());
  reached.push_back(*source);
  open.erase(source);
  for (size_t i = 0; i < reached.size(); ++i) {
    const auto found = std::ranges::stable_partition(
        open, [&](const Line& line) { return !Touch(line, reached[i]); });
    const std::vector<Line> touched(found.begin(), found.end());
    open.erase(found.begin(), found.end());
    reached.insert(reached.end(), touched.begin(), touched.end());
  }
  EXPECT_TRUE(open.empty());
  ASSERT_EQ(picture.heads.size(), route.to.size());
  for (size_t i = 0; i < route.to.size(); ++i) {
    const Point tip = picture.heads[i];
    EXPECT_EQ(tip.x, columns[route.to[i].column].left);
    EXPECT_GT(tip.y, kTop + route.to[i].y);
    EXPECT_LT(tip.y, kTop + route.to[i].y + kHeight);
    EXPECT_TRUE(std::ranges::any_of(reached, [&](const Line& line) {
      return line.to == Point{tip.x - kArrowHead, tip.y};
    }));
  }
}

/// Catches lines that run over boxes and what stands in their columns.
void CheckClear(const Line& line, const std::vector<Extent>& columns, int height) {
  EXPECT_GE(Along(line).left, kTop - height);
  EXPECT_GE(Across(line).left, 0);
  if (Along(line).right < kTop) return;  // above all columns
  for (const Extent& column : columns) {
    EXPECT_FALSE(Meet(Across(line), {column.left + 1, column.right - 1}));
  }
}

/// Catches lines of two routes on one another, which cannot be told apart.
void CheckApart(const Line& a, const Line& b) {
  if (IsLevel(a) != IsLevel(b)) return;
  constexpr int kApart = 4;
  const int distance = IsLevel(a) ? std::abs(a.from.y - b.from.y) : std::abs(a.from.x - b.from.x);
  if (distance >= kApart) return;
  EXPECT_FALSE(IsLevel(a) ? Meet(Across(a), Across(b)) : Meet(Along(a), Along(b)))
      << a.from.x << "," << a.from.y << " to " << a.to.x << "," << a.to.y << " and " << b.from.x
      << "," << b.from.y << " to " << b.to.x << "," << b.to.y;
}

TEST(RoutesTest, EveryRouteCanBeFollowed) {
  for (uint64_t seed = test::TestSeed(), end = seed + 300; seed < end; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const size_t count = random.Between(1, 6);
    const Routes routes(RandomRoutes(random, count, random.Between(1, 12)), count);
    const std::vector<Extent> columns = ColumnsOf(routes, count);
    std::vector<RoutePicture> pictures;
    for (size_t i = 0; i < routes.routes().size(); ++i) {
      pictures.push_back(routes.Place(i, columns, kTop));
      CheckConnected(routes.routes()[i], pictures[i], columns);
      for (const Line& line : pictures[i].lines) {
        CheckClear(line, columns, routes.height());
        for (size_t other = 0; other < i; ++other) {
          for (const Line& theirs : pictures[other].lines) CheckApart(line, theirs);
        }
      }
    }
    if (HasFailure()) return;
  }
}

// The widest places count: three routes side by side through one gutter, none above.
TEST(RoutesTest, LinesAreCountedWhereMostAre) {
  std::vector<Route> routes;
  for (int i = 0; i < 3; ++i) {
    routes.push_back({.from = {0, i * kPitch}, .to = {{1, (i + 5) * kPitch}}});
  }
  const Routes three(routes, 2);
  EXPECT_EQ(three.most(), 3);
  EXPECT_EQ(three.height(), 0);
  EXPECT_EQ(three.GutterWidth(0), 0);
  const Routes none({}, 2);
  EXPECT_EQ(none.most(), 0);
  EXPECT_GT(none.GutterWidth(1), 0);
}

}  // namespace
}  // namespace prepost::viz::routes_test
