// SPDX-License-Identifier: Apache-2.0
//
// prepost compile: a spec, from a file or flags, becomes a verified plan.
#include "compiler/compile.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "compiler/pass_manager.h"
#include "compiler/roll.h"
#include "compiler/rounds/rounds_reader.h"
#include "compiler/schedules/node_order.h"
#include "compiler/verify_rolled.h"
#include "planning/files/named_file.h"
#include "planning/files/plan_file.h"
#include "planning/flags/spec_flags.h"
#include "planning/flags/values.h"
#include "planning/text/messages.h"
#include "tools/commands/commands.h"

namespace prepost::tools {
namespace {

struct CompileFlags {
  SpecInput input;
  std::string rounds;  ///< a file
  std::optional<uint32_t> node;
  PlanOutput output;
  bool show_order = false;
  CompileOptions options;
};

/// A line per vertex: the node, and with a topology its host and rack.
void PrintOrder(const Spec& spec, std::ostream& out) {
  const NodeOrder order = OrderNodes(spec);
  out << fmt::format("{:>7}  {:>7}{}\n", "vertex", "node", spec.topology ? "  host (rack)" : "");
  for (size_t vertex = 0; vertex < order.node_at.size(); ++vertex) {
    const uint32_t node = order.node_at[vertex].value;
    out << fmt::format("{:>7}  {:>7}", vertex, node);
    if (spec.topology) {
      const Network::Node& host = spec.topology->nodes[node];
      out << fmt::format("  {} ({})", host.name, spec.topology->racks[host.rack].name);
    }
    out << "\n";
  }
}

/// What --show-order prints; whether that is all, as the plan would be in the same place.
bool ShowOrder(const CompileFlags& flags, const Spec& spec) {
  if (!flags.show_order) return false;
  PrintOrder(spec, std::cout);
  return flags.output.path == "-";
}

/// The plan for every message size.
Status RunAny(const CompileFlags& flags) {
  const CompileOptions& options = flags.options;
  if (options.time_passes || !options.skip_passes.empty() || !options.print_before.empty() ||
      !options.print_after.empty()) {
    return {StatusCode::kUsage, "passes run when a plan for any size is unrolled, not before"};
  }
  PREPOST_RETURN_IF_ERROR(flags.output.CheckRolled());
  const Result<Spec> spec = flags.input.flags.ToSpecForAnySize(flags.input.path);
  if (!spec.ok()) return spec.status();
  if (ShowOrder(flags, *spec)) return {};
  std::optional<NodeId> only;
  if (flags.node) only = NodeId(*flags.node);
  const Result<RolledPlan> plan = Roll(*spec, only);
  if (!plan.ok()) return flags.input.flags.Locate(plan.status(), *spec, flags.input.path);
  // What nobody could verify later is not written.
  if (const Result<uint32_t> last = BlocksThatSettle(*plan); !last.ok()) return last.status();
  return flags.output.Write(*plan);
}

/// What a file of rounds is compiled without.
Status CheckBesideRounds(const CompileFlags& flags) {
  const auto refuse = [](const char* flag, const char* reason) {
    return Status(StatusCode::kUsage, fmt::format("{}: {}", flag, reason));
  };
  if (!flags.input.path.empty())
    return refuse("--rounds", "is there instead of a spec; flags say what a spec would");
  if (flags.input.size.is_any())
    return refuse("--message-bytes",
                  "rounds are for as many blocks as they name, not for any size");
  if (flags.show_order)
    return refuse("--show-order", "the rounds name the nodes themselves, so none are placed");
  return {};
}

/// The plan of a file of rounds.
Status RunRounds(CompileFlags& flags) {
  const Result<std::optional<uint64_t>> bytes = flags.input.size.Bytes();
  if (!bytes.ok()) return bytes.status();
  const Result<RoundsRequest> request = flags.input.flags.ToRounds(*bytes);
  if (!request.ok()) return request.status();
  // What of the flags is wrong is named as in a spec.
  std::string file;
  const auto locate = [&](const Status& status) {
    if (status.where().starts_with(file)) return status;
    return flags.input.flags.Locate(status, {.message_bytes = bytes->value_or(0)}, "");
  };
  const auto read = [&](std::istream& in, const std::string& name,
                        std::vector<std::string>* warnings) {
    const Ticker ticker("reading " + name);
    file = name;
    Result<RoundsPlan> plan = ReadRounds(in, name, request->options, warnings);
    return plan.ok() ? std::move(plan) : Result<RoundsPlan>(locate(plan.status()));
  };
  Result<RoundsPlan> rounds = ReadWith(read, flags.rounds);
  if (!rounds.ok()) return rounds.status();
  flags.options.log = &std::cerr;
  const Result<VerifiedPlan> plan = [&] {
    const Ticker ticker("compiling");
    return CompletePlan(std::move(rounds->plan), request->ready, request->send_window,
                        flags.options, rounds->where_of);
  }();
  if (!plan.ok()) return locate(plan.status());
  PREPOST_RETURN_IF_ERROR(flags.output.Write(*plan));
  for (const std::string& note : rounds->notes) PrintNote(note);
  return {};
}

Status Run(CompileFlags& flags) {
  if (!flags.rounds.empty()) PREPOST_RETURN_IF_ERROR(CheckBesideRounds(flags));
  if (flags.input.size.is_any()) return RunAny(flags);
  PREPOST_RETURN_IF_ERROR(flags.output.Check());
  if (flags.node) {
    return {StatusCode::kUsage,
            "--node makes one node's program for every size: add "
            "--message-bytes any"};
  }
  if (!flags.rounds.empty()) return RunRounds(flags);
  const Result<Spec> spec = flags.input.ToSpec();
  if (!spec.ok()) return spec.status();
  if (ShowOrder(flags, *spec)) return {};
  flags.options.log = &std::cerr;
  const Result<VerifiedPlan> plan = [&] {
    const Ticker ticker("compiling");
    return Compile(*spec, flags.options);
  }();
  if (!plan.ok()) return plan.status();
  return flags.output.Write(*plan);
}

}  // namespace

void AddCompile(CLI::App& app, Action* action) {
  auto flags = std::make_shared<CompileFlags>();
  CLI::App* command = app.add_subcommand(
      "compile", "Compile a spec into a plan, verified but for its proof for any size");
  command->footer(
      "Flags win over the spec file. The plan is verified after the schedule and after every pass "
      "(ready, send_window, "
      "thin).\n--message-bytes any makes a plan for every size, whose form alone is checked: "
      "prepost "
      "verify proves it.\nWith --rounds the file is the schedule, and says how many nodes and "
      "blocks there "
      "are "
      "(docs/compiler.md).\n\n"
      "Examples:\n"
      "  prepost compile --nodes 8 --message image.raw -o plan.json\n"
      "  prepost compile --nodes 13 --message-bytes 10MiB --algorithm chain --ready channel "
      "--dump\n"
      "  prepost compile examples/specs/pipeline-8.json --print-after thin -o plan.json\n"
      "  prepost compile --topology examples/topologies/4x8.json --algorithm rack_circulant "
      "--message image.raw -o plan.json\n"
      "  prepost compile --topology examples/topologies/slow-node.json --root 3 --message-bytes "
      "1MiB --show-order\n"
      "  prepost compile --nodes 100 --message image.raw --algorithm auto --block-bytes auto -o "
      "plan.json\n"
      "  prepost compile --nodes 64 --message-bytes 100MiB --algorithm chain --encoding shards -o "
      "shards/\n"
      "  prepost compile --collective allgather --part-bytes 4KiB,0,1MiB,7 -o allgatherv.json\n"
      "  prepost compile --collective allreduce --combine sum:float32 --nodes 8 --message-bytes "
      "64MiB "
      "-o plan.json\n"
      "  prepost compile --rounds examples/rounds/ring-4.txt --message image.raw -o plan.json\n"
      "  prepost compile --rounds examples/rounds/exchange-4.txt --message-bytes 64MiB -o "
      "plan.json\n"
      "  prepost compile --nodes 1000 --message-bytes any -o rolled.json\n"
      "  prepost compile --nodes 65536 --message-bytes any --node 7 --dump");
  flags->input.AddTo(*command, /*takes_any=*/true);
  flags->input.flags.AddCollectivesTo(*command);
  command
      ->add_option("--rounds", flags->rounds,
                   "File with a schedule of your own, - for stdin: a line per round, a transfer is "
                   "FROM>TO:BLOCK, or FROM>TO+BLOCK to combine; instead of --algorithm")
      ->type_name("FILE")
      ->check(NameOf("a file"))
      ->group(kSpecGroup);
  command
      ->add_option("--node", flags->node,
                   "Only this node's program; needs --message-bytes any, and no other node's")
      ->type_name("I")
      ->check(NodeNumber())
      ->group(kSpecGroup);
  flags->output.AddTo(*command);
  command->add_flag("--show-order", flags->show_order,
                    "Print which node stands at which place of the schedule; the plan is written "
                    "only with -o");
  const std::string passes = "Passes";
  command->add_option("--skip-pass", flags->options.skip_passes, "Leave this pass out")
      ->type_name("PASS")
      ->allow_extra_args(false)
      ->group(passes);
  command
      ->add_option("--print-before", flags->options.print_before,
                   "Dump the plan before this pass, or all, to stderr")
      ->type_name("PASS")
      ->allow_extra_args(false)
      ->group(passes);
  command
      ->add_option("--print-after", flags->options.print_after,
                   "Dump the plan after this pass, or all, to stderr")
      ->type_name("PASS")
      ->allow_extra_args(false)
      ->group(passes);
  command
      ->add_flag("--time-passes", flags->options.time_passes,
                 "Time each pass and verification, to stderr")
      ->group(passes);
  command->callback([flags, action] { *action = [flags] { return Run(*flags); }; });
}

}  // namespace prepost::tools
