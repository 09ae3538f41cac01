// SPDX-License-Identifier: Apache-2.0
#include "tools/flags/plan_cache.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace prepost::tools {

std::shared_ptr<const SimulatedPlan> PlanCache::Find(const PlanKey& key) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(entries_, key, &Entry::key);
  if (found == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found);
  return entries_.front().plan;
}

Result<std::shared_ptr<const SimulatedPlan>> PlanCache::Get(const PlanKey& key, const Make& make) {
  if (std::shared_ptr<const SimulatedPlan> plan = Find(key)) return plan;
  // Others may make the same meanwhile, and need not wait.
  Result<SimulatedPlan> made = make();
  if (!made.ok()) return made.status();
  auto plan = std::make_shared<const SimulatedPlan>(*std::move(made));
  size_t ops = 0;
  for (const Program& program : plan->plan.programs()) ops += plan->plan.ops(program).size();
  const std::lock_guard lock(mutex_);
  entries_.push_front({key, plan, ops});
  size_t sum = 0;
  const auto too_many = std::ranges::find_if(
      entries_, [&](const Entry& entry) { return (sum += entry.ops) > kOpsMax; });
  // The last one may be in use, and stays.
  if (too_many != entries_.end())
    entries_.erase(too_many == entries_.begin() ? std::next(too_many) : too_many, entries_.end());
  return plan;
}

}  // namespace prepost::tools
