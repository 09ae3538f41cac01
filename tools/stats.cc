// SPDX-License-Identifier: Apache-2.0
//
// prepost stats: what a plan costs, and how near it is to what is possible.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/command.h"
#include "tools/stats_print.h"
#include "tools/ticker.h"

namespace prepost::tools {
namespace {

struct StatsFlags {
  std::string plan;
  bool per_node = false;
  bool json = false;
};

Status Run(const StatsFlags& flags) {
  const Result<Plan> plan = LoadPlan(flags.plan);
  if (!plan.ok()) return plan.status();
  const Ticker ticker("measuring " + flags.plan);
  const PlanTables tables(*plan);
  const PlanStats stats(tables, Network::Uniform(plan->header().nodes), {});
  if (flags.json) {
    // The name of the algorithm may hold any bytes.
    std::cout << StatsJson(stats).dump(2, ' ', /*ensure_ascii=*/false,
                                       nlohmann::json::error_handler_t::replace)
              << "\n";
    return {};
  }
  PrintStats(stats, std::cout);
  if (flags.per_node) PrintNodes(stats, std::cout);
  return {};
}

}  // namespace

void AddStats(CLI::App& app, Action* action) {
  auto flags = std::make_shared<StatsFlags>();
  CLI::App* command =
      app.add_subcommand("stats", "Say what a plan costs and how near it is to what is possible");
  command->footer(
      "Rounds beside their lower bound and its argument, the longest chain of messages, when nodes "
      "have their last block,\n"
      "the load of channels and nodes, and which of them is the bottleneck (docs/analysis.md). "
      "Rounds count from 0, as in\n"
      "the plan file.\n\n"
      "Examples:\n"
      "  prepost stats plan.json\n"
      "  prepost stats plan.json --per-node\n"
      "  prepost compile --nodes 100 --message-bytes 64MiB | prepost stats - --json");
  command->add_option("PLAN", flags->plan, "Plan file, - for stdin")->required();
  CLI::Option* per_node =
      command->add_flag("--per-node", flags->per_node, "Add a table of the nodes");
  command->add_flag("--json", flags->json, "Print it all, every node and channel, as JSON")
      ->excludes(per_node);
  command->callback([flags, action] { *action = [flags] { return Run(*flags); }; });
}

}  // namespace prepost::tools
