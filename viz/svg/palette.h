// SPDX-License-Identifier: Apache-2.0
//
// The colours of the pictures: one per block, one per share of the message held, one for what goes
// between racks. Both scales rise evenly in lightness, so that they survive colour blindness and
// grey printing; nothing is said by colour alone.
#ifndef PREPOST_VIZ_SVG_PALETTE_H_
#define PREPOST_VIZ_SVG_PALETTE_H_

#include <cstdint>
#include <string>

namespace prepost::viz {

struct Color {
  uint8_t red = 0;
  uint8_t green = 0;
  uint8_t blue = 0;

  friend bool operator==(const Color&, const Color&) = default;
};

/// "#rrggbb".
std::string Hex(Color color);

/// The colour of transfers between racks: vermillion (Okabe and Ito, 2008), which no common colour
/// blindness takes for a neutral; at least 3 to 1 against white (WCAG 2.1).
inline constexpr Color kCrossingColor{0xd5, 0x5e, 0x00};

/// The colour of `block` of `blocks`: from violet (first) over green to yellow (last). Needs block
/// < blocks.
Color BlockColor(uint32_t block, uint32_t blocks);

/// The colour of holding `percent` (0 to 100) of a message: from near white to dark blue.
Color ShareColor(uint32_t percent);

/// Whether text on `background` should be white, else black: white wherever its contrast is at
/// least 4.5 to 1 (WCAG 2.1, relative luminance). Where it is less, that of black is above 4.6.
bool NeedsWhiteText(Color background);

}  // namespace prepost::viz

#endif  // PREPOST_VIZ_SVG_PALETTE_H_
