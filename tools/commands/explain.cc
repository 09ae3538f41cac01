// SPDX-License-Identifier: Apache-2.0
//
// prepost explain: why an op of a plan waits, what waits for it, and the chain back to the root.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "planning/files/plan_file.h"
#include "planning/report/explain_print.h"
#include "planning/text/plan_text.h"
#include "tools/commands/commands.h"

namespace prepost::tools {
namespace {

struct ExplainFlags {
  std::string plan;
  std::string what;
  bool json = false;
};

Status Run(const ExplainFlags& flags) {
  const Result<VerifiedPlan> plan = LoadAnyPlan(flags.plan);
  if (!plan.ok()) return plan.status();
  const PlanTables tables(*plan);
  const Reasons reasons(tables);
  const Result<Explanation> explanation = Explain(tables, reasons, flags.what);
  if (!explanation.ok()) return explanation.status();
  if (flags.json) {
    PrintJson(ExplanationJson(tables, reasons.times(), *explanation), std::cout);
  } else {
    PrintExplanation(tables, reasons.times(), *explanation, std::cout);
  }
  return {};
}

}  // namespace

void AddExplain(CLI::App& app, Action* action) {
  auto flags = std::make_shared<ExplainFlags>();
  CLI::App* command = app.add_subcommand("explain", "Say why an op of a plan waits");
  command->footer(
      "5/12 is op 12 of node 5: what it waits for and why, what waits for it, its slack (how much "
      "later it may start\n"
      "without making the whole later), and the chain of messages that leads back to the root. "
      "5>2:3 is the message that\n"
      "carries block 3 from node 5 to node 2, with its send and its receive. 5 alone is node 5, "
      "and "
      ":3 is block 3: whose it\n"
      "is, who gets it and, where a plan combines, what is combined with what.\n"
      "Times are those of a model in which each block takes 1 and nothing else takes time "
      "(docs/inspect.md).\n\n"
      "Examples:\n"
      "  prepost explain plan.json 5/12\n"
      "  prepost explain plan.json '0>4:2'\n"
      "  prepost explain plan.json 5\n"
      "  prepost compile --collective allreduce --combine sum:float32 --nodes 4 --message-bytes "
      "4KiB "
      "-o allreduce.json\n"
      "  prepost explain allreduce.json :0\n"
      "  prepost compile --nodes 8 --message-bytes 4MiB | prepost explain - 3/2 --json");
  command->add_option("PLAN", flags->plan, "Plan file, - for stdin")->required();
  command->add_option("WHAT", flags->what, "NODE/OP, FROM>TO:BLOCK, NODE, or :BLOCK")->required();
  command->add_flag("--json", flags->json, "Print it all as JSON");
  command->callback([flags, action] { *action = [flags] { return Run(*flags); }; });
}

}  // namespace prepost::tools
