// SPDX-License-Identifier: Apache-2.0
//
// What a sweep has found out, as CSV, JSON, a table for people and a plot. All of them say that it
// is modelled, with which profile, by which command and version.
#ifndef PREPOST_TOOLS_REPORT_SWEEP_REPORT_H_
#define PREPOST_TOOLS_REPORT_SWEEP_REPORT_H_

#include <array>
#include <cstdint>
#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "ir/base/status.h"
#include "tools/flags/sweep.h"

namespace prepost::tools {

/// One combination.
struct SweepRow {
  SweepPoint point;
  std::string command;           ///< that gives it alone
  Status status;                 ///< why there is nothing else
  nlohmann::ordered_json found;  ///< as simulate --json has it, with or without --seeds
};

struct Sweep {
  std::string command;
  struct Profile {
    std::string name;
    std::string path;
  };
  std::vector<Profile> profiles;        ///< several, where they are swept
  std::vector<std::string> deviations;  ///< from the profile, but for what is swept
  std::vector<SweepAxis> axes;
  uint32_t seeds = 0;  ///< of each row, whose figures are statistics (seed_runs.h); 0: one run
  std::vector<SweepRow> rows;  ///< in the order of PointsOf()
};

/// Comments first, then the names, then a line per row and executor, and node where rows have lists
/// by node; one of a row that failed.
void WriteCsv(const Sweep& sweep, std::ostream& out);
nlohmann::ordered_json ToJson(const Sweep& sweep);
void Print(const Sweep& sweep, std::ostream& out);

/// "modelled, with the profiles Apt and Fractus"; `has_paths`: and their files.
std::string Modelled(const Sweep& sweep, bool has_paths);
/// What all rows have in common: "chain, 4 nodes, root 0".
std::string Common(const Sweep& sweep);

/// What a plot may show: the words of --plot-y.
inline constexpr std::array<std::string_view, 5> kPlotYNames = {"completion", "known", "bandwidth",
                                                                "of-bound", "skew"};
/// What a plot of these axes lacks, whatever the rows are; `executor`: of --executor. Errors:
/// kUsage: the first axis has words, more curves than fit; kEnvironment: no Python with matplotlib.
Status CheckPlot(const std::vector<SweepAxis>& axes, const std::string& executor);
/// Over the first axis, a curve for each executor and each combination of the others, in panels if
/// one cannot hold them (scripts/plot_sweep.py). As SVG. CheckPlot() must have passed. Errors: as
/// there; kRejected: nothing to plot.
Result<std::string> PlotSweep(const Sweep& sweep, const std::string& y);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_REPORT_SWEEP_REPORT_H_
