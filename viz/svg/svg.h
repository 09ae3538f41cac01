// SPDX-License-Identifier: Apache-2.0
//
// Svg: writes one SVG picture, element after element, in whole pixels. It knows nothing of plans.
// What it writes depends on its arguments only, so the same calls give the same bytes; every text
// is escaped here and nowhere else.
#ifndef PREPOST_VIZ_SVG_SVG_H_
#define PREPOST_VIZ_SVG_SVG_H_

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "viz/svg/palette.h"

namespace prepost::viz {

/// Pixels; x to the right, y down.
struct Box {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
};

struct Point {
  int x = 0;
  int y = 0;
};

/// A straight line.
struct Line {
  Point from;
  Point to;
};

/// Pixels from the tip of an arrow's head to where its line ends.
inline constexpr int kArrowHead = 6;

/// About how wide a sans-serif font draws `text`, in units of `font_size`; on the generous side,
/// since the viewer's font is unknown. It depends on no installed font.
double TextWidth(std::string_view text, double font_size);

class Svg {
 public:
  /// `title` names the picture for readers of screens; `style` is its CSS.
  Svg(int width, int height, std::string_view title, std::string_view style);

  /// Elements until EndGroup() share a tooltip.
  void BeginGroup(std::string_view css_class, std::string_view tooltip);
  void EndGroup();
  void Rect(std::string_view css_class, const Box& box);
  void Rect(std::string_view css_class, const Box& box, Color fill);
  /// `x`, `y`: the anchor that the class chooses, on the base line.
  void Text(std::string_view css_class, int x, int y, std::string_view text);
  /// All as one element.
  void Lines(std::string_view css_class, std::span<const Line> lines);
  /// The head of an arrow that points to the right.
  void Head(std::string_view css_class, Point tip);

  /// All of another picture, whose style is the same, at the bottom.
  void Append(Svg other);

  /// Makes the picture at least this wide.
  void WidenTo(int width) { width_ = std::max(width_, width); }
  /// The picture. Groups must be closed.
  std::string Finish() &&;

 private:
  int width_;
  int height_;
  std::string title_;
  std::string style_;
  std::string out_;  ///< the elements
  int open_groups_ = 0;
};

}  // namespace prepost::viz

#endif  // PREPOST_VIZ_SVG_SVG_H_
