// SPDX-License-Identifier: Apache-2.0
#include "tools/report/sweep_text.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>

#include "ir/count.h"
#include "ir/json/rate_text.h"
#include "ir/utf8.h"

namespace prepost::tools {

using Json = nlohmann::ordered_json;

std::string Readable(const SweepAxis& axis, size_t value) {
  const SweepValue& it = axis.values[value];
  if (!it.number) return it.text;
  if (axis.unit == SweepUnit::kSeconds) return WriteLatency(*it.number);
  if (axis.unit == SweepUnit::kBytesPerSecond) return WriteRate(*it.number);
  if (axis.unit != SweepUnit::kBytes) return fmt::format("{:.9g}", *it.number);
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto bytes = static_cast<uint64_t>(*it.number);
  size_t unit = 0;
  for (; unit + 1 < kUnits.size() && bytes != 0 && bytes % 1024 == 0; ++unit) bytes /= 1024;
  return fmt::format("{} {}", bytes, kUnits[unit]);
}

std::string Modelled(const Sweep& sweep, bool has_paths) {
  std::string text =
      fmt::format("modelled, with the profile{} ", sweep.profiles.size() > 1 ? "s" : "");
  for (size_t i = 0; i < sweep.profiles.size(); ++i) {
    const Sweep::Profile& it = sweep.profiles[i];
    text += i == 0 ? "" : i + 1 == sweep.profiles.size() ? " and " : ", ";
    text += has_paths ? fmt::format("{} ({})", it.name, it.path) : it.name;
  }
  return Printable(text);
}

std::string TextOf(const Json& it) {
  if (it.is_null()) return "none";
  return it.is_string() ? it.get<std::string>() : it.dump();
}

std::string Common(const Sweep& sweep) {
  std::string text;
  const auto add = [&](const char* key, auto write) {
    std::optional<std::string> common;
    for (const SweepRow& row : sweep.rows) {
      if (!row.status.ok()) continue;
      if (!row.found.contains(key)) return;
      const std::string one = write(row.found[key]);
      if (common && *common != one) return;
      common = one;
    }
    if (common) text += (text.empty() ? "" : ", ") + *common;
  };
  const auto text_after = [](const char* before) {
    return [before](const Json& it) { return before + TextOf(it); };
  };
  const auto count_of = [](const char* noun) {
    return [noun](const Json& it) { return Count(it.get<uint64_t>(), noun); };
  };
  add("workload", text_after(""));
  add("algorithm", text_after(""));
  add("nodes", count_of("node"));
  add("root", text_after("root "));
  add("message_bytes", count_of("byte"));
  add("block_bytes", text_after("blocks of "));
  add("ready", text_after("ready "));
  add("send_window", text_after("send window "));
  return text;
}

double NumberAt(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_number() ? json[key].get<double>()
                                                     : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace prepost::tools
