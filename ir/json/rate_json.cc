// SPDX-License-Identifier: Apache-2.0
#include "ir/json/rate_json.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "ir/json/rate_text.h"

namespace prepost {
namespace {

/// None if it is no number, or one that no double holds.
std::optional<double> NumberOf(const JsonScalar& scalar) {
  if (scalar.kind == JsonScalar::Kind::kUnsigned) return static_cast<double>(scalar.number);
  if (scalar.kind != JsonScalar::Kind::kOtherNumber) return std::nullopt;
  double value = 0;
  const char* const end = scalar.text.data() + scalar.text.size();
  const auto [rest, error] = std::from_chars(scalar.text.data(), end, value);
  if (error != std::errc() || rest != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// A number as written, or text with a unit by `parse`.
JsonForm::ReadScalar ReadQuantity(Result<double> (*parse)(std::string_view), const char* number_is,
                                  std::function<Status(double)> take) {
  return [=, take = std::move(take)](const JsonScalar& scalar) -> Status {
    if (scalar.kind == JsonScalar::Kind::kString) {
      const Result<double> value = parse(scalar.text);
      return value.ok() ? take(*value) : value.status();
    }
    if (const std::optional<double> value = NumberOf(scalar)) return take(*value);
    return Rejected(
        fmt::format("expected {} or text with a unit, found {}", number_is, scalar.Describe()));
  };
}

}  // namespace

JsonForm::ReadScalar ReadRate(std::function<Status(double)> take) {
  return ReadQuantity(ParseRate, "a number of bytes/s",
                      [take = std::move(take)](double rate) -> Status {
                        if (rate > 0) return take(rate);
                        return Rejected(fmt::format("a rate is more than 0, found {}", rate));
                      });
}

JsonForm::ReadScalar ReadLatency(std::function<Status(double)> take) {
  return ReadQuantity(ParseLatency, "a number of seconds",
                      [take = std::move(take)](double latency) -> Status {
                        if (latency >= 0) return take(latency);
                        return Rejected(fmt::format("a latency is 0 or more, found {}", latency));
                      });
}

JsonForm::ReadScalar ReadNumber(std::function<Status(double)> take) {
  return [take = std::move(take)](const JsonScalar& scalar) -> Status {
    if (const std::optional<double> value = NumberOf(scalar)) return take(*value);
    return Rejected(fmt::format("expected a number, found {}", scalar.Describe()));
  };
}

}  // namespace prepost
