// SPDX-License-Identifier: Apache-2.0
//
// prepost choose: what auto would be for algorithm, block size, readiness and send window, and what
// that was compared with.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "planning/flags/spec_flags.h"
#include "planning/report/choice_report.h"
#include "planning/text/messages.h"
#include "planning/text/plan_text.h"
#include "tools/commands/commands.h"

namespace prepost::tools {
namespace {

struct ChooseFlags {
  SpecInput input;
  bool json = false;
};

/// Another collective than a multicast.
Status RunCollective(const ChooseFlags& flags, const Spec& spec) {
  const auto candidates = flags.input.flags.CollectiveCandidatesFor(spec, flags.input.path);
  if (!candidates.ok()) return candidates.status();
  if (flags.json) {
    PrintJson(ToJson(WithImplied(spec), *candidates), std::cout);
  } else {
    Print(WithImplied(spec), *candidates, std::cout);
  }
  return {};
}

Status Run(const ChooseFlags& flags) {
  const Result<Spec> spec = flags.input.Read();
  if (!spec.ok()) return spec.status();
  if (spec->collective != CollectiveKind::kMulticast) return RunCollective(flags, *spec);
  const Result<Choice> choice = [&] {
    const Ticker ticker("choosing");
    return flags.input.flags.ChooseFor(*spec, flags.input.path, /*target=*/{},
                                       /*weighs_rule=*/true);
  }();
  if (!choice.ok()) return choice.status();
  Spec chosen = *spec;
  chosen.algorithm = choice->winner().algorithm;
  NoteOneRack(chosen);
  if (flags.json) {
    PrintJson(ToJson(*choice), std::cout);
  } else {
    Print(*choice, std::cout);
  }
  return {};
}

}  // namespace

void AddChoose(CLI::App& app, Action* action) {
  auto flags = std::make_shared<ChooseFlags>();
  CLI::App* command =
      app.add_subcommand("choose", "Show which algorithm and block size auto chooses, and why");
  command->footer(
      "A line per schedule, each with the block size that suits it best: rounds, the modelled "
      "time, "
      "how often the winner's\n"
      "that is, and what most of it goes into. With --algorithm or --block-bytes only what is left "
      "open is chosen. ~ marks\n"
      "schedules left out early. Where a rule decides, what would win without it is shown, too. "
      "docs/compiler.md tells the model.\n"
      "Of another collective a line for each schedule that it is chosen from, by the model of "
      "hosts "
      "and their connections.\n\n"
      "Examples:\n"
      "  prepost choose --nodes 16 --message-bytes 256MiB\n"
      "  prepost choose --topology examples/topologies/4x8.json --message-bytes 1MiB --json\n"
      "  prepost choose --nodes 8 --message-bytes 4KiB --rules examples/rules/small.json\n"
      "  prepost choose --nodes 100 --message-bytes 1GiB --algorithm chain --rate 25Gbit/s "
      "--latency 5us\n"
      "  prepost choose --collective allreduce --combine sum:float32 --nodes 6 --message-bytes "
      "64MiB\n"
      "  prepost choose --collective alltoall --nodes 16 --message-bytes 1KiB --profile fractus");
  flags->input.AddTo(*command, /*takes_any=*/false);
  flags->input.flags.AddCollectivesTo(*command);
  for (const char* open : {"--block-bytes", "--algorithm"}) {
    CLI::Option* option = command->get_option(open);
    const std::string text = option->get_description();
    option->description(text.substr(0, text.rfind('[')) + "[auto]");
  }
  command->add_flag("--json", flags->json, "Print it all as JSON");
  command->callback([flags, action] { *action = [flags] { return Run(*flags); }; });
}

}  // namespace prepost::tools
