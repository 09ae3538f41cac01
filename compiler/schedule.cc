// SPDX-License-Identifier: Apache-2.0
#include "prepost/compiler/schedule.h"

namespace prepost {

std::span<const Schedule* const> Schedules() {
  static const Schedule* const kSchedules[] = {
      &SequentialSchedule(),       &ChainSchedule(),     &BinomialTreeSchedule(),
      &BinomialPipelineSchedule(), &CirculantSchedule(), &TwoTreeSchedule(),
      &ScatterAllgatherSchedule(), &RackChainSchedule(), &RackHybridSchedule(),
      &RackCirculantSchedule()};
  return kSchedules;
}

const Schedule* FindSchedule(std::string_view name) {
  for (const Schedule* schedule : Schedules()) {
    if (schedule->name() == name) return schedule;
  }
  return nullptr;
}

std::vector<std::string> ScheduleNames() {
  std::vector<std::string> names;
  for (const Schedule* schedule : Schedules()) names.emplace_back(schedule->name());
  return names;
}

}  // namespace prepost
