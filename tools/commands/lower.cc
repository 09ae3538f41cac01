// SPDX-License-Identifier: Apache-2.0
//
// prepost lower: turns a plan into the queue programs of its nodes' NICs, to read or to keep.
#include "backends/nic/program/lower.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "backends/nic/program/listing.h"
#include "backends/nic/program/listing_parse.h"
#include "backends/nic/program/op_labels.h"
#include "backends/nic/program/queue_program_file.h"
#include "backends/nic/validate/object_table.h"
#include "backends/registry.h"
#include "backends/triggered/deferred_program.h"
#include "ir/base/count.h"
#include "planning/files/named_file.h"
#include "planning/files/plan_file.h"
#include "planning/flags/lowering_flags.h"
#include "planning/flags/values.h"
#include "planning/report/program_report.h"
#include "planning/text/messages.h"
#include "planning/text/plan_text.h"
#include "tools/commands/commands.h"

namespace prepost::tools {
namespace {

struct LowerFlags {
  std::string plan;
  std::string from_list;
  std::optional<uint32_t> node;
  std::string output;
  LoweringFlags lowering;
  std::string device;  ///< "": NICs
  bool list = false;
  bool bytes = false;  ///< below each entry of the list
  bool json = false;
};

Result<nic::QueueProgram> LowerPlan(const LowerFlags& flags, const VerifiedPlan& plan) {
  Result<nic::LowerOptions> options = flags.lowering.ToOptions();
  if (!options.ok()) return options.status();
  if (flags.node) options->node = NodeId(*flags.node);
  Result<nic::QueueProgram> program = nic::Lower(plan, *options);
  if (!program.ok())
    return Status(program.status().code(), program.status().message(), NameOfInput(flags.plan));
  return program;
}

Result<nic::QueueProgram> ReadListing(const std::string& path) {
  Result<nic::QueueProgram> program = nic::QueueProgram();
  PREPOST_RETURN_IF_ERROR(WithInput(path, [&](std::istream& in, const std::string& name) {
    program = nic::ParseListing(in, name);
    return program.status();
  }));
  return program;
}

/// Names the nodes that a program has, if it lacks some of its plan.
std::string NoteOnMissingNodes(const nic::QueueProgram& program, const PlanHeader& header) {
  constexpr size_t kNodesShownMax = 8;
  std::string shown;
  for (size_t i = 0; i < std::min(program.nodes.size(), kNodesShownMax); ++i) {
    shown += fmt::format("{}{}", i == 0 ? "" : ", ", program.nodes[i].node.value);
  }
  if (program.nodes.size() > kNodesShownMax) shown += ", ...";
  return fmt::format(
      "{} of {} compared with the plan ({}); whether nodes wait for each other in a "
      "circle shows only when all are",
      program.nodes.size(), Count(header.nodes, "node"), shown);
}

/// What goes to stdout, or to a file: `plan` is null when there is none.
Status Write(const LowerFlags& flags, const VerifiedPlan* plan, const nic::QueueProgram& program) {
  if (!flags.output.empty()) {
    const bool binary = flags.output.ends_with(".bin");
    return WriteFile(flags.output, [&](std::ostream& out) {
      out << (binary ? nic::ToBinary(program) : nic::ToJson(program));
    });
  }
  if (flags.list) {
    std::cout << nic::List(*plan, program, flags.bytes);
    return {};
  }
  std::vector<ProfileFit> fits;
  if (plan != nullptr && flags.from_list.empty()) {
    Result<nic::LowerOptions> options = flags.lowering.ToOptions();
    if (!options.ok()) return options.status();
    if (flags.node) options->node = NodeId(*flags.node);
    const Ticker ticker("lowering for the shipped profiles");
    fits = FitsOf(*plan, *std::move(options));
  }
  if (flags.json) {
    PrintJson(ToJson(program, fits), std::cout);
  } else {
    Print(program, fits, std::cout);
  }
  return {};
}

/// A line about a node's deferred work, or all of it. Errors: those of lowering, and the
/// validator's.
Result<std::string> DeferredText(const VerifiedPlan& plan, NodeId node, bool is_list) {
  const auto program = triggered::LowerDeferred(plan, node);
  if (!program.ok()) return program.status();
  PREPOST_RETURN_IF_ERROR(triggered::ValidateDeferred(plan, *program));
  const std::string text = triggered::ListDeferred(plan, *program);
  return is_list ? text : text.substr(0, text.find('\n') + 1);
}

/// Deferred work of a provider of libfabric, to read.
Status PrintDeferredWork(const LowerFlags& flags) {
  const RegisteredKind& kind = KindOfDevice(flags.device);
  bool starts_work = IsLibraryDevice(flags.device) && kind.may_offload;
  if (starts_work && kind.kind != nullptr) {
    const Result<ListedDevice> device = FindListed(flags.device);
    starts_work = device.ok() && device->can_offload;
  }
  if (!starts_work) {
    return {StatusCode::kUsage,
            fmt::format("--device {}: expected a provider of libfabric that starts deferred work, "
                        "fabric:sockets; without --device it is NICs",
                        flags.device)};
  }
  const char* const unfit = flags.lowering.given() != nullptr ? flags.lowering.given()
                            : flags.bytes                     ? "--bytes"
                            : flags.json                      ? "--json"
                            : !flags.output.empty()           ? "-o"
                            : !flags.from_list.empty()        ? "--from-list"
                                                              : nullptr;
  if (unfit != nullptr)
    return {StatusCode::kUsage, fmt::format("{} is not for --device {}", unfit, flags.device)};
  if (flags.plan.empty()) return {StatusCode::kUsage, "PLAN is needed"};
  const Result<VerifiedPlan> plan = LoadPrepostedPlan(flags.plan);
  if (!plan.ok()) return plan.status();
  if (flags.node && *flags.node >= plan->header().nodes) {
    return Rejected(fmt::format("no node {}: the plan has nodes 0 to {}", *flags.node,
                                plan->header().nodes - 1));
  }
  for (uint32_t node = 0; node < plan->header().nodes; ++node) {
    if (flags.node && *flags.node != node) continue;
    const Result<std::string> text = DeferredText(*plan, NodeId(node), flags.list);
    if (!text.ok()) return {text.status().code(), text.status().message(), NameOfInput(flags.plan)};
    std::cout << *text;
  }
  return {};
}

Status Run(const LowerFlags& flags) {
  PREPOST_RETURN_IF_ERROR(flags.lowering.Check());
  if (!flags.device.empty()) return PrintDeferredWork(flags);
  if (!flags.from_list.empty() && flags.lowering.given() != nullptr) {
    return {StatusCode::kUsage, fmt::format("{} is for lowering, what --from-list reads is lowered",
                                            flags.lowering.given())};
  }
  if (flags.plan == "-" && flags.from_list == "-") {
    return {StatusCode::kUsage, "PLAN and --from-list cannot both be stdin"};
  }
  std::optional<VerifiedPlan> plan;
  if (!flags.plan.empty()) {
    Result<VerifiedPlan> loaded = LoadPrepostedPlan(flags.plan);
    if (!loaded.ok()) return loaded.status();
    plan = *std::move(loaded);
  } else if (flags.from_list.empty()) {
    return Status(StatusCode::kUsage, "PLAN or --from-list is needed");
  }
  Result<nic::QueueProgram> program =
      flags.from_list.empty() ? LowerPlan(flags, *plan) : ReadListing(flags.from_list);
  if (!program.ok()) return program.status();
  if (plan) {
    const Result<nic::ValidationReport> report = nic::ValidateProgram(*plan, *program);
    if (!report.ok()) return report.status();
    PREPOST_RETURN_IF_ERROR(report->ToStatus());
    nic::LabelOps(*plan, &*program);
    if (program->nodes.size() < plan->header().nodes && !flags.list) {
      PrintNote(NoteOnMissingNodes(*program, plan->header()));
    }
  }
  return Write(flags, plan ? &*plan : nullptr, *program);
}

}  // namespace

void AddLower(CLI::App& app, Action* action) {
  auto flags = std::make_shared<LowerFlags>();
  CLI::App* command = app.add_subcommand("lower", "Turn a plan into queue programs for NICs");
  command->footer(
      "Without -o one line per node is printed: its QPs, CQs, work-queue entries, WAITs and "
      "SEND_ENs among them, the\n"
      "doorbells that start it, re-arms, and the bytes of its rings. A plan that does not fit the "
      "device is refused with the\n"
      "numbers; queues longer than its rings are written in parts, and every part after the first "
      "is a re-arm. The bytes\n"
      "are read back and their order is compared with the plan's, always. Of NICs' programs a last "
      "line is about all nodes together, and says\n"
      "which shipped profiles (prepost profile) the plan fits.\n\n"
      "Examples:\n"
      "  prepost lower plan.json\n"
      "  prepost lower plan.json --node 1 --list\n"
      "  prepost lower plan.json --node 1 --list --bytes\n"
      "  prepost lower plan.json --mode managed --masters lane --node 1 --list\n"
      "  prepost lower plan.json --device-profile tiny\n"
      "  prepost lower plan.json --device fabric:sockets --node 1 --list\n"
      "  prepost lower plan.json -o queues.json\n"
      "  prepost lower plan.json --list > queues.txt\n"
      "  prepost lower plan.json --from-list queues.txt\n"
      "  prepost lower --from-list queues.txt -o queues.bin");
  command->add_option("PLAN", flags->plan, "Plan file, - for stdin");
  CLI::Option* node = command->add_option("--node", flags->node, "Only this node")
                          ->type_name("I")
                          ->check(NodeNumber());
  flags->lowering.AddTo(*command);
  command
      ->add_option("--device", flags->device,
                   "Deferred work of this provider of libfabric instead, fabric:sockets")
      ->type_name("NAME")
      ->check(NameOf("a device"));
  CLI::Option* list = command->add_flag("--list", flags->list, "Print every entry of every queue");
  command->add_flag("--bytes", flags->bytes, "With --list: the bytes of every entry, in hex")
      ->needs(list);
  CLI::Option* json =
      command->add_flag("--json", flags->json, "Print the lines per node as JSON")->excludes(list);
  command
      ->add_option(
          "--from-list", flags->from_list,
          "Read queue programs that --list printed, - for stdin, instead of lowering; with "
          "PLAN they are compared with it, and ops are the plan's, whatever stands behind ;")
      ->type_name("FILE")
      ->excludes(list)
      ->excludes(node);
  command
      ->add_option("-o,--output", flags->output,
                   "Write the queue programs: raw bytes if the name ends in .bin, else JSON")
      ->type_name("FILE")
      ->check(NameOf("a file"))
      ->excludes(list)
      ->excludes(json);
  command->callback([flags, action] { *action = [flags] { return Run(*flags); }; });
}

}  // namespace prepost::tools
