// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/simulate_seeds.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "tools/commands/simulate_pool.h"

namespace prepost::tools {
namespace {

/// The flags of the run with the seed of this index.
SimulateFlags WithSeed(const SimulateFlags& row, uint32_t index) {
  SimulateFlags flags = row;
  flags.seed = row.seed + index;
  flags.given.Remove("--seeds");
  flags.given.Set("--seed", fmt::format("{}", flags.seed));
  return flags;
}

class SeedRunner {
 public:
  SeedRunner(const std::vector<SimulateFlags>& rows, unsigned jobs, const SimulateRow& simulate,
             std::vector<SweepRow>* found)
      : rows_(rows),
        jobs_(jobs),
        simulate_(simulate),
        found_(*found),
        draws_(rows.size()),
        runs_(rows.size()) {}

  /// All rows with their first seed, which says in which of them something is drawn.
  Status RunFirst() {
    return RunEach(rows_.size(), jobs_, [this](size_t row) { return RunFirstOf(row); });
  }

  bool HasDraws() const {
    return std::ranges::any_of(draws_, [](char draws) { return draws != 0; });
  }
  bool HasRuns() const {
    return std::ranges::any_of(runs_, [](const auto& runs) { return runs.has_value(); });
  }

  Status RunOthers() {
    std::vector<Other> others;
    for (size_t row = 0; row < rows_.size(); ++row) {
      if (draws_[row] == 0) continue;
      for (uint32_t index = 1; index < *rows_[row].sweep.seeds; ++index)
        others.push_back({row, index, {}});
    }
    PREPOST_RETURN_IF_ERROR(
        RunEach(others.size(), jobs_, [&](size_t i) { return RunOther(&others[i]); }));
    for (const Other& other : others) {
      Status& status = found_[other.row].status;
      if (other.status.ok() || !status.ok()) continue;
      status = {other.status.code(), fmt::format("seed {}: {}", rows_[other.row].seed + other.index,
                                                 other.status.ToString())};
      runs_[other.row].reset();
    }
    return {};
  }

  std::vector<std::optional<SeedRuns>> Take() {
    for (size_t row = 0; row < rows_.size(); ++row) {
      if (runs_[row]) found_[row].found = prepost::ToJson(*runs_[row]);
    }
    return std::move(runs_);
  }

 private:
  struct Other {
    size_t row;
    uint32_t index;
    Status status;
  };

  Status RunFirstOf(size_t row) {
    const SimulateFlags& flags = rows_[row];
    Result<Simulated> it = simulate_(WithSeed(flags, 0));
    if (!it.ok() && it.status().code() != StatusCode::kRejected) return it.status();
    found_[row].status = it.status();
    if (!it.ok()) return {};
    const bool draws = SeedDeviationOf(flags, *it->profile) || DrawsLosses(*it->simulation);
    draws_[row] = draws ? 1 : 0;
    it->simulation->command = found_[row].command;
    it->simulation->deviations = FixedDeviationsOf(flags.given);
    if (draws) it->simulation->deviations.push_back(SeedsText(flags));
    runs_[row].emplace(*it->simulation, *flags.sweep.seeds);
    return {};
  }

  Status RunOther(Other* other) {
    const Result<Simulated> it = simulate_(WithSeed(rows_[other->row], other->index));
    if (!it.ok() && it.status().code() != StatusCode::kRejected) return it.status();
    other->status = it.status();
    if (it.ok()) runs_[other->row]->runs[other->index] = SeedRun::Of(*it->simulation);
    return {};
  }

  const std::vector<SimulateFlags>& rows_;
  const unsigned jobs_;
  const SimulateRow& simulate_;
  std::vector<SweepRow>& found_;
  std::vector<char> draws_;  ///< by row; bits would be written by several threads at once
  std::vector<std::optional<SeedRuns>> runs_;
};

}  // namespace

std::string SeedsText(const SimulateFlags& flags) {
  return fmt::format("seeds {} to {}", flags.seed, flags.seed + *flags.sweep.seeds - 1);
}

Status CheckSeeds(const SimulateFlags& flags, const std::vector<SweepAxis>& axes) {
  if (!flags.sweep.seeds) return {};
  const char* of_one = flags.trace.is_wanted() ? "--trace"
                       : flags.per_node        ? "--per-node"
                       : flags.causes          ? "--causes"
                                               : nullptr;
  if (of_one != nullptr) {
    return {StatusCode::kUsage,
            fmt::format("{} is of one run, not of --seeds: give one of these as --seed", of_one)};
  }
  if (std::ranges::find(axes, "seed", &SweepAxis::key) != axes.end()) {
    return {StatusCode::kUsage,
            "--sweep seed: --seeds has one seed after the other already; give one of both"};
  }
  const uint32_t seeds = *flags.sweep.seeds;
  if (flags.seed > std::numeric_limits<uint64_t>::max() - (seeds - 1)) {
    return {StatusCode::kUsage,
            fmt::format("--seeds: from seed {} on there are no {}", flags.seed, seeds)};
  }
  double runs = seeds;
  for (const SweepAxis& axis : axes) runs *= static_cast<double>(axis.values.size());
  if (runs <= kSweepRowsMax) return {};
  return {StatusCode::kUsage,
          fmt::format("--seeds: {:.0f} rows with {} seeds each, the limit is {} "
                      "runs",
                      runs / seeds, seeds, kSweepRowsMax)};
}

Result<std::vector<std::optional<SeedRuns>>> SimulateSeeds(const std::vector<SimulateFlags>& rows,
                                                           unsigned jobs,
                                                           const SimulateRow& simulate,
                                                           std::vector<SweepRow>* found) {
  SeedRunner runner(rows, jobs, simulate, found);
  PREPOST_RETURN_IF_ERROR(runner.RunFirst());
  if (runner.HasRuns() && !runner.HasDraws()) {
    return Status(StatusCode::kUsage,
                  "--seeds: nothing is drawn, so all seeds give the same; --preempt, hosts= or "
                  "share= of a flag, --slow random= and lossy paths over TCP are drawn");
  }
  PREPOST_RETURN_IF_ERROR(runner.RunOthers());
  return runner.Take();
}

}  // namespace prepost::tools
