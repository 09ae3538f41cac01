// SPDX-License-Identifier: Apache-2.0
#include "viz/svg/palette.h"

#include <fmt/format.h>

#include <cmath>
#include <span>

#include "ir/base/status.h"

namespace prepost::viz {
namespace {

// Ten even steps of viridis (Smith and van der Walt, 2015; CC0), perceptually uniform.
constexpr Color kBlockScale[] = {{0x44, 0x01, 0x54}, {0x48, 0x28, 0x78}, {0x3e, 0x49, 0x89},
                                 {0x31, 0x68, 0x8e}, {0x26, 0x82, 0x8e}, {0x1f, 0x9e, 0x89},
                                 {0x35, 0xb7, 0x79}, {0x6e, 0xce, 0x58}, {0xb5, 0xde, 0x2b},
                                 {0xfd, 0xe7, 0x25}};
constexpr Color kShareScale[] = {{0xf4, 0xf7, 0xfb},
                                 {0xc6, 0xda, 0xee},
                                 {0x82, 0xb1, 0xd8},
                                 {0x3a, 0x7c, 0xb8},
                                 {0x0b, 0x3a, 0x75}};

uint8_t Between(uint8_t low, uint8_t high, uint64_t part, uint64_t whole) {
  return static_cast<uint8_t>((low * (whole - part) + high * part + whole / 2) / whole);
}

/// The colour `part` / `whole` of the way along `scale`; integers, so that it is the same on every
/// machine.
Color Along(std::span<const Color> scale, uint64_t part, uint64_t whole) {
  const uint64_t position = part * (scale.size() - 1);
  const uint64_t step = position / whole;
  if (step + 1 >= scale.size()) return scale.back();
  const Color& low = scale[step];
  const Color& high = scale[step + 1];
  const uint64_t rest = position % whole;
  return {Between(low.red, high.red, rest, whole), Between(low.green, high.green, rest, whole),
          Between(low.blue, high.blue, rest, whole)};
}

double Linear(uint8_t channel) {
  const double value = channel / 255.0;
  return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
}

}  // namespace

std::string Hex(Color color) {
  return fmt::format("#{:02x}{:02x}{:02x}", color.red, color.green, color.blue);
}

Color BlockColor(uint32_t block, uint32_t blocks) {
  PREPOST_CHECK(block < blocks);
  return blocks == 1 ? Along(kBlockScale, 1, 2) : Along(kBlockScale, block, blocks - 1);
}

Color ShareColor(uint32_t percent) {
  PREPOST_CHECK(percent <= 100);
  return Along(kShareScale, percent, 100);
}

bool NeedsWhiteText(Color background) {
  const double luminance = 0.2126 * Linear(background.red) + 0.7152 * Linear(background.green) +
                           0.0722 * Linear(background.blue);
  return 1.05 / (luminance + 0.05) >= 4.5;
}

}  // namespace prepost::viz
