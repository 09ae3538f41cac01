// SPDX-License-Identifier: Apache-2.0
#include "tools/flags/number_check.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "ir/plan.h"
#include "tools/report/value_text.h"

namespace prepost::tools {
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

}  // namespace prepost::tools
