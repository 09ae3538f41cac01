// SPDX-License-Identifier: Apache-2.0
//
// --profile: the file of a modelled cluster.
#ifndef PREPOST_TOOLS_PROFILE_FILE_H_
#define PREPOST_TOOLS_PROFILE_FILE_H_

#include <string>

#include "prepost/backends/emulated/profile.h"
#include "prepost/ir/status.h"

namespace prepost::tools {

/// Reads a profile ("-": stdin), warnings to stderr. Errors: kRejected.
Result<emulated::Profile> LoadProfile(const std::string& path);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_PROFILE_FILE_H_
