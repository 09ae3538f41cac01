// SPDX-License-Identifier: Apache-2.0
#include "tools/flags/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>

#include "ir/json/rate_text.h"
#include "planning/flags/values.h"

namespace prepost::tools {
namespace {

/// Ends of ranges are met although steps are rounded: so much of a step.
constexpr double kClose = 1e-9;
/// And of a number: what it may be off by, several times rounded.
constexpr double kRounding = 4 * std::numeric_limits<double>::epsilon();
/// Whole numbers below are exact. Others are written in a way that no flag for such takes.
constexpr double kWholeEnd = 0x1p53;

struct Quantity {
  double number = 0;
  SweepUnit unit = SweepUnit::kNone;
};

/// A size is one only for a key that is about bytes: a number of nodes is none.
std::optional<Quantity> QuantityOf(const std::string& key, const std::string& text) {
  if (IsOfBytes(key)) {
    if (const Result<uint64_t> bytes = ParseSize(text); bytes.ok())
      return Quantity{static_cast<double>(*bytes), SweepUnit::kBytes};
    return {};
  }
  if (const std::optional<double> number = NumberOf<double>(text)) return Quantity{*number};
  if (const Result<double> seconds = ParseLatency(text); seconds.ok())
    return Quantity{*seconds, SweepUnit::kSeconds};
  if (const Result<double> rate = ParseRate(text); rate.ok())
    return Quantity{*rate, SweepUnit::kBytesPerSecond};
  return {};
}

/// As a flag, or a profile, takes it: with all its digits, or without those that the steps to it
/// have rounded.
std::string TextOf(double number, bool is_given, SweepUnit unit) {
  constexpr std::array kUnits = {"", "", "s", "B/s"};
  const std::string_view ending = kUnits[static_cast<size_t>(unit)];
  if (number != std::floor(number) && !is_given) return fmt::format("{:.15g}{}", number, ending);
  if (number != std::floor(number)) return fmt::format("{}{}", number, ending);
  if (std::abs(number) >= kWholeEnd) return fmt::format("{:.16e}{}", number, ending);
  return fmt::format("{:.0f}{}", number, ending);
}

Status Bad(const std::string& text, const std::string& why) {
  return {StatusCode::kUsage, fmt::format("--sweep {}: {}", text, why)};
}

/// First, last and step of "a:b:x2" or "a:b:+c".
struct Range {
  Quantity first, last;
  Quantity step;
  bool is_geometric = false;
};

/// From the first to the last, with a fraction; not finite where these are too far apart.
double StepsIn(const Range& range) {
  const double first = range.first.number, last = range.last.number, step = range.step.number;
  return range.is_geometric ? std::log(last / first) / std::log(step) : (last - first) / step;
}

Result<Range> ParseRange(const std::string& key, const std::vector<std::string>& parts) {
  const auto bad = [](const std::string& why) { return Rejected(why); };
  constexpr const char* kForm = "expected FIRST:LAST:xFACTOR or FIRST:LAST:+STEP";
  if (parts.size() != 3 || parts[2].size() < 2) return bad(kForm);
  Range range;
  for (const auto& [text, out] : {std::pair(parts[0], &range.first), {parts[1], &range.last}}) {
    const std::optional<Quantity> quantity = QuantityOf(key, text);
    if (!quantity) return bad(fmt::format("'{}' is no number; {}", text, kForm));
    *out = *quantity;
  }
  range.is_geometric = parts[2].front() == 'x';
  if (!range.is_geometric && parts[2].front() != '+') return bad(kForm);
  const std::string step = parts[2].substr(1);
  if (range.is_geometric) {
    const std::optional<double> factor = NumberOf<double>(step);
    if (!factor || *factor <= 1 + kClose)
      return bad(fmt::format("'x{}': expected a factor above 1", step));
    if (range.first.number <= 0) return bad("a range with a factor begins above 0");
    range.step = {*factor, SweepUnit::kNone};
  } else {
    const std::optional<Quantity> quantity = QuantityOf(key, step);
    if (!quantity || quantity->number <= 0)
      return bad(fmt::format("'+{}': expected a step above 0", step));
    range.step = *quantity;
  }
  if (range.last.number < range.first.number) {
    return bad(fmt::format("'{}' is below '{}'; ranges rise", parts[1], parts[0]));
  }
  // 0 may stand without a unit.
  const auto differ = [](const Quantity& a, const Quantity& b) {
    const auto is_plain_zero = [](const Quantity& it) {
      return it.number == 0 && it.unit == SweepUnit::kNone;
    };
    return !is_plain_zero(a) && !is_plain_zero(b) && a.unit != b.unit;
  };
  const bool is_mixed =
      differ(range.first, range.last) ||
      (!range.is_geometric && (differ(range.first, range.step) || differ(range.last, range.step)));
  if (is_mixed) return bad("first, last and step must have units of one kind");
  if (!std::isfinite(StepsIn(range)))
    return bad(fmt::format("'{}' is too far from '{}' for '{}'", parts[1], parts[0], parts[2]));
  return range;
}

/// Values of a range, as far as there are no two that are rounded to one.
double ValuesIn(const Range& range) {
  const double steps = StepsIn(range);
  const double largest = std::max(std::abs(range.first.number), std::abs(range.last.number));
  // What is rounded, in steps.
  const double rounded = range.is_geometric ? steps + (1 + steps) / std::log(range.step.number)
                                            : largest / range.step.number;
  return std::floor(steps + std::min(kClose + kRounding * rounded, 0.5)) + 1;
}

Status TooMany(const std::string& values) {
  return Rejected(fmt::format("{} values, and a sweep has at most {} rows", values, kSweepRowsMax));
}

Status AddRange(const Range& range, SweepAxis* axis) {
  const bool is_whole =
      range.first.unit == SweepUnit::kBytes ||
      (range.first.number == std::floor(range.first.number) &&
       range.last.number == std::floor(range.last.number) && range.last.unit == SweepUnit::kNone);
  const SweepUnit unit = std::max(range.first.unit, range.last.unit);
  const double last = range.last.number;
  const bool is_rounded = is_whole && range.is_geometric;
  const double most = ValuesIn(range);
  if (!is_rounded && most > kSweepRowsMax) return TooMany(fmt::format("{:.0f}", most));
  for (double step = 0; is_rounded || step < most; ++step) {
    double value = range.is_geometric ? range.first.number * std::pow(range.step.number, step)
                                      : range.first.number + range.step.number * step;
    if (is_rounded) value = std::round(value);
    if (is_rounded && value - last > kRounding * last) return {};
    value = std::min(value, last);
    if (!axis->values.empty() && value <= *axis->values.back().number) continue;  // rounded
    if (axis->values.size() == kSweepRowsMax) {
      const double whole = range.last.number - range.first.number + 1;
      return TooMany(fmt::format("up to {:.0f}", std::min(most, whole)));
    }
    const std::string text = TextOf(value, step == 0 || value == last, unit);
    // What the row's command has is what its figures are of.
    const std::optional<Quantity> read = QuantityOf(axis->key, text);
    axis->values.push_back({text, read ? read->number : value});
    axis->unit = unit;
    if (!is_rounded) continue;
    // Over all steps that are rounded to the same.
    const double next = std::log((value + 0.5) / range.first.number) / std::log(range.step.number);
    step = std::max(step, std::ceil(next) - 1);
  }
  return {};
}

/// Whether a key's values have commas themselves, as those of "delay" or of such a list do. An
/// order is numbers, or a file.
bool HasCommas(const std::string& key, const std::string& list) {
  constexpr std::array kKeys = {"delay", "preempt", "neighbours"};
  return std::ranges::find(kKeys, key) != kKeys.end() || list.find(';') != std::string::npos ||
         (key == "slow" && list.find("factor=") != std::string::npos) ||
         (key == "order" && list.find_first_not_of("0123456789,") == std::string::npos);
}

Status AddList(const std::string& list, SweepAxis* axis) {
  const char between = HasCommas(axis->key, list) ? ';' : ',';
  std::set<std::string> texts;
  for (const std::string& text : Split(list, between)) {
    if (text.empty()) return Rejected(fmt::format("value {} is empty", axis->values.size() + 1));
    const std::optional<Quantity> quantity = QuantityOf(axis->key, text);
    axis->values.push_back({text, quantity ? std::optional(quantity->number) : std::nullopt});
    if (quantity) axis->unit = std::max(axis->unit, quantity->unit);
    if (!texts.insert(text).second) return Rejected(fmt::format("'{}' is there twice", text));
  }
  const std::vector<SweepValue>& values = axis->values;
  axis->is_numeric =
      std::ranges::all_of(values, [](const SweepValue& it) { return it.number.has_value(); });
  if (!axis->is_numeric || values.size() < 3) return {};
  const auto [least, most] =
      std::ranges::minmax_element(values, {}, [](const SweepValue& it) { return *it.number; });
  axis->is_geometric = *least->number > 0 && *most->number >= 8 * *least->number;
  return {};
}

}  // namespace

SweepUnit UnitOf(const std::string& text) {
  const std::optional<Quantity> quantity = QuantityOf("", text);
  return quantity ? quantity->unit : SweepUnit::kNone;
}

std::string SweepAxis::column() const {
  std::string name = key;
  std::ranges::replace(name, '-', '_');
  constexpr std::array kSuffixes = {"", "_bytes", "_seconds", "_bytes_per_second"};
  const std::string suffix = is_numeric ? kSuffixes[static_cast<size_t>(unit)] : "";
  return name.ends_with(suffix) ? name : name + suffix;
}

Result<SweepAxis> ParseSweep(const std::string& text) {
  const size_t equals = text.find('=');
  SweepAxis axis;
  axis.key = text.substr(0, equals);
  if (equals == std::string::npos || axis.key.empty())
    return Bad(text, "expected KEY=VALUES, such as nodes=2:512:x2 or wait=polling,interrupt");
  const std::string values = text.substr(equals + 1);
  const std::vector<std::string> parts = Split(values, ':');
  const bool is_range = parts.size() > 1 && QuantityOf(axis.key, parts.front()).has_value();
  Status status;
  if (is_range) {
    const Result<Range> range = ParseRange(axis.key, parts);
    status = range.ok() ? AddRange(*range, &axis) : range.status();
    axis.is_geometric = range.ok() && range->is_geometric;
    axis.is_numeric = true;
  } else {
    status = AddList(values, &axis);
  }
  if (!status.ok()) return Bad(text, status.message());
  return axis;
}

Result<std::vector<SweepPoint>> PointsOf(const std::vector<SweepAxis>& axes) {
  double rows = 1;  // of many keys, more than can be counted in integers
  for (size_t i = 0; i < axes.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (axes[j].key == axes[i].key)
        return Status(StatusCode::kUsage, fmt::format("--sweep: {} is there twice", axes[i].key));
    }
    rows *= static_cast<double>(axes[i].values.size());
  }
  if (rows > kSweepRowsMax) {
    return Status(StatusCode::kUsage,
                  fmt::format("--sweep: {:.0f} rows, the limit is {}", rows, kSweepRowsMax));
  }
  const auto count = static_cast<size_t>(rows);
  std::vector<SweepPoint> points;
  for (size_t i = 0; i < count; ++i) {
    SweepPoint point(axes.size());
    size_t rest = i;
    for (size_t axis = axes.size(); axis-- > 0;) {
      point[axis] = rest % axes[axis].values.size();
      rest /= axes[axis].values.size();
    }
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace prepost::tools
