// SPDX-License-Identifier: Apache-2.0
//
// prepost import: a collective in the form of another tool becomes a verified plan.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "compiler/pass_manager.h"
#include "compiler/spec.h"
#include "ir/exchange/goal_reader.h"
#include "planning/files/named_file.h"
#include "planning/files/plan_file.h"
#include "planning/flags/spec_flags.h"
#include "planning/flags/values.h"
#include "planning/text/messages.h"
#include "tools/commands/commands.h"

namespace prepost::tools {
namespace {

struct ImportFlags {
  std::string path;
  PlanOutput output;
  std::optional<std::string> collective, combine;
  std::optional<uint32_t> root;
  std::string block_bytes, message_bytes;
  std::string ready = "barrier";
  std::string send_window = "none";
};

Result<GoalPlan> Read(const ImportFlags& flags, const GoalOptions& options) {
  std::optional<GoalPlan> imported;
  PREPOST_RETURN_IF_ERROR(
      WithInput(flags.path, [&](std::istream& in, const std::string& name) -> Status {
        const Ticker ticker("reading " + flags.path);
        Result<GoalPlan> read = ReadGoal(in, name, options);
        if (!read.ok() && read.status().where() == "/combine")
          return Rejected(read.status().message(), "--combine");
        if (!read.ok()) return read.status();
        imported = *std::move(read);
        return {};
      }));
  return *std::move(imported);
}

Status WrongFlag(const char* flag, const Status& status) {
  return {StatusCode::kUsage, fmt::format("{}: {}", flag, status.message())};
}

Result<GoalOptions> GoalOptionsOf(const ImportFlags& flags) {
  GoalOptions options{.root = flags.root, .block_bytes = {}, .combine = {}, .message_bytes = {}};
  if (flags.collective) {
    const Result<CollectiveKind> kind = ParseCollective(*flags.collective);
    if (!kind.ok()) return WrongFlag("--collective", kind.status());
    options.collective = *kind;
  }
  if (flags.combine) {
    const Result<Combine> combine = ParseCombine(*flags.combine);
    if (!combine.ok()) return WrongFlag("--combine", combine.status());
    options.combine = *combine;
  }
  if (!flags.block_bytes.empty()) {
    const Result<uint64_t> bytes = ParseSize(flags.block_bytes);
    const Status status = bytes.ok() ? MakePayload(0, *bytes).status() : bytes.status();
    if (!status.ok()) return WrongFlag("--block-bytes", status);
    options.block_bytes = *bytes;
  }
  if (!flags.message_bytes.empty()) {
    if (options.collective == CollectiveKind::kMulticast) {
      return WrongFlag("--message-bytes",
                       Rejected("the messages of a broadcast say it; it is for other collectives"));
    }
    const Result<uint64_t> bytes = ParseMessageBytes("--message-bytes", flags.message_bytes);
    if (!bytes.ok()) return bytes.status();
    options.message_bytes = *bytes;
  }
  return options;
}

Status Run(const ImportFlags& flags) {
  PREPOST_RETURN_IF_ERROR(flags.output.Check());
  const Result<GoalOptions> options = GoalOptionsOf(flags);
  if (!options.ok()) return options.status();
  const Result<SpecReady> ready = ParseReady(flags.ready);
  if (!ready.ok()) return WrongFlag("--ready", ready.status());
  const Result<SpecSendWindow> send_window = ParseSendWindow(flags.send_window);
  if (!send_window.ok()) return WrongFlag("--send-window", send_window.status());

  Result<GoalPlan> imported = Read(flags, *options);
  if (!imported.ok()) return imported.status();
  const CompileOptions compile_options;
  const auto where_of = [&](const Plan& plan, const Diagnostic& finding) {
    const std::string where = imported->AtLine(plan, finding).where;
    return where == finding.where ? imported->name : where;
  };
  const Result<VerifiedPlan> plan =
      CompletePlan(std::move(imported->plan), *ready, *send_window, compile_options, where_of);
  if (!plan.ok()) return plan.status();
  PREPOST_RETURN_IF_ERROR(flags.output.Write(*plan));
  for (const std::string& note : imported->notes)
    PrintNote(fmt::format("{}: {}", imported->name, note));
  return {};
}

}  // namespace

void AddImport(CLI::App& app, Action* action) {
  auto flags = std::make_shared<ImportFlags>();
  CLI::App* command = app.add_subcommand("import", "Make a plan of a GOAL text");
  command->footer(
      "Reads the GOAL text of a broadcast or, with --collective, of another collective, written by "
      "prepost export, by Schedgen or by hand:\n"
      "finds the root, the blocks and their routes, verifies the plan, and gives it the readiness "
      "that --ready and --send-window ask for.\n"
      "In a collective that combines, a recv that a calc requires is combined with what its rank "
      "has.\n\n"
      "Examples:\n"
      "  prepost import examples/goal/binomial-8.goal -o tree.json\n"
      "  prepost import examples/goal/chain-4.goal --ready window=1 --send-window 1 -o chain.json\n"
      "  prepost import examples/goal/allreduce-4.goal --collective allreduce --combine "
      "sum:float32 -o "
      "sum.json\n"
      "  prepost export plan.json --format goal | prepost import - -o again.json");
  command->add_option("FILE", flags->path, "GOAL text, - for stdin")->required();
  flags->output.AddTo(*command);
  command
      ->add_option("--collective", flags->collective,
                   "What the text is of: multicast, reduce, allreduce, reduce_scatter, allgather, "
                   "gather, scatter, alltoall or barrier [multicast]")
      ->type_name("C");
  command
      ->add_option("--combine", flags->combine,
                   "What calcs of a reduce, allreduce or reduce_scatter do to elements of which "
                   "type, such as sum:float32")
      ->type_name("OP:TYPE");
  command
      ->add_option("--root", flags->root,
                   "The rank that has, or gets, the message [the one that receives, or sends, "
                   "nothing]")
      ->type_name("R")
      ->check(NodeNumber());
  command
      ->add_option("--block-bytes", flags->block_bytes,
                   "Size of a full block, where a single block or ranges of blocks leave it open "
                   "[the largest]")
      ->type_name("B");
  command
      ->add_option("--message-bytes", flags->message_bytes,
                   "Size of the message, or of a part of it, where ranges of blocks leave it open; "
                   "not of a broadcast [found]")
      ->type_name("M");
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
