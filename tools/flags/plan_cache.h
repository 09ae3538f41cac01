// SPDX-License-Identifier: Apache-2.0
//
// PlanCache: plans that several rows of a sweep run, so that each is read or compiled once.
#ifndef PREPOST_TOOLS_FLAGS_PLAN_CACHE_H_
#define PREPOST_TOOLS_FLAGS_PLAN_CACHE_H_

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "ir/status.h"
#include "sim/profile.h"
#include "tools/flags/simulation_input.h"

namespace prepost::tools {

/// What a plan depends on: flags, and the network that it is compiled for.
struct PlanKey {
  std::string flags;
  sim::NetworkProfile network;

  friend bool operator==(const PlanKey&, const PlanKey&) = default;
};

/// Used by several threads.
class PlanCache {
 public:
  using Make = std::function<Result<SimulatedPlan>()>;

  /// The plan of `key`: the one that is there, else what `make` gives. Those that were used least
  /// lately go when there are too many ops.
  Result<std::shared_ptr<const SimulatedPlan>> Get(const PlanKey& key, const Make& make);

 private:
  static constexpr size_t kOpsMax = size_t{1} << 23;  ///< of all plans, but for the last one

  struct Entry {
    PlanKey key;
    std::shared_ptr<const SimulatedPlan> plan;
    size_t ops = 0;
  };

  std::shared_ptr<const SimulatedPlan> Find(const PlanKey& key);

  std::mutex mutex_;
  std::list<Entry> entries_;  // guarded by mutex_; the last used first
};

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_FLAGS_PLAN_CACHE_H_
