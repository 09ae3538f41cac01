// SPDX-License-Identifier: Apache-2.0
#include "tools/flags/simulate_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "planning/flags/values.h"
#include "tools/flags/sweep.h"
#include "tools/report/sweep_report.h"

namespace prepost::tools {
namespace {

constexpr unsigned kJobsMax = 1024;

}  // namespace

void SimulateFlags::AddTo(CLI::App& command) {
  SimulationFlags::AddTo(command);
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
  command
      .add_option("--seeds", sweep.seeds,
                  "The same with so many seeds, from --seed on: mean, deviation and percentiles of "
                  "all, of each row")
      ->type_name("N")
      ->check(WholeNumber(2, kSweepRowsMax))
      ->group("Sweeps");
  command.add_option("--jobs", sweep.jobs, "Runs at a time [one per core]")
      ->type_name("N")
      ->check(WholeNumber(1, kJobsMax))
      ->group("Sweeps");
  input.AddTo(command);
}

}  // namespace prepost::tools
