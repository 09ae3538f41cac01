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

#include "backends/mlx5/rdma_core.h"
#include "backends/mlx5/survey.h"
#include "tools/flags/command.h"
#include "tools/flags/software_device.h"

namespace prepost::tools {
namespace {

struct DeviceLine {
  std::string name;
  bool is_hardware = false;
  bool can_offload = false;
  std::string why;
};

struct Listing {
  std::vector<DeviceLine> devices;
  std::string hardware;  ///< what there is to say about hardware as a whole; "": nothing
};

Listing ListDevices() {
  Listing listing;
  for (const SoftwareDevice& device : SoftwareDevices()) {
    listing.devices.push_back({device.name, false, true, device.what});
  }
  const mlx5::Hardware found = mlx5::SurveyMachine(mlx5::RdmaCore().get());
  listing.hardware = found.why_none;
  for (const mlx5::SurveyedDevice& device : found.devices) {
    listing.devices.push_back({device.name, true, device.can_offload, device.why});
  }
  return listing;
}

void PrintDevicesJson(const Listing& listing) {
  nlohmann::ordered_json devices = nlohmann::ordered_json::array();
  for (const DeviceLine& line : listing.devices) {
    devices.push_back({{"name", line.name},
                       {"kind", line.is_hardware ? "hardware" : "software"},
                       {"can_offload", line.can_offload},
                       {"why", line.why}});
  }
  nlohmann::ordered_json json = {{"devices", devices}};
  if (!listing.hardware.empty()) json["hardware"] = listing.hardware;
  std::cout << json.dump(2) << "\n";
}

void PrintDevices(const Listing& listing) {
  size_t width = 0;
  for (const DeviceLine& line : listing.devices) width = std::max(width, line.name.size());
  for (const DeviceLine& line : listing.devices) {
    std::cout << fmt::format("{:<{}}  {}  {:<3}  {}\n", line.name, width,
                             line.is_hardware ? "hardware" : "software",
                             line.can_offload ? "yes" : "no", line.why);
  }
  if (!listing.hardware.empty()) std::cout << "no hardware: " << listing.hardware << "\n";
}

}  // namespace

void AddDevices(CLI::App& app, Action* action) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("devices", "List what could execute queue programs, and why not");
  command->footer(
      "One line per device: its name, whether it is hardware, whether preposted queues can be made "
      "on it, and what it has\n"
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
