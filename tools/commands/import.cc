// SPDX-License-Identifier: Apache-2.0
//
// prepost import: a broadcast in the form of another tool becomes a verified plan.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "compiler/pass_manager.h"
#include "ir/exchange/goal_reader.h"
#include "tools/commands/commands.h"
#include "tools/flags/named_file.h"
#include "tools/flags/plan_file.h"
#include "tools/flags/values.h"
#include "tools/report/messages.h"

namespace prepost::tools {
namespace {

struct ImportFlags {
  std::string path;
  PlanOutput output;
  std::optional<uint32_t> root;
  std::string block_bytes;
  std::string ready = "barrier";
  std::string send_window = "none";
};

/// What the verifier finds, at the lines of the GOAL text.
Status VerifyAtLines(const GoalPlan& imported) {
  const Verdict verdict = Verify(imported.plan);
  if (verdict.ok()) return {};
  std::string text;
  for (const Diagnostic& diagnostic : verdict.diagnostics)
    text += (text.empty() ? "" : "\n  ") + imported.AtLine(diagnostic).ToString();
  if (verdict.findings > verdict.diagnostics.size())
    text += fmt::format("\n  and {} more", verdict.findings - verdict.diagnostics.size());
  return Rejected(std::move(text));
}

Result<GoalPlan> Read(const ImportFlags& flags, const GoalOptions& options) {
  std::optional<GoalPlan> imported;
  PREPOST_RETURN_IF_ERROR(
      WithInput(flags.path, [&](std::istream& in, const std::string& name) -> Status {
        const Ticker ticker("reading " + flags.path);
        Result<GoalPlan> read = ReadGoal(in, name, options);
        if (!read.ok()) return read.status();
        imported = *std::move(read);
        return {};
      }));
  PREPOST_RETURN_IF_ERROR(VerifyAtLines(*imported));
  return *std::move(imported);
}

Status Run(const ImportFlags& flags) {
  PREPOST_RETURN_IF_ERROR(flags.output.Check());
  GoalOptions options{.root = flags.root, .block_bytes = {}};
  if (!flags.block_bytes.empty()) {
    const Result<uint64_t> bytes = ParseSize(flags.block_bytes);
    const Status status = bytes.ok() ? MakePayload(0, *bytes).status() : bytes.status();
    if (!status.ok()) return {StatusCode::kUsage, "--block-bytes: " + status.message()};
    options.block_bytes = *bytes;
  }
  const Result<SpecReady> ready = ParseReady(flags.ready);
  if (!ready.ok()) return {StatusCode::kUsage, "--ready: " + ready.status().message()};
  const Result<SpecSendWindow> send_window = ParseSendWindow(flags.send_window);
  if (!send_window.ok())
    return {StatusCode::kUsage, "--send-window: " + send_window.status().message()};

  Result<GoalPlan> imported = Read(flags, options);
  if (!imported.ok()) return imported.status();
  const CompileOptions compile_options;
  PassManager passes(compile_options);
  passes.AddAll(*ready, *send_window);
  const Result<VerifiedPlan> plan = passes.Run(std::move(imported->plan));
  if (!plan.ok()) return plan.status();
  PREPOST_RETURN_IF_ERROR(flags.output.Write(*plan));
  for (const std::string& note : imported->notes)
    PrintNote(fmt::format("{}: {}", imported->name, note));
  return {};
}

}  // namespace

void AddImport(CLI::App& app, Action* action) {
  auto flags = std::make_shared<ImportFlags>();
  CLI::App* command = app.add_subcommand("import", "Make a plan of a GOAL broadcast");
  command->footer(
      "Reads the GOAL text of a broadcast, written by prepost export, by Schedgen or by hand: "
      "finds "
      "the root, the blocks and\n"
      "their routes, verifies the plan, and gives it the readiness that --ready and --send-window "
      "ask for.\n\n"
      "Examples:\n"
      "  prepost import examples/goal/binomial-8.goal -o tree.json\n"
      "  prepost import examples/goal/chain-4.goal --ready window=1 --send-window 1 -o chain.json\n"
      "  prepost export plan.json --format goal | prepost import - -o again.json");
  command->add_option("FILE", flags->path, "GOAL text, - for stdin")->required();
  flags->output.AddTo(*command);
  command
      ->add_option("--root", flags->root,
                   "The rank that has the message [the one that receives nothing]")
      ->type_name("R")
      ->check(NodeNumber());
  command
      ->add_option("--block-bytes", flags->block_bytes,
                   "Size of a full block, where a single block leaves it open [the largest]")
      ->type_name("B");
  command
      ->add_option("--ready", flags->ready,
                   "How senders know that receives are posted: auto, barrier, channel, window=W, "
                   "retry [barrier]")
      ->type_name("MODE");
  command
      ->add_option("--send-window", flags->send_window,
                   "Block sends of a node in flight: auto, W or none [none]")
      ->type_name("W");
  command->callback([flags, action] { *action = [flags] { return Run(*flags); }; });
}

}  // namespace prepost::tools
