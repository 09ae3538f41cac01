// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/app.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "ir/version.h"

namespace prepost::tools {
namespace {

constexpr void (*kCommands[])(CLI::App&, Action*) = {
    AddCompile,  AddChoose,    AddUnroll,  AddVerify,   AddStats,  AddExplain,
    AddDiff,     AddDraw,      AddLower,   AddRun,      AddNode,   AddCompare,
    AddSimulate, AddCalibrate, AddProfile, AddTopology, AddExport, AddImport,
    AddDevices,  AddProbe,     AddPush,    AddReceive};

}  // namespace

std::unique_ptr<CLI::App> MakeApp(Action* action) {
  auto app = std::make_unique<CLI::App>(
      "Prepost compiles a multicast, or another collective such as an allreduce, ahead of the "
      "transfer into one\npartially ordered program of sends, receives and combines per node. It "
      "proves the programs correct, draws them,\nand runs them from CPUs or, multicasts, preposted "
      "to a NIC.",
      "prepost");
  app->set_version_flag("-v,--version", fmt::format("prepost {}", kVersion));
  app->require_subcommand(1);
  app->footer(
      "'prepost COMMAND --help' or 'prepost help COMMAND' tells more, with examples. Exit codes: 0 "
      "done, 1 rejected input or "
      "failed check, "
      "2 usage,\n3 missing environment, 130 interrupted.");
  for (const auto add : kCommands) add(*app, action);
  return app;
}

}  // namespace prepost::tools
