// SPDX-License-Identifier: Apache-2.0
#include "viz/svg/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "ir/base/status.h"
#include "ir/exchange/xml_text.h"

namespace prepost::viz {
namespace {

/// Width of an ASCII character in thousandths of the font size, after DejaVu Sans, the widest of
/// the usual fonts.
int CharacterWidth(char c) {
  constexpr std::string_view kNarrow = "ijlI.,:;'|!()[] ";
  constexpr std::string_view kWide = "mwMW%@";
  if (kNarrow.find(c) != std::string_view::npos) return 370;
  if (kWide.find(c) != std::string_view::npos) return 930;
  if (c >= 'A' && c <= 'Z') return 700;
  return 625;
}

}  // namespace

double TextWidth(std::string_view text, double font_size) {
  int thousandths = 0;
  for (char c : text) {
    const bool continuation = (static_cast<uint8_t>(c) & 0xC0) == 0x80;
    if (!continuation) thousandths += CharacterWidth(c);
  }
  return thousandths * font_size / 1000;
}

Svg::Svg(int width, int height, std::string_view title, std::string_view style)
    : width_(width), height_(height), title_(title), style_(style) {}

void Svg::BeginGroup(std::string_view css_class, std::string_view tooltip) {
  ++open_groups_;
  fmt::format_to(std::back_inserter(out_), "<g class=\"{}\"><title>{}</title>", css_class,
                 EscapeXml(tooltip));
}

void Svg::EndGroup() {
  PREPOST_CHECK(open_groups_ > 0);
  --open_groups_;
  out_ += "</g>\n";
}

void Svg::Rect(std::string_view css_class, const Box& box) {
  fmt::format_to(std::back_inserter(out_),
                 "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>", css_class,
                 box.x, box.y, box.width, box.height);
}

void Svg::Rect(std::string_view css_class, const Box& box, Color fill) {
  fmt::format_to(std::back_inserter(out_),
                 "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>",
                 css_class, box.x, box.y, box.width, box.height, Hex(fill));
}

void Svg::Text(std::string_view css_class, int x, int y, std::string_view text) {
  fmt::format_to(std::back_inserter(out_), "<text class=\"{}\" x=\"{}\" y=\"{}\">{}</text>",
                 css_class, x, y, EscapeXml(text));
}

void Svg::Lines(std::string_view css_class, std::span<const Line> lines) {
  fmt::format_to(std::back_inserter(out_), "<path class=\"{}\" d=\"", css_class);
  for (const Line& line : lines) {
    fmt::format_to(std::back_inserter(out_), "M{} {}L{} {}", line.from.x, line.from.y, line.to.x,
                   line.to.y);
  }
  out_ += "\"/>";
}

void Svg::Head(std::string_view css_class, Point tip) {
  fmt::format_to(std::back_inserter(out_), "<path class=\"{}\" d=\"M{} {}l-{} -3v6z\"/>", css_class,
                 tip.x, tip.y, kArrowHead);
}

void Svg::Append(Svg other) {
  PREPOST_CHECK(other.open_groups_ == 0 && other.style_ == style_);
  fmt::format_to(std::back_inserter(out_), "<g transform=\"translate(0 {})\">\n{}</g>\n", height_,
                 other.out_);
  height_ += other.height_;
  WidenTo(other.width_);
}

std::string Svg::Finish() && {
  PREPOST_CHECK(open_groups_ == 0);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\">\n<title>{2}</title>\n"
      "<style>{3}</style>\n<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n{4}</svg>\n",
      width_, height_, EscapeXml(title_), EscapeXml(style_), out_);
}

}  // namespace prepost::viz
