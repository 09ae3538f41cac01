// SPDX-License-Identifier: Apache-2.0
//
// Quantities as people read them, rounded.
#ifndef PREPOST_TOOLS_REPORT_QUANTITIES_H_
#define PREPOST_TOOLS_REPORT_QUANTITIES_H_

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace prepost::tools {

/// "999 B", "1.50 kB", "16.8 MB": three digits, units of 1000 bytes as in rates.
inline std::string FormatBytes(uint64_t bytes) {
  constexpr std::array kUnits = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, kUnits[unit]);
}

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_REPORT_QUANTITIES_H_
