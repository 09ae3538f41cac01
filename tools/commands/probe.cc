// SPDX-License-Identifier: Apache-2.0
//
// prepost probe: asks a device what no source says, and prints what it did.
#include "backends/nic/host/probe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backends/emulated/fabric.h"
#include "backends/registry.h"
#include "ir/base/near_name.h"
#include "ir/version.h"
#include "planning/flags/values.h"
#include "planning/text/plan_text.h"
#include "tools/commands/commands.h"

namespace prepost::tools {
namespace {

struct ProbeFlags {
  std::string device;
  bool json = false;
};

void PrintTable(const std::vector<nic::ProbeAnswer>& answers, std::ostream& out) {
  size_t question = 0;
  size_t experiment = 0;
  for (const nic::ProbeAnswer& answer : answers) {
    question = std::max(question, answer.question.size());
    experiment = std::max(experiment, answer.experiment.size());
  }
  out << fmt::format("    {:<{}}  {:<{}}  what was seen\n", "question", question, "experiment",
                     experiment);
  for (const nic::ProbeAnswer& answer : answers) {
    out << fmt::format("{}  {:<{}}  {:<{}}  {}\n", answer.id, answer.question, question,
                       answer.experiment, experiment, answer.seen);
  }
}

void PrintAnswersJson(const std::string& device, const std::vector<nic::ProbeAnswer>& answers,
                      std::ostream& out) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const nic::ProbeAnswer& answer : answers) {
    list.push_back({{"id", answer.id},
                    {"question", answer.question},
                    {"experiment", answer.experiment},
                    {"answered", answer.is_answered},
                    {"seen", answer.seen}});
  }
  const nlohmann::ordered_json report = {
      {"generator", fmt::format("prepost {}", kVersion)}, {"device", device}, {"answers", list}};
  PrintJson(report, out);
}

using Answers = std::vector<nic::ProbeAnswer>;

Result<Answers> ProbeSoftware(const SoftwareDevice& device) {
  emulated::Fabric fabric(/*nodes=*/1, {});
  if (device.make) PREPOST_RETURN_IF_ERROR(fabric.MakeDevices(device.make));
  return nic::Probe(
      {.device = fabric.device(NodeId(0)), .settle = [&fabric] { fabric.RunUntilIdle(); }});
}

Result<Answers> ProbeHardware(const std::string& name) {
  const auto device = OpenCard(name);
  if (!device.ok()) return device.status();
  return nic::Probe({.device = **device});
}

Status Run(const ProbeFlags& flags) {
  const std::vector<std::string> software = SoftwareDeviceNames();
  const bool is_software = std::ranges::count(software, flags.device) != 0;
  if (!is_software && !DidYouMean(flags.device, software).empty()) {
    return CheckWord("--device", flags.device, software);
  }
  const Result<Answers> answers =
      is_software ? ProbeSoftware(FindSoftwareDevice(flags.device)) : ProbeHardware(flags.device);
  if (!answers.ok()) return answers.status();
  if (flags.json) {
    PrintAnswersJson(flags.device, *answers, std::cout);
  } else {
    PrintTable(*answers, std::cout);
  }
  return {};
}

}  // namespace

void AddProbe(CLI::App& app, Action* action) {
  auto flags = std::make_shared<ProbeFlags>();
  CLI::App* command =
      app.add_subcommand("probe", "Ask a device what no source says about its queues");
  command->footer(
      "Runs small experiments on loopback queues of the device and prints a table: the question, "
      "the experiment, and\n"
      "what was seen: a WQE passes (its CQE came), is refused (an error CQE, with the syndrome), "
      "or holds (none came in\n"
      "time). It takes seconds at most and moves no data of anybody. It has not been seen on "
      "hardware yet: please send\n"
      "the table of a real card to the project.\n\n"
      "Examples:\n"
      "  prepost probe --device emulated\n"
      "  prepost probe --device mlx5:emulated\n"
      "  prepost probe --device emulated --json\n"
      "  prepost probe --device mlx5_0");
  command
      ->add_option("--device", flags->device,
                   fmt::format("{}, or a NIC of prepost devices, such as mlx5_0",
                               fmt::join(SoftwareDeviceNames(), ", ")))
      ->type_name("NAME")
      ->check(NameOf("a device"))
      ->required();
  command->add_flag("--json", flags->json, "Print the answers as JSON");
  command->callback([flags, action] { *action = [flags] { return Run(*flags); }; });
}

}  // namespace prepost::tools
