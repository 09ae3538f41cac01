// SPDX-License-Identifier: Apache-2.0
//
// What `prepost draw` is told, for pictures and for pages, and what it loads for both.
#ifndef PREPOST_TOOLS_COMMANDS_DRAW_FLAGS_H_
#define PREPOST_TOOLS_COMMANDS_DRAW_FLAGS_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/analysis/network.h"
#include "ir/base/status.h"
#include "ir/plan.h"
#include "planning/files/loaded_run.h"
#include "planning/flags/lowering_flags.h"
#include "viz/queues/queues.h"
#include "viz/selection.h"

namespace prepost::tools {

struct DrawFlags {
  std::string path;
  std::string output = "-";
  std::string view = "spacetime";
  std::string format;  ///< empty: by the suffix of `output`
  std::vector<uint32_t> nodes;
  std::vector<uint32_t> blocks;
  std::string rounds;
  std::vector<std::string> traces;
  std::optional<std::string> simulation;
  std::vector<std::string> against;  ///< a plan, or the traces of another run
  std::vector<std::string> against_traces;
  std::optional<std::string> topology;
  std::vector<std::string> engines;  ///< of the queues view; empty: "nic"
  LoweringFlags lowering;

  bool Has(const std::string& engine) const { return std::ranges::count(engines, engine) != 0; }
  /// Whether queues are asked for.
  bool HasQueues() const {
    return view == "queues" || !engines.empty() || lowering.given() != nullptr;
  }
};

Result<viz::Selection> SelectionOf(const DrawFlags& flags, const Plan& plan);
/// The run of PLAN: --trace or --simulation, which is one that says so.
Result<std::optional<LoadedRun>> LoadOwnRun(const DrawFlags& flags, const Plan& plan);
/// The network that `plan` runs on; none when it is not known.
Result<std::optional<Network>> NetworkUnder(const DrawFlags& flags, const Plan& plan);
/// Those that are named; without names, of a picture the NIC's, of a page all.
Result<viz::QueueEngines> EnginesOf(const DrawFlags& flags, bool is_page = false);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_COMMANDS_DRAW_FLAGS_H_
