// SPDX-License-Identifier: Apache-2.0
//
// compare --clock virtual: both ways of the same plan under the virtual clock, as simulate runs them,
// in the form of compare. All of it is modelled.
#ifndef PREPOST_TOOLS_COMMANDS_COMPARE_VIRTUAL_H_
#define PREPOST_TOOLS_COMMANDS_COMPARE_VIRTUAL_H_

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "backends/nic/program/lower.h"
#include "ir/status.h"
#include "runtime/wait_policy.h"
#include "sim/profile.h"
#include "tools/flags/simulation_input.h"

namespace prepost::tools {

struct ModelledComparison {
  const sim::Profile& profile;
  std::string path;  ///< of the plan or spec; empty: flags say it
  std::string profile_path;
  std::vector<std::string> settings;  ///< of --set, which `profile` has
  std::vector<std::string> others =
      {};  ///< flags that say more than the profile: "--topology t.json"
  nic::LowerOptions lower = {};
  WaitMode wait = WaitMode::kInterrupt;
  uint64_t seed = 1;  ///< of preemptions
  bool is_json = false;
};

/// Errors: those of runs.
Status CompareVirtually(const std::vector<SimulatedPlan>& plans, const ModelledComparison& options,
                        std::ostream& out);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_COMMANDS_COMPARE_VIRTUAL_H_
