// SPDX-License-Identifier: Apache-2.0
//
// prepost lower: turns a plan into the queue programs of its nodes' NICs, to look at or to keep.
#include "prepost/backends/nic/lower.h"

#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "prepost/backends/nic/listing.h"
#include "prepost/backends/nic/object_table.h"
#include "prepost/backends/nic/queue_program_file.h"
#include "tools/command.h"

namespace prepost::tools {
namespace {

struct LowerFlags {
  std::string plan;
  std::string mode = "inline";
  std::optional<uint32_t> node;
  std::string output;
  std::string masters = "node";
  nic::DeviceProfile profile;
  bool list = false;
  bool json = false;
};

nlohmann::ordered_json SummaryJson(const nic::QueueProgram& program) {
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (const nic::NodeProgram& node : program.nodes) {
    nodes.push_back({{"node", node.node.value},
                     {"qps", node.qps.size()},
                     {"cqs", node.cqs.size()},
                     {"wqes", node.wqes()},
                     {"waits", node.waits()},
                     {"send_enables", node.enables()},
                     {"doorbells", node.doorbells()},
                     {"rearms", node.rearms()},
                     {"ring_bytes", node.ring_bytes()}});
  }
  return {{"mode", nic::Name(program.mode)}, {"nodes", nodes}};
}

Status Run(const LowerFlags& flags) {
  PREPOST_RETURN_IF_ERROR(CheckWord("--mode", flags.mode, {"inline", "managed"}));
  const Result<Plan> plan = LoadPlan(flags.plan);
  if (!plan.ok()) return plan.status();
  nic::LowerOptions options{.profile = flags.profile, .node = std::nullopt};
  if (flags.mode == "managed") options.mode = nic::LoweringMode::kManaged;
  if (flags.node) options.node = NodeId(*flags.node);
  const Result<nic::QueueProgram> program = nic::Lower(*plan, options);
  if (!program.ok()) return Rejected(program.status().message(), flags.plan);
  const Result<nic::ValidationReport> report = nic::ValidateProgram(*plan, *program);
  if (!report.ok()) return report.status();
  PREPOST_RETURN_IF_ERROR(report->ToStatus());
  if (!flags.output.empty()) {
    const bool binary = flags.output.ends_with(".bin");
    return WriteFile(flags.output, [&](std::ostream& out) {
      out << (binary ? nic::ToBinary(*program) : nic::ToJson(*program));
    });
  }
  if (flags.json) {
    std::cout << SummaryJson(*program).dump(2) << "\n";
    return {};
  }
  for (const nic::NodeProgram& node : program->nodes) {
    std::cout << (flags.list ? nic::List(*plan, node) : nic::Summary(node) + "\n");
  }
  return {};
}

}  // namespace

void AddLower(CLI::App& app, Action* action) {
  auto flags = std::make_shared<LowerFlags>();
  CLI::App* command = app.add_subcommand("lower", "Turn a plan into queue programs for NICs");
  command->footer(
      "Without -o one line per node is printed: its QPs, CQs, work-queue entries, WAITs among "
      "them, "
      "and the doorbells that start it. A plan that does not fit the rings is refused with the "
      "numbers. The bytes are read back and their order is compared with the plan's, always.\n\n"
      "Examples:\n"
      "  prepost lower plan.json\n"
      "  prepost lower plan.json --node 1 --list\n"
      "  prepost lower plan.json -o queues.json");
  command->add_option("PLAN", flags->plan, "Plan file, - for stdin")->required();
  command->add_option("--mode", flags->mode, "How queues are driven: inline or managed [inline]")
      ->type_name("MODE");
  command->add_option("--node", flags->node, "Only this node")->type_name("I");
  command->add_option("--sq-wqebbs", flags->profile.sq_wqebbs, "Basic blocks of a send queue")
      ->check(CLI::Range(1u, UINT32_MAX))
      ->capture_default_str();
  command->add_option("--rq-wqes", flags->profile.rq_wqes, "Entries of a receive queue")
      ->check(CLI::Range(1u, UINT32_MAX))
      ->capture_default_str();
  command->add_option("--cq-entries", flags->profile.cq_entries, "Entries of a completion queue")
      ->check(CLI::Range(1u, UINT32_MAX))
      ->capture_default_str();
  CLI::Option* list = command->add_flag("--list", flags->list, "Print every entry of every queue");
  CLI::Option* json =
      command->add_flag("--json", flags->json, "Print the lines per node as JSON")->excludes(list);
  command
      ->add_option("-o,--output", flags->output,
                   "Write the queue programs: raw bytes if the name ends in .bin, else JSON")
      ->type_name("FILE")
      ->excludes(list)
      ->excludes(json);
  command->callback([flags, action] { *action = [flags] { return Run(*flags); }; });
}

}  // namespace prepost::tools
