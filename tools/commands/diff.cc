// SPDX-License-Identifier: Apache-2.0
//
// prepost diff: how two plans differ in what they mean.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "ir/analysis/plan_diff.h"
#include "planning/files/plan_file.h"
#include "planning/text/messages.h"
#include "planning/text/plan_text.h"
#include "tools/commands/commands.h"

namespace prepost::tools {
namespace {

struct DiffFlags {
  std::string a;
  std::string b;
  bool json = false;
};

void PrintDiffJson(const DiffFlags& flags, const PlanDiff& diff) {
  nlohmann::ordered_json sections = nlohmann::ordered_json::array();
  for (const DiffSection& section : diff.sections) {
    sections.push_back(
        {{"name", section.name}, {"count", section.count}, {"differences", section.differences}});
  }
  const nlohmann::ordered_json result = {{"a", flags.a},
                                         {"b", flags.b},
                                         {"same", diff.same()},
                                         {"verdict", diff.verdict},
                                         {"sections", sections}};
  PrintJson(result, std::cout);
}

void PrintDiff(const PlanDiff& diff) {
  std::cout << diff.verdict << "\n";
  for (const DiffSection& section : diff.sections) {
    std::cout << section.name << ": " << section.count << "\n";
    for (const std::string& difference : section.differences)
      std::cout << "  " << difference << "\n";
    if (section.count > section.differences.size())
      std::cout << "  and " << section.count - section.differences.size() << " more\n";
  }
}

Status Run(const DiffFlags& flags) {
  if (flags.a == "-" && flags.b == "-")
    return {StatusCode::kUsage, "stdin can be one of the plans, not both"};
  const Result<VerifiedPlan> a = LoadAnyPlan(flags.a);
  if (!a.ok()) return a.status();
  const Result<VerifiedPlan> b = LoadAnyPlan(flags.b);
  if (!b.ok()) return b.status();
  const PlanDiff diff = [&] {
    const Ticker ticker("comparing");
    return DiffPlans(*a, *b);
  }();
  if (flags.json) {
    PrintDiffJson(flags, diff);
  } else {
    PrintDiff(diff);
  }
  return diff.same() ? Status() : Rejected(fmt::format("{} and {} differ", flags.a, flags.b));
}

}  // namespace

void AddDiff(CLI::App& app, Action* action) {
  auto flags = std::make_shared<DiffFlags>();
  CLI::App* command = app.add_subcommand("diff", "Compare what two plans mean");
  command->footer(
      "The first line is the verdict. Then, as far as they differ: header; messages that only one "
      "plan has, as\n"
      "FROM>TO:BLOCK; order: what waits for what at a node; credits; rounds. Of each the first 20. "
      "How ops and channels\n"
      "are numbered makes no difference. Exit code 0 when the plans are the same, 1 when not.\n\n"
      "Examples:\n"
      "  prepost diff plan.json plan.json\n"
      "  prepost compile --nodes 8 --message image.raw --block-bytes 400kB --skip-pass thin | "
      "prepost diff plan.json - --json");
  command->add_option("A", flags->a, "Plan file, - for stdin")->required();
  command->add_option("B", flags->b, "Plan file, - for stdin")->required();
  command->add_flag("--json", flags->json, "Print the differences as JSON");
  command->callback([flags, action] { *action = [flags] { return Run(*flags); }; });
}

}  // namespace prepost::tools
