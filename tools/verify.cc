// SPDX-License-Identifier: Apache-2.0
//
// prepost verify: checks plan files against the rules of a valid plan.
#include "prepost/ir/verify.h"

#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "prepost/ir/count.h"
#include "prepost/ir/plan_json.h"
#include "tools/command.h"
#include "tools/ticker.h"

namespace prepost::tools {
namespace {

struct VerifyFlags {
  std::vector<std::string> paths;
  VerifyOptions options;
  bool json = false;
};

nlohmann::ordered_json ToJson(const Verdict& verdict) {
  nlohmann::ordered_json diagnostics = nlohmann::ordered_json::array();
  for (const Diagnostic& diagnostic : verdict.diagnostics) {
    diagnostics.push_back({{"rule", Name(diagnostic.rule)},
                           {"where", diagnostic.where},
                           {"message", diagnostic.message},
                           {"notes", diagnostic.notes}});
  }
  return {{"valid", verdict.ok()}, {"findings", verdict.findings}, {"diagnostics", diagnostics}};
}

/// One file; what is wrong with it goes to stdout, as that is the result asked for.
Status RunOne(const std::string& path, const VerifyFlags& flags, nlohmann::ordered_json* results) {
  const Result<Plan> plan = ReadPlanFile(path);
  if (!plan.ok()) {
    results->push_back({{"plan", path}, {"valid", false}, {"error", plan.status().ToString()}});
    return plan.status();
  }
  const Verdict verdict = [&] {
    const Ticker ticker("verifying " + path);
    return Verify(*plan, flags.options);
  }();
  nlohmann::ordered_json result = {{"plan", path}};
  result.update(ToJson(verdict));
  results->push_back(std::move(result));
  if (!flags.json) {
    const PlanHeader& header = plan->header();
    std::cout << path << ": ";
    if (verdict.ok()) {
      std::cout << fmt::format("valid: {}, {}, {}, {}, {}, ready {}, all {} rules hold\n",
                               header.algorithm, Count(header.nodes, "node"),
                               Count(header.message.blocks, "block"),
                               Count(plan->ops().size(), "op"), Count(header.rounds, "round"),
                               ToString(header.ready), std::size(kRules));
    } else {
      std::cout << fmt::format("not valid, {}\n{}", Count(verdict.findings, "finding"),
                               verdict.ToString());
    }
  }
  return verdict.ok() ? Status() : Rejected(Count(verdict.findings, "finding"), path);
}

Status Run(const VerifyFlags& flags) {
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  std::vector<Status> failures;
  for (const std::string& path : flags.paths) {
    Status status = RunOne(path, flags, &results);
    if (!status.ok()) failures.push_back(std::move(status));
  }
  if (flags.json) {
    std::cout << results.dump(2, ' ', /*ensure_ascii=*/false,
                              nlohmann::json::error_handler_t::replace)
              << "\n";
  }
  if (failures.empty()) return {};
  if (flags.paths.size() == 1) return failures.front();
  for (const Status& failure : failures) std::cerr << "prepost: " << failure.ToString() << "\n";
  return Rejected(fmt::format("{} of {} plans are not valid", failures.size(), flags.paths.size()));
}

}  // namespace

void AddVerify(CLI::App& app, Action* action) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App* command = app.add_subcommand("verify", "Check plans against the rules of a valid plan");
  command->footer(
      "Rules: shape, match, once, causal, acyclic, order, ready, window, rounds (docs/plan.md). "
      "The first 20 findings are "
      "printed, in the order of the file. Exit code 1 when a plan is not valid.\n\n"
      "Examples:\n"
      "  prepost verify plan.json\n"
      "  prepost compile --nodes 8 --message-bytes 1MiB | prepost verify - --json");
  command->add_option("PLAN", flags->paths, "Plan files, - for stdin")->required();
  command
      ->add_option("--send-depth", flags->options.send_depth,
                   "Sends a channel can hold that are not delivered")
      ->type_name("S")
      ->check(CLI::Range(1u, UINT32_MAX));
  command
      ->add_option("--recv-depth", flags->options.recv_depth, "Receives a channel can have posted")
      ->type_name("R")
      ->check(CLI::Range(1u, UINT32_MAX));
  command->add_flag("--json", flags->json, "Print the verdicts as JSON");
  command->callback([flags, action] { *action = [flags] { return Run(*flags); }; });
}

}  // namespace prepost::tools
