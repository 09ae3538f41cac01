// SPDX-License-Identifier: Apache-2.0
//
// Files of the tree as part of the command, so that --profile fractus and --plot work wherever it
// is. tools/CMakeLists.txt writes them into a source of the build.
#ifndef PREPOST_PLANNING_FILES_SHIPPED_FILES_H_
#define PREPOST_PLANNING_FILES_SHIPPED_FILES_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ir/base/status.h"

namespace prepost {

struct ShippedFile {
  std::string_view name;  ///< "fractus" of fractus.json
  std::string_view text;  ///< of the file
};

/// Those of examples/profiles and of examples/devices, in the order of their names.
extern const std::span<const ShippedFile> kShippedProfiles;
extern const std::span<const ShippedFile> kShippedDevices;
/// scripts/plot_sweep.py.
extern const std::string_view kPlotScript;

/// "apt, fractus, ndr400".
std::string NamesOf(std::span<const ShippedFile> files);

/// The text of the one of `files` that `path` names; none where `path` is to be read as a file: it
/// has a '/' or '.', or there is a file of this name (a folder is none). Errors (kUsage, with
/// `flag` and `kind`, such as "shipped profile"): it is neither.
Result<std::optional<std::string_view>> ShippedText(std::span<const ShippedFile> files,
                                                    const std::string& path, std::string_view flag,
                                                    std::string_view kind);

}  // namespace prepost

#endif  // PREPOST_PLANNING_FILES_SHIPPED_FILES_H_
