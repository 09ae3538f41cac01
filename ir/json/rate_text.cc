// SPDX-License-Identifier: Apache-2.0
#include "ir/json/rate_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <iterator>
#include <span>

#include "ir/base/utf8.h"

namespace prepost {
namespace {

/// A value is number * times / per: exact where the number is.
struct Unit {
  std::string_view name;
  double times = 1;
  double per = 1;
};

constexpr Unit kRates[] = {
    {"bit/s", 1, 8},    {"kbit/s", 1e3, 8},  {"Mbit/s", 1e6, 8},
    {"Gbit/s", 1e9, 8}, {"Tbit/s", 1e12, 8}, {"B/s"},
    {"kB/s", 1e3},      {"MB/s", 1e6},       {"GB/s", 1e9},
    {"TB/s", 1e12},     {"KiB/s", 0x1p10},   {"MiB/s", 0x1p20},
    {"GiB/s", 0x1p30},  {"TiB/s", 0x1p40},
};
constexpr size_t kBitRates = 5;  // of kRates, from small to large
constexpr Unit kLatencies[] = {{"ns", 1, 1e9}, {"us", 1, 1e6}, {"ms", 1, 1e3}, {"s"}};

/// A finite value >= 0 in one of `units`; negative if `text` is none.
double Parse(std::string_view text, std::span<const Unit> units) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return -1;
  std::string_view name(rest, static_cast<size_t>(end - rest));
  if (name.starts_with(' ')) name.remove_prefix(1);
  for (const Unit& unit : units) {
    const double value = number * unit.times / unit.per;
    if (unit.name == name && std::isfinite(value)) return value;
  }
  return -1;
}

/// In the largest of `units`, rising, that leaves 1 or more.
std::string Write(double value, std::span<const Unit> units) {
  size_t chosen = units.size() - 1;
  while (chosen > 0 && value * units[chosen].per / units[chosen].times < 1) --chosen;
  return fmt::format("{:.6g}{}", value * units[chosen].per / units[chosen].times,
                     units[chosen].name);
}

}  // namespace

Result<double> ParseRate(std::string_view text) {
  const double rate = Parse(text, kRates);
  if (rate > 0) return rate;
  return Rejected(
      fmt::format("'{}' is no rate, expected more than 0 and a unit, such as 100Gbit/s or "
                  "12.5GB/s",
                  Printable(text.substr(0, 40))));
}

Result<double> ParseLatency(std::string_view text) {
  const double latency = Parse(text, kLatencies);
  if (latency >= 0) return latency;
  return Rejected(fmt::format("'{}' is no time, expected 0 or more and a unit: ns, us, ms or s",
                              Printable(text.substr(0, 40))));
}

std::string WriteRate(double bytes_per_second) {
  return Write(bytes_per_second, std::span(kRates).first(kBitRates));
}

std::string WriteLatency(double seconds) { return Write(seconds, kLatencies); }

std::string ShortDuration(int64_t ns) {
  const double magnitude = std::abs(static_cast<double>(ns));
  if (ns == 0) return "0";
  size_t unit = 0;
  // From 0.9995 of a unit on three digits of the one before would round to 1000.
  while (unit + 1 < std::size(kLatencies) &&
         magnitude * kLatencies[unit + 1].per >= (unit == 0 ? 1 : 0.9995) * 1e9)
    ++unit;
  const double value = static_cast<double>(ns) * kLatencies[unit].per / 1e9;
  const double shown = std::abs(value);
  const int decimals = unit == 0 || shown >= 100 ? 0 : shown < 10 ? 2 : 1;
  return fmt::format("{:.{}f} {}", value, decimals, kLatencies[unit].name);
}

}  // namespace prepost
