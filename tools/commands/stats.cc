// SPDX-License-Identifier: Apache-2.0
//
// prepost stats: what a plan costs, and how near it is to what is possible.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "planning/files/named_file.h"
#include "planning/files/plan_file.h"
#include "planning/report/plan_stats.h"
#include "planning/text/messages.h"
#include "planning/text/plan_text.h"
#include "tools/commands/commands.h"

namespace prepost::tools {
namespace {

struct StatsFlags {
  std::string plan;
  std::optional<std::string> topology;
  bool per_node = false;
  bool json = false;
};

Status Run(const StatsFlags& flags) {
  if (flags.plan == "-" && flags.topology == "-") {
    return {StatusCode::kUsage, "PLAN and --topology cannot both be stdin"};
  }
  std::optional<Network> topology;  // before the plan: it takes less time
  if (flags.topology) {
    Result<Network> loaded = LoadTopology(*flags.topology);
    if (!loaded.ok()) return loaded.status();
    topology = *std::move(loaded);
  }
  const Result<VerifiedPlan> plan = LoadAnyPlan(flags.plan);
  if (!plan.ok()) return plan.status();
  if (flags.topology) {
    if (const Status status = ExpectPlayed(*plan); !status.ok())
      return Rejected("--topology: " + status.message(), NameOfInput(flags.plan));
  }
  const uint32_t nodes = plan->header().nodes;
  Result<Network> network = topology ? NetworkOfFile(*topology, *flags.topology, nodes)
                                     : Result<Network>(Network::Uniform(nodes));
  if (!network.ok()) return network.status();
  const Ticker ticker("measuring " + flags.plan);
  const PlanTables tables(*plan);
  const PlanStats stats(tables, *std::move(network), flags.topology);
  if (flags.json) {
    PrintJson(ToJson(stats), std::cout);
    return {};
  }
  Print(stats, flags.per_node, std::cout);
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
      "the load of channels and nodes, and which of them is the bottleneck (docs/inspect.md). "
      "Rounds count from 0, as in\n"
      "the plan file.\n"
      "With --topology also what racks and the core have to carry, rounds as ToRs limit them, and "
      "a "
      "modelled time beside its\n"
      "lower bound.\n"
      "Of other collectives: blocks through a port beside their bound, what hosts combine, scratch "
      "buffers, and how many\n"
      "different expressions there are over the blocks.\n\n"
      "Examples:\n"
      "  prepost stats plan.json\n"
      "  prepost stats plan.json --per-node\n"
      "  prepost stats plan.json --topology examples/topologies/4x8.json\n"
      "  prepost compile --collective alltoall --nodes 32 --message-bytes 1MiB -o all.json\n"
      "  prepost stats all.json --topology examples/topologies/4x8.json\n"
      "  prepost compile --nodes 100 --message-bytes 16MiB | prepost stats - --json");
  command->add_option("PLAN", flags->plan, "Plan file, - for stdin")->required();
  command
      ->add_option("--topology", flags->topology,
                   "Network file, - for stdin: node i of the plan is its host i")
      ->type_name("FILE");
  CLI::Option* per_node =
      command->add_flag("--per-node", flags->per_node, "Add a table of the nodes");
  command->add_flag("--json", flags->json, "Print it all, every node and channel, as JSON")
      ->excludes(per_node);
  command->callback([flags, action] { *action = [flags] { return Run(*flags); }; });
}

}  // namespace prepost::tools
