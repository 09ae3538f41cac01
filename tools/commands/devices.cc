// SPDX-License-Identifier: Apache-2.0
//
// prepost devices: what could execute queue programs here, and why not.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backends/registry.h"
#include "planning/text/plan_text.h"
#include "tools/commands/commands.h"

namespace prepost::tools {
namespace {

void PrintDevicesJson(const DeviceList& list) {
  nlohmann::ordered_json devices = nlohmann::ordered_json::array();
  for (const ListedDevice& line : list.devices) {
    devices.push_back({{"name", line.name},
                       {"kind", line.is_hardware ? "hardware" : "software"},
                       {"can_offload", line.can_offload},
                       {"why", line.why}});
  }
  nlohmann::ordered_json json = {{"devices", devices}};
  if (!list.no_hardware.empty()) json["hardware"] = list.no_hardware;
  PrintJson(json, std::cout);
}

void PrintDevices(const DeviceList& list) {
  size_t width = 0;
  for (const ListedDevice& line : list.devices) width = std::max(width, line.name.size());
  std::cout << fmt::format("{:<{}}  kind      offload  what it has, or lacks\n", "device", width);
  for (const ListedDevice& line : list.devices) {
    std::cout << fmt::format("{:<{}}  {}  {:<7}  {}\n", line.name, width,
                             line.is_hardware ? "hardware" : "software",
                             line.can_offload ? "yes" : "no", line.why);
  }
  if (!list.no_hardware.empty()) std::cout << "no hardware: " << list.no_hardware << "\n";
}

}  // namespace

void AddDevices(CLI::App& app, Action* action) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("devices", "List what could execute queue programs, and why not");
  command->footer(
      "One line per device: its name, whether it is hardware, whether it can be preposted to "
      "(offload), and what it has\n"
      "or what is missing: a capability of the NIC, a permission, an active port. The first port "
      "counts. Nothing is left\n"
      "on a device. `run` carries a plan on the software devices, `node` on hardware, which has "
      "not "
      "been seen yet.\n\n"
      "Examples:\n"
      "  prepost devices\n"
      "  prepost devices --json");
  command->add_flag("--json", *json, "Print the list as JSON");
  command->callback([json, action] {
    *action = [json] {
      (*json ? PrintDevicesJson : PrintDevices)(ListDevices());
      return Status();
    };
  });
}

}  // namespace prepost::tools
