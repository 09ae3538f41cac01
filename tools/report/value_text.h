// SPDX-License-Identifier: Apache-2.0
//
// How the texts of flags are taken apart: numbers, lists, and parts such as node=3,at=2ms. One way for
// all flags that are more than CLI11 reads.
#ifndef PREPOST_TOOLS_REPORT_VALUE_TEXT_H_
#define PREPOST_TOOLS_REPORT_VALUE_TEXT_H_

#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include "ir/status.h"

namespace prepost::tools {

/// All of `text` as a decimal number; none if it is no such, does not fit, or is not finite.
template <typename Number>
std::optional<Number> NumberOf(std::string_view text) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || rest != end) return std::nullopt;
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(number)) return std::nullopt;
  }
  return number;
}

/// A key of a flag or a profile whose values are sizes: "block-bytes", "tcp.segment_bytes".
inline bool IsOfBytes(std::string_view key) { return key.ends_with("bytes"); }

/// What stands between two of `between`, empty parts among it; at least one.
std::vector<std::string> Split(std::string_view text, char between);

/// "node=3,at=2ms" by key. `keys`: those there are. Errors (kUsage, without a place): a part that is
/// not KEY=VALUE with one of them, a key twice.
Result<std::map<std::string, std::string>> ParseParts(const std::string& text,
                                                      const std::vector<std::string>& keys);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_REPORT_VALUE_TEXT_H_
