// SPDX-License-Identifier: Apache-2.0
//
// prepost explain: why an op of a plan waits, what waits for it, and the chain back to the root.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "planning/files/plan_file.h"
#include "planning/text/plan_text.h"
#include "tools/commands/commands.h"
#include "tools/flags/op_reference.h"
#include "tools/report/explain_print.h"

namespace prepost::tools {
namespace {

struct ExplainFlags {
  std::string plan;
  std::string what;
  bool json = false;
};

Explanation ExplainOp(const Reasons& reasons, OpRef ref) {
  const OpReasons op = reasons.Explain(ref);
  return {.block = {}, .node = {}, .ops = {op}, .chain = reasons.ChainOf(op.message)};
}

Explanation ExplainMessage(const PlanTables& tables, const Reasons& reasons, uint32_t message) {
  Explanation explanation = ExplainOp(reasons, tables.RefOf(tables.messages().send(message)));
  explanation.ops.push_back(reasons.Explain(tables.RefOf(tables.messages().recv(message))));
  return explanation;
}

Explanation ExplainNode(const PlanTables& tables, const Reasons& reasons, NodeId node) {
  Explanation explanation = {.block = {}, .node = Summarise(tables, reasons.times(), node)};
  if (explanation.node->last_message) {
    explanation.chain = reasons.ChainOf(*explanation.node->last_message);
  }
  return explanation;
}

Status Run(const ExplainFlags& flags) {
  const Result<VerifiedPlan> plan = LoadAnyPlan(flags.plan);
  if (!plan.ok()) return plan.status();
  const PlanTables tables(*plan);
  const Result<OpReference> what = ParseOpReference(flags.what, tables);
  if (!what.ok()) return what.status();
  const Reasons reasons(tables);
  Explanation explanation;
  if (const auto* block = std::get_if<BlockReference>(&*what)) {
    explanation.block = block->block;
  } else if (const auto* node = std::get_if<NodeId>(&*what)) {
    explanation = ExplainNode(tables, reasons, *node);
  } else if (const auto* ref = std::get_if<OpRef>(&*what)) {
    explanation = ExplainOp(reasons, *ref);
  } else {
    explanation = ExplainMessage(tables, reasons, std::get<MessageReference>(*what).message);
  }
  if (flags.json) {
    PrintJson(ExplanationJson(tables, reasons.times(), explanation), std::cout);
  } else {
    PrintExplanation(tables, reasons.times(), explanation, std::cout);
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
