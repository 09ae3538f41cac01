// SPDX-License-Identifier: Apache-2.0
#include "planning/flags/simulation_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <limits>

#include "planning/flags/play_flags.h"
#include "planning/flags/profile_settings.h"

namespace prepost {
namespace {

constexpr uint64_t kGroupsMax = 65536;
constexpr uint64_t kSeedMax = std::numeric_limits<uint64_t>::max();

}  // namespace

Status SimulationFlags::Check() const {
  PREPOST_RETURN_IF_ERROR(CheckWord("--executor", executor, {"cpu", "offload", "both"}));
  if (!wait.empty()) PREPOST_RETURN_IF_ERROR(CheckWord("--wait", wait, Words(kWaitModeNames)));
  PREPOST_RETURN_IF_ERROR(lowering.Check());
  if (executor == "cpu" && lowering.given() != nullptr) {
    return {StatusCode::kUsage,
            fmt::format("{} is for preposted queues, --executor cpu has none", lowering.given())};
  }
  if (executor == "offload" && copies_first_block) {
    return {StatusCode::kUsage,
            "--copy-first-block is for CPU-driven hosts, --executor offload has none"};
  }
  return {};
}

void SimulationFlags::AddTo(CLI::App& command) {
  command
      .add_option("--profile", profile,
                  "The cluster, which must be named: a file, or " + ShippedProfiles())
      ->type_name("P")
      ->check(NameOf("a file"));
  command
      .add_option(
          "--set", settings,
          "A value of the profile in place of the file's: host.completion=1us; may be given "
          "again")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command.add_option("--executor", executor, "cpu, offload (preposted) or both [both]")
      ->type_name("E");
  command.add_option("--wait", wait, "How hosts wait: polling, hybrid, interrupt [hybrid]")
      ->type_name("MODE");
  noise.AddTo(command);
  command
      .add_option("--seed", seed, "Of all that is drawn: preemptions, random=, hosts=, share= [1]")
      ->type_name("S")
      ->check(WholeNumber(0, kSeedMax));
  command
      .add_option("--groups", groups,
                  "The plan so many times at once, with rotated roots: node i of group g is host i "
                  "+ g")
      ->type_name("K")
      ->check(WholeNumber(1, kGroupsMax));
  command
      .add_option("--workload", workload,
                  "In place of a PLAN: many multicasts and other collectives among some hosts "
                  "(docs/simulate.md)")
      ->type_name("FILE")
      ->check(NameOf("a file"));
  lowering.AddTo(command);
  command.add_flag(
      "--copy-first-block", copies_first_block,
      "CPU-driven hosts copy a message's first block into place in the end, as RDMC's");
  command.add_flag("--causes", causes, "What the time goes to, and the critical path");
}

}  // namespace prepost
