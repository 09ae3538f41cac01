// SPDX-License-Identifier: Apache-2.0
//
// kShippedProfiles: the files of examples/profiles as part of the command, so that --profile fractus
// works wherever the command is. tools/CMakeLists.txt writes them into a source of the build.
#ifndef PREPOST_TOOLS_FLAGS_SHIPPED_PROFILE_H_
#define PREPOST_TOOLS_FLAGS_SHIPPED_PROFILE_H_

#include <span>
#include <string_view>

namespace prepost::tools {

struct ShippedProfile {
  std::string_view name;  ///< "fractus" of fractus.json
  std::string_view text;  ///< of the file
};

/// In the order of their names.
extern const std::span<const ShippedProfile> kShippedProfiles;

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_FLAGS_SHIPPED_PROFILE_H_
