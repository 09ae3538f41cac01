// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/draw_page.h"

#include <fmt/format.h>

#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "ir/plan_tables.h"
#include "planning/files/named_file.h"
#include "planning/files/plan_file.h"
#include "planning/report/plan_stats.h"
#include "planning/text/messages.h"
#include "viz/page_data/page.h"

namespace prepost::tools {
namespace {

/// A side of a page, with what it points at.
class LoadedSide {
 public:
  LoadedSide(const DrawFlags& flags, const std::string& path, const VerifiedPlan& plan,
             std::optional<LoadedRun> run)
      : run_(std::move(run)) {
    side_ = {.label = NameOfFile(path), .plan = &plan};
    if (run_) side_.run = {.label = run_->label, .trace = &run_->trace, .info = run_->info};
    topology_ = flags.topology;
  }
  LoadedSide(const LoadedSide&) = delete;
  LoadedSide& operator=(const LoadedSide&) = delete;

  /// `network`: none if it is not known.
  void Analyse(std::optional<Network> network) {
    network_ = std::move(network);
    if (network_) side_.network = &*network_;
    const PlanTables tables(*side_.plan);
    side_.stats =
        ToJson(PlanStats(tables,
                         network_ ? *network_ : Network::Uniform(side_.plan->header().nodes),
                         network_ ? topology_ : std::nullopt))
            .dump();
  }
  const viz::PageSide& side() const { return side_; }

 private:
  std::optional<LoadedRun> run_;
  std::optional<Network> network_;
  std::optional<std::string> topology_;
  viz::PageSide side_;
};

}  // namespace

Result<std::string> DrawPage(const DrawFlags& flags, const VerifiedPlan& plan) {
  const Result<viz::Selection> selection = SelectionOf(flags, plan);
  if (!selection.ok()) return selection.status();
  const Result<viz::QueueEngines> engines = EnginesOf(flags, /*is_page=*/true);
  if (!engines.ok()) return engines.status();
  std::deque<VerifiedPlan> others;
  std::deque<LoadedSide> sides;
  const auto add = [&](const std::string& path, const VerifiedPlan& of,
                       Result<std::optional<LoadedRun>> run) -> Status {
    if (!run.ok()) return run.status();
    if (of.header().rounds > viz::kPageRoundsMax) {
      return Status(StatusCode::kRejected,
                    fmt::format("the plan has {} rounds, and a page shows {}: -o FILE.svg draws it",
                                of.header().rounds, viz::kPageRoundsMax),
                    path);
    }
    Result<std::optional<Network>> network = NetworkUnder(flags, of);
    if (!network.ok()) return network.status();
    sides.emplace_back(flags, path, of, *std::move(run)).Analyse(*std::move(network));
    return {};
  };
  PREPOST_RETURN_IF_ERROR(add(flags.path, plan, LoadOwnRun(flags, plan)));
  const Ticker ticker("drawing " + NameOfFile(flags.path));
  if (!flags.against.empty() && IsTrace(flags.against.front())) {
    PREPOST_RETURN_IF_ERROR(add(flags.path, plan, LoadTraces(flags.against, plan)));
  } else if (!flags.against.empty()) {
    const std::string& path = flags.against.front();
    Result<VerifiedPlan> other = LoadAnyPlan(path);
    if (!other.ok()) return other.status();
    others.push_back(*std::move(other));
    PREPOST_RETURN_IF_ERROR(
        add(path, others.back(), LoadTraces(flags.against_traces, others.back())));
  }
  std::vector<viz::PageSide> shown;
  for (const LoadedSide& side : sides) shown.push_back(side.side());
  return viz::Page(shown, {.engines = *engines, .selection = *selection, .view = flags.view});
}

}  // namespace prepost::tools
