// SPDX-License-Identifier: Apache-2.0
//
// Files of the tree as part of the command, so that --profile fractus and --plot work wherever it is.
// tools/CMakeLists.txt writes them into a source of the build.
#ifndef PREPOST_TOOLS_FLAGS_SHIPPED_FILES_H_
#define PREPOST_TOOLS_FLAGS_SHIPPED_FILES_H_

#include <span>
#include <string_view>

namespace prepost::tools {

struct ShippedProfile {
  std::string_view name;  ///< "fractus" of fractus.json
  std::string_view text;  ///< of the file
};

/// Those of examples/profiles, in the order of their names.
extern const std::span<const ShippedProfile> kShippedProfiles;
/// scripts/plot_sweep.py.
extern const std::string_view kPlotScript;

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_FLAGS_SHIPPED_FILES_H_
