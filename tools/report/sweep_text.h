// SPDX-License-Identifier: Apache-2.0
//
// What the table of a sweep, its CSV and its plot say alike: with which profiles, what all rows
// have in common, and values as people read them.
#ifndef PREPOST_TOOLS_REPORT_SWEEP_TEXT_H_
#define PREPOST_TOOLS_REPORT_SWEEP_TEXT_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/flags/sweep.h"
#include "tools/report/sweep_output.h"

namespace prepost::tools {

struct SweptExecutor {
  const char* key;      ///< in JSON
  const char* name;     ///< for people
  const char* variant;  ///< of it, in JSON
};
inline constexpr SweptExecutor kSweptExecutors[] = {{"offload", "preposted", "mode"},
                                                    {"cpu", "CPU-driven", "wait"}};

/// "64 KiB", "1us", "chain".
std::string Readable(const SweepAxis& axis, size_t value);
/// "modelled, with the profiles Apt and Fractus"; `has_paths`: and their files.
std::string Modelled(const Sweep& sweep, bool has_paths);
/// Of a plan's: no window is "none".
std::string TextOf(const nlohmann::ordered_json& value);
/// What all rows have in common: "chain, 4 nodes, root 0".
std::string Common(const Sweep& sweep);
/// NaN where there is none.
double NumberAt(const nlohmann::ordered_json& json, const char* key);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_REPORT_SWEEP_TEXT_H_
