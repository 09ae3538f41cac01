// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/draw_flags.h"

#include <utility>

#include "planning/files/plan_file.h"
#include "planning/text/messages.h"

namespace prepost::tools {

Result<viz::Selection> SelectionOf(const DrawFlags& flags, const Plan& plan) {
  viz::Selection selection;
  for (uint32_t node : flags.nodes) selection.nodes.push_back(NodeId(node));
  selection.blocks = flags.blocks;
  if (!flags.rounds.empty()) {
    const Result<viz::Rounds> rounds = viz::ParseRounds(flags.rounds);
    if (!rounds.ok()) return rounds.status();
    selection.rounds = *rounds;
  }
  return viz::CheckSelection(plan, std::move(selection));
}

Result<std::optional<LoadedRun>> LoadOwnRun(const DrawFlags& flags, const Plan& plan) {
  const Ticker ticker("reading the run");
  if (!flags.simulation) return LoadTraces(flags.traces, plan);
  Result<std::optional<LoadedRun>> run = LoadTraces({*flags.simulation}, plan);
  if (run.ok() && (*run)->trace.modelled.empty()) {
    return Status(
        StatusCode::kRejected,
        "it is of a run and of no simulation (prepost simulate --trace): --trace shows it",
        *flags.simulation);
  }
  return run;
}

Result<std::optional<Network>> NetworkUnder(const DrawFlags& flags, const Plan& plan) {
  if (!flags.topology) return std::optional<Network>();
  const Result<Network> topology = LoadTopology(*flags.topology);
  if (!topology.ok()) return topology.status();
  Result<Network> network = NetworkOfFile(*topology, *flags.topology, plan.header().nodes);
  if (!network.ok()) return network.status();
  return std::optional<Network>(std::move(*network));
}

Result<viz::QueueEngines> EnginesOf(const DrawFlags& flags, bool is_page) {
  const Result<nic::LowerOptions> lower = flags.lowering.ToOptions();
  if (!lower.ok()) return lower.status();
  const bool is_all = is_page && flags.engines.empty();
  viz::QueueEngines engines = {.deferred = is_all || flags.Has("deferred"),
                               .cpu = is_all || flags.Has("cpu")};
  engines.nic.reset();
  if (flags.engines.empty() || flags.Has("nic")) engines.nic = *lower;
  return engines;
}

}  // namespace prepost::tools
