// SPDX-License-Identifier: Apache-2.0
#include "tools/flags/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "ir/near_name.h"
#include "ir/utf8.h"

namespace prepost::tools {
namespace {

struct Unit {
  std::string_view name;
  uint64_t bytes;
};
constexpr Unit kUnits[] = {
    {"", 1},
    {"B", 1},
    {"KiB", 1ull << 10},
    {"MiB", 1ull << 20},
    {"GiB", 1ull << 30},
    {"TiB", 1ull << 40},
    {"PiB", 1ull << 50},
    {"EiB", 1ull << 60},
    {"kB", 1'000},
    {"KB", 1'000},
    {"MB", 1'000'000},
    {"GB", 1'000'000'000},
    {"TB", 1'000'000'000'000},
    {"PB", 1'000'000'000'000'000},
    {"EB", 1'000'000'000'000'000'000},
};

}  // namespace

Status CheckWord(const char* flag, const std::string& word, const std::vector<std::string>& words) {
  if (std::ranges::find(words, word) != words.end()) return {};
  return {StatusCode::kUsage,
          fmt::format("{}: unknown name '{}'{}; known are {}", flag, Printable(word),
                      DidYouMean(word, words), fmt::join(words, ", "))};
}

Result<uint64_t> ParseSize(const std::string& text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view suffix(end, static_cast<size_t>(text.data() + text.size() - end));
  if (error == std::errc()) {
    for (const Unit& unit : kUnits) {
      uint64_t bytes = 0;
      if (suffix == unit.name && !__builtin_mul_overflow(number, unit.bytes, &bytes)) return bytes;
    }
  }
  return Status(StatusCode::kUsage,
                fmt::format("'{}' is no size, expected a whole number of bytes such as 65536, "
                            "64KiB or 1GB (units: kB, MB, GB, TB, PB, EB, KiB, MiB, GiB, TiB, PiB, "
                            "EiB)",
                            text.substr(0, 40)));
}

}  // namespace prepost::tools
