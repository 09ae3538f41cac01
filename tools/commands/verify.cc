// SPDX-License-Identifier: Apache-2.0
//
// prepost verify: checks plan files against the rules of a valid plan.
#include "ir/verify/verify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "backends/nic/program/fit.h"
#include "compiler/verify_rolled.h"
#include "ir/base/count.h"
#include "ir/base/utf8.h"
#include "ir/json/plan_json.h"
#include "planning/files/plan_file.h"
#include "planning/flags/lowering_flags.h"
#include "planning/flags/values.h"
#include "planning/text/messages.h"
#include "planning/text/plan_text.h"
#include "runtime/executor/executor_choice.h"
#include "tools/commands/commands.h"
#include "tools/report/fit_print.h"

namespace prepost::tools {
namespace {

struct VerifyFlags {
  std::vector<std::string> paths;
  VerifyOptions options;
  std::string device_profile;  ///< empty: none
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

/// Whether the valid `plan` fits the device in some mode, to stdout and `result`.
Status CheckBounds(const Plan& plan, const std::string& path, const nic::DeviceProfile& profile,
                   bool json, nlohmann::ordered_json& result) {
  if (const std::optional<std::string> why = WhyNotPreposted(plan)) {
    result["error"] = *why;
    return Rejected(*why, path);
  }
  std::vector<nic::Fit> fits;
  for (const nic::LoweringMode mode : {nic::LoweringMode::kInline, nic::LoweringMode::kManaged}) {
    const Ticker ticker("lowering " + path);
    fits.push_back(nic::CheckFit(plan, {.mode = mode, .profile = profile, .node = {}}));
  }
  result["bounds"] = FitsJson(profile, fits);
  if (!json) {
    std::cout << Printable(path) << ": ";
    PrintFits(profile, fits, std::cout);
  }
  if (FitsSomehow(fits)) return {};
  return Rejected(fmt::format("does not fit device {} in any mode", profile.name), path);
}

/// "shape, match, ..."
std::string Rules() {
  std::vector<const char*> names;
  for (const Rule rule : kRules) names.push_back(Name(rule));
  return fmt::format("{}", fmt::join(names, ", "));
}

/// The rules that need the programs of all nodes, if some of them are not there.
std::vector<std::string> RulesNotChecked(const RolledPlan& plan) {
  std::vector<std::string> names;
  if (plan.programs.size() == plan.header.nodes) return names;
  for (const Rule rule :
       {Rule::kMatch, Rule::kAcyclic, Rule::kOrder, Rule::kReady, Rule::kWindow, Rule::kRounds})
    names.emplace_back(Name(rule));
  return names;
}

/// What was proved of the rolled plan of the file `path`, and what was not.
std::string ProofText(const RolledPlan& plan, const std::string& path, uint32_t last) {
  const std::string about = fmt::format(
      "{}, {}, {} rounds of k blocks, ready {}; every k up to {} was checked, and larger "
      "ones follow",
      Printable(plan.header.algorithm), Count(plan.header.nodes, "node"), ToString(plan.rounds),
      ToString(plan.header.ready), last);
  if (plan.programs.size() == plan.header.nodes)
    return fmt::format("{}: valid for every message size: {}\n", Printable(path), about);
  return fmt::format(
      "{}: right by itself for every message size: {}\n"
      "  proved: the programs of {} of {} nodes receive each block once, and before they send it\n"
      "  not proved: that they fit those of the other nodes ({}), which needs the file of all\n",
      Printable(path), about, plan.programs.size(), plan.header.nodes,
      fmt::join(RulesNotChecked(plan), ", "));
}

/// A rolled plan: for all sizes at once. Of a file with some programs, what prepost node asks of it
/// for one.
Status RunRolled(const std::string& path, const VerifyFlags& flags,
                 nlohmann::ordered_json* results) {
  const Result<RolledPlan> plan = ReadRolledPlanFile(path);
  const bool is_whole = plan.ok() && plan->programs.size() == plan->header.nodes;
  const Result<uint32_t> last = [&]() -> Result<uint32_t> {
    if (!plan.ok()) return plan.status();
    Ticker ticker("verifying " + path);
    const auto progress = [&](uint32_t checked, uint32_t all) {
      ticker.Say(fmt::format("verifying {}, {} of {} numbers of blocks", path, checked, all));
    };
    Result<uint32_t> settled =
        is_whole ? VerifyRolled(*plan, progress) : VerifyRolledPrograms(*plan, progress);
    if (!settled.ok()) return Rejected(settled.status().ToString(), path);
    return settled;
  }();
  results->push_back({{"plan", path}, {"valid", last.ok()}});
  if (!last.ok()) {
    results->back()["error"] = last.status().ToString();
    return last.status();
  }
  nlohmann::ordered_json& result = results->back();
  result["blocks_checked"] = *last;
  result["nodes"] = plan->header.nodes;
  result["programs"] = plan->programs.size();
  result["not_checked"] = RulesNotChecked(*plan);
  if (!flags.json) std::cout << ProofText(*plan, path, *last);
  return {};
}

/// One file; what is wrong with it goes to stdout, as that is the result asked for.
Status RunOne(const std::string& path, const VerifyFlags& flags, const nic::DeviceProfile* profile,
              nlohmann::ordered_json* results) {
  const Result<FileKind> kind = KindOf(path);
  if (kind.ok() && *kind == FileKind::kRolledPlan) {
    if (profile != nullptr) {
      return {StatusCode::kUsage,
              "--device-profile is for plans of one message size: prepost unroll makes one"};
    }
    return RunRolled(path, flags, results);
  }
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
    std::cout << Printable(path) << ": ";
    if (verdict.ok()) {
      std::cout << fmt::format("valid: {}, {}, {}, {}, {}, ready {}, all {} rules hold\n",
                               Printable(header.algorithm), Count(header.nodes, "node"),
                               Count(header.payload.blocks, "block"),
                               Count(plan->ops().size(), "op"), Count(header.rounds, "round"),
                               ToString(header.ready), std::size(kRules));
    } else {
      std::cout << fmt::format("not valid, {}\n{}", Count(verdict.findings, "finding"),
                               verdict.ToString());
    }
  }
  if (!verdict.ok()) return Rejected(Count(verdict.findings, "finding"), path);
  return profile == nullptr ? Status()
                            : CheckBounds(*plan, path, *profile, flags.json, results->back());
}

Status Run(const VerifyFlags& flags) {
  if (std::ranges::count(flags.paths, "-") > 1)
    return UsageError("stdin can be one of the plans, not several");
  std::optional<nic::DeviceProfile> profile;
  if (!flags.device_profile.empty()) {
    Result<nic::DeviceProfile> loaded = LoadDeviceProfile(flags.device_profile);
    if (!loaded.ok()) return loaded.status();
    profile = *std::move(loaded);
  }
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  std::vector<Status> failures;
  for (const std::string& path : flags.paths) {
    Status status = RunOne(path, flags, profile ? &*profile : nullptr, &results);
    if (!status.ok()) failures.push_back(std::move(status));
  }
  if (flags.json) PrintJson(results, std::cout);
  if (failures.empty()) return {};
  if (flags.paths.size() == 1) return failures.front();
  for (const Status& failure : failures) PrintFailure(failure);
  return Rejected(fmt::format("{} of {} plans are refused", failures.size(), flags.paths.size()));
}

}  // namespace

void AddVerify(CLI::App& app, Action* action) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App* command = app.add_subcommand("verify", "Check plans against the rules of a valid plan");
  command->footer(
      "Rules: " + Rules() +
      " (docs/plan.md).\n"
      "The first 20 findings are printed, in the order of the file. Exit code 1 when a plan is not "
      "valid.\n\n"
      "With --device-profile also rule bounds: what the plan needs of the nodes' NICs, inline and "
      "managed, beside what they\n"
      "have; queues longer than their rings, with their re-arms; and what does not fit. Exit code "
      "1 when it fits in no mode.\n\n"
      "A rolled plan is proved for every message size at once (docs/compiler.md). Of a file with "
      "one node's program it is\n"
      "said what holds of the node by itself and what was not looked at; exit code 0 when nothing "
      "is wrong with it.\n\n"
      "Examples:\n"
      "  prepost verify plan.json\n"
      "  prepost verify rolled.json\n"
      "  prepost verify shards/\n"
      "  prepost verify plan.json --device-profile tiny\n"
      "  prepost compile --nodes 8 --message-bytes 1MiB | prepost verify - --json");
  command->add_option("PLAN", flags->paths, "Plan files, - for stdin, or folders of shards")
      ->required();
  command
      ->add_option("--send-depth", flags->options.send_depth,
                   "Sends a channel can hold that are not delivered")
      ->type_name("S")
      ->check(WholeNumber(1, UINT32_MAX));
  command
      ->add_option("--recv-depth", flags->options.recv_depth, "Receives a channel can have posted")
      ->type_name("R")
      ->check(WholeNumber(1, UINT32_MAX));
  AddDeviceProfileFlag(*command, &flags->device_profile, "none");
  command->add_flag("--json", flags->json, "Print the verdicts as JSON");
  command->callback([flags, action] { *action = [flags] { return Run(*flags); }; });
}

}  // namespace prepost::tools
