// SPDX-License-Identifier: Apache-2.0
//
// prepost unroll: a plan for every message size becomes the plan for one.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "compiler/roll.h"
#include "planning/files/named_file.h"
#include "planning/files/plan_file.h"
#include "planning/flags/play_flags.h"
#include "planning/flags/spec_flags.h"
#include "planning/text/messages.h"
#include "tools/commands/commands.h"

namespace prepost::tools {
namespace {

struct UnrollFlags {
  std::string path;
  MessageSize size;
  PlanOutput output;
};

Status Run(const UnrollFlags& flags) {
  PREPOST_RETURN_IF_ERROR(flags.output.Check());
  const Result<std::optional<uint64_t>> bytes = flags.size.Bytes();
  if (!bytes.ok()) return bytes.status();
  if (!*bytes) return {StatusCode::kUsage, "--message-bytes or --message is needed"};
  const Result<FileKind> kind = KindOf(flags.path);
  if (!kind.ok()) return kind.status();
  if (*kind != FileKind::kRolledPlan && *kind != FileKind::kSpec) {
    return Rejected("expected a rolled plan (prepost compile --message-bytes any)",
                    NameOfInput(flags.path));
  }
  const Result<RolledPlan> rolled = ReadRolledPlanFile(flags.path);
  if (!rolled.ok()) return rolled.status();
  PREPOST_RETURN_IF_ERROR(CheckSize(*rolled, **bytes, flags.size.flag()));
  const Result<VerifiedPlan> plan = [&] {
    const Ticker ticker("unrolling");
    return Unroll(*rolled, **bytes);
  }();
  if (!plan.ok()) return Rejected(plan.status().ToString(), NameOfInput(flags.path));
  return flags.output.Write(*plan);
}

}  // namespace

void AddUnroll(CLI::App& app, Action* action) {
  auto flags = std::make_shared<UnrollFlags>();
  CLI::App* command =
      app.add_subcommand("unroll", "Make the plan for one message size of a rolled plan");
  command->footer(
      "A rolled plan (prepost compile --message-bytes any) serves every message size. What comes "
      "out is the plan that\n"
      "compile makes for this size, verified.\n\n"
      "Examples:\n"
      "  prepost unroll rolled.json --message-bytes 10MiB -o plan.json\n"
      "  prepost unroll rolled.json --message image.raw --dump\n"
      "  prepost unroll rolled.json --message image.raw --encoding shards -o shards/");
  command->add_option("ROLLED", flags->path, "Rolled plan file, - for stdin")->required();
  flags->size.AddTo(*command, /*takes_any=*/false);
  flags->output.AddTo(*command);
  command->callback([flags, action] { *action = [flags] { return Run(*flags); }; });
}

}  // namespace prepost::tools
