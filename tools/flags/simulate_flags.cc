// SPDX-License-Identifier: Apache-2.0
#include "tools/flags/simulate_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <limits>

#include "tools/flags/play_flags.h"
#include "tools/flags/profile_settings.h"
#include "tools/flags/values.h"
#include "tools/report/sweep_report.h"

namespace prepost::tools {
namespace {

constexpr unsigned kJobsMax = 1024;
constexpr uint64_t kGroupsMax = 65536;
constexpr uint64_t kSeedMax = std::numeric_limits<uint64_t>::max();

}  // namespace

Status SimulateFlags::Check() const {
  PREPOST_RETURN_IF_ERROR(CheckWord("--executor", executor, {"cpu", "offload", "both"}));
  if (!wait.empty()) PREPOST_RETURN_IF_ERROR(CheckWord("--wait", wait, Words(kWaitModeNames)));
  PREPOST_RETURN_IF_ERROR(lowering.Check());
  if (trace.is_wanted() && has_groups())
    return {StatusCode::kUsage, "--trace is for one plan alone"};
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

void SimulateFlags::AddTo(CLI::App& command) {
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
  command.add_option("--seed", seed, "Of preemptions and of --slow random [1]")
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
  trace.AddTo(command);
  command.add_flag("--per-node", per_node,
                   "When each node has it and what its host does, of each group");
  command.add_flag("--json", sweep.is_json, "Print it all as JSON");
  command
      .add_option("--sweep", sweep.axes,
                  "All values of a flag, but --set, --message, --trace and those of sweeps, or of "
                  "the profile: block-bytes=64KiB:4MiB:x2, nodes=2:10:+2, wait=polling,interrupt, "
                  "'order=0,1,2;0,2,1', host.completion=0us:2us:+500ns; given again, all "
                  "combinations")
      ->type_name("KEY=VALUES")
      ->allow_extra_args(false)
      ->group("Sweeps");
  command
      .add_option("--csv", sweep.csv,
                  "Write a line per row and executor, and node with --per-node; - for stdout")
      ->type_name("FILE")
      ->check(NameOf("a file"));
  command.add_option("--plot", sweep.plot, "Draw it over the first --sweep")
      ->type_name("FILE.svg")
      ->check(NameOf("a file"))
      ->group("Sweeps");
  command
      .add_option("--plot-y", sweep.plot_y,
                  fmt::format("What is drawn: {} [completion]", fmt::join(kPlotYNames, ", ")))
      ->type_name("Y")
      ->group("Sweeps");
  command.add_option("--jobs", sweep.jobs, "Rows at a time [one per core]")
      ->type_name("N")
      ->check(WholeNumber(1, kJobsMax))
      ->group("Sweeps");
  input.AddTo(command);
}

}  // namespace prepost::tools
