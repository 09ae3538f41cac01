// SPDX-License-Identifier: Apache-2.0
#include "tools/number_check.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <string>
#include <system_error>

namespace prepost::tools {
namespace {

constexpr size_t kShownMax = 40;  ///< bytes of a wrong value

/// `Value` is what the text is read as; nan is in no range.
template <typename Value>
CLI::Validator InRange(Value least, Value most, const char* kind) {
  const auto check = [=](const std::string& text) -> std::string {
    Value value = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && rest == end && value >= least && value <= most) return {};
    return fmt::format("expected {} from {} to {}, found '{}'", kind, least, most,
                       text.substr(0, kShownMax));
  };
  return CLI::Validator(check, /*validator_desc=*/"");
}

}  // namespace

CLI::Validator WholeNumber(uint64_t least, uint64_t most) {
  return InRange<uint64_t>(least, most, "a whole number");
}

CLI::Validator NameOf(const std::string& kind) {
  const auto check = [=](const std::string& text) -> std::string {
    return text.empty() ? fmt::format("expected the name of {}, found ''", kind) : "";
  };
  return CLI::Validator(check, /*validator_desc=*/"");
}

CLI::Validator Number(double least, double most) { return InRange(least, most, "a number"); }

CLI::Validator Seconds() { return Number(0.001, 1e6); }

}  // namespace prepost::tools
