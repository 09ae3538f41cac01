// SPDX-License-Identifier: Apache-2.0
#include "planning/flags/values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "ir/base/near_name.h"
#include "ir/base/utf8.h"
#include "ir/plan.h"

namespace prepost {
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

namespace {

constexpr size_t kNumberBytesShownMax = 40;  ///< bytes of a wrong value

/// `Value` is what the text is read as.
template <typename Value>
CLI::Validator InRange(Value least, Value most, const char* kind) {
  const auto check = [=](const std::string& text) -> std::string {
    const std::optional<Value> value = NumberOf<Value>(text);
    if (value && *value >= least && *value <= most) return {};
    return fmt::format("expected {} from {} to {}, found '{}'", kind, least, most,
                       text.substr(0, kNumberBytesShownMax));
  };
  return CLI::Validator(check, /*validator_desc=*/"");
}

}  // namespace

CLI::Validator WholeNumber(uint64_t least, uint64_t most) {
  return InRange<uint64_t>(least, most, "a whole number");
}

CLI::Validator NodeNumber() { return WholeNumber(0, kNodesMax - 1); }

CLI::Validator BlockNumber() { return WholeNumber(0, kBlocksMax - 1); }

CLI::Validator NameOf(const std::string& kind) {
  const auto check = [=](const std::string& text) -> std::string {
    return text.empty() ? fmt::format("expected the name of {}, found ''", kind) : "";
  };
  return CLI::Validator(check, /*validator_desc=*/"");
}

CLI::Validator Number(double least, double most) { return InRange(least, most, "a number"); }

CLI::Validator Seconds() { return Number(0.001, 1e6); }

std::vector<std::string> Split(std::string_view text, char between) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(between, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Result<std::map<std::string, std::string>> ParseParts(const std::string& text,
                                                      const std::vector<std::string>& keys) {
  std::map<std::string, std::string> values;
  const auto bad = [](const std::string& why) { return Status(StatusCode::kUsage, why); };
  for (const std::string& part : Split(text, ',')) {
    const size_t equals = part.find('=');
    const std::string key = part.substr(0, equals);
    if (equals == std::string::npos || std::ranges::find(keys, key) == keys.end())
      return bad(fmt::format("'{}' is unknown", part));
    if (!values.emplace(key, part.substr(equals + 1)).second)
      return bad(fmt::format("'{}' is there twice", key));
  }
  return values;
}

Status BadParts(const char* flag, const std::string& text, const Status& why, const char* form) {
  return {why.code(), fmt::format("{}: '{}': {}; the form is {}", flag, text, why.message(), form)};
}

}  // namespace prepost
