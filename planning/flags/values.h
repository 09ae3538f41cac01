// SPDX-License-Identifier: Apache-2.0
//
// How the values of flags are read and checked. CLI11 converts what a flag is given, but wraps -1
// to the largest number, takes "nan" for one in any range, and an empty text for the default; the
// checks here come before its conversion. Headers of those who add flags have the names of CLI11
// from here: a .cc that adds some includes <CLI/CLI.hpp>, which takes long to compile.
#ifndef PREPOST_PLANNING_FLAGS_VALUES_H_
#define PREPOST_PLANNING_FLAGS_VALUES_H_

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include "ir/base/status.h"

namespace CLI {

class App;
class Validator;

}  // namespace CLI

namespace prepost {

inline constexpr size_t kWordBytesShownMax = 40;  ///< of a wrong value

/// Ok if `word`, the value of `flag`, is one of `words`; else kUsage, with the near one.
Status CheckWord(const char* flag, const std::string& word, const std::vector<std::string>& words);

/// "65536", "64KiB", "1MiB", "1GB", ...: bytes. Errors: kUsage.
Result<uint64_t> ParseSize(const std::string& text);

template <size_t kCount>
std::vector<std::string> Words(const std::array<std::string_view, kCount>& names) {
  return {names.begin(), names.end()};
}

/// The value of an enum whose names stand in `names` in order; `name` is one of them, or "".
template <typename Enum, size_t kCount>
Enum ValueOf(const std::array<std::string_view, kCount>& names, const std::string& name,
             Enum otherwise) {
  if (name.empty()) return otherwise;
  const auto found = std::ranges::find(names, name);
  PREPOST_CHECK(found != names.end());
  return static_cast<Enum>(found - names.begin());
}

/// For ->check(): decimal digits, a number from `least` to `most`.
CLI::Validator WholeNumber(uint64_t least, uint64_t most);

/// For ->check(): the number of a node, or of a block, that some plan can have. Whether the plan at
/// hand has it is not asked.
CLI::Validator NodeNumber();
CLI::Validator BlockNumber();

/// For ->check(): a decimal number, finite, from `least` to `most`.
CLI::Validator Number(double least, double most);

/// Validates every flag that is a time in seconds.
CLI::Validator Seconds();

/// For ->check(): any text but "". `kind`: what it names, "a device".
CLI::Validator NameOf(const std::string& kind);

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

/// "node=3,at=2ms" by key. `keys`: those there are. Errors (kUsage, without a place): a part that
/// is not KEY=VALUE with one of them, a key twice.
Result<std::map<std::string, std::string>> ParseParts(const std::string& text,
                                                      const std::vector<std::string>& keys);

/// What is wrong with the value of a flag that has parts: "--slow: '3=2': why; the form is 3=0.5",
/// with the code of `why`.
Status BadParts(const char* flag, const std::string& text, const Status& why, const char* form);

}  // namespace prepost

#endif  // PREPOST_PLANNING_FLAGS_VALUES_H_
