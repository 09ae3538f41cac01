// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedules/schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "ir/base/near_name.h"
#include "ir/base/utf8.h"

namespace prepost {

std::span<const Schedule* const> Schedules() {
  static const Schedule* const schedules[] = {
      &SequentialSchedule(),   &ChainSchedule(),      &KaryChainSchedule(),
      &BinomialTreeSchedule(), &KaryTreeSchedule(),   &BinomialPipelineSchedule(),
      &CirculantSchedule(),    &TwoTreeSchedule(),    &ScatterAllgatherSchedule(),
      &RackChainSchedule(),    &RackHybridSchedule(), &RackCirculantSchedule()};
  return schedules;
}

std::vector<std::string> ScheduleNames() {
  std::vector<std::string> names;
  for (const Schedule* schedule : Schedules()) names.emplace_back(schedule->name());
  return names;
}

Result<Algorithm> FindAlgorithm(std::string_view text) {
  const size_t equals = text.find('=');
  const std::string name(text.substr(0, equals));
  const auto schedule = std::ranges::find(Schedules(), name, &Schedule::name);
  if (schedule == Schedules().end()) {
    return Rejected(fmt::format("unknown algorithm '{}'{}; known are {}",
                                Printable(name.substr(0, 40)), DidYouMean(name, ScheduleNames()),
                                fmt::join(ScheduleNames(), ", ")));
  }
  Algorithm algorithm{.schedule = *schedule, .fanout = (*schedule)->default_fanout()};
  if (equals == std::string_view::npos) return algorithm;
  if (algorithm.fanout == 0) return Rejected(fmt::format("'{}' takes no number", name));
  const std::string_view number = text.substr(equals + 1);
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), algorithm.fanout);
  if (error != std::errc() || end != number.data() + number.size() || algorithm.fanout == 0) {
    return Rejected(fmt::format("'{}' is no fan-out, expected a number from 1 to {}, as in {}={}",
                                number.substr(0, 40), UINT32_MAX, name,
                                (*schedule)->default_fanout()));
  }
  return algorithm;
}

}  // namespace prepost
