// SPDX-License-Identifier: Apache-2.0
#include "tools/profile_file.h"

#include "tools/read_with.h"

namespace prepost::tools {

Result<emulated::Profile> LoadProfile(const std::string& path) {
  return ReadWith(emulated::ReadProfile, path);
}

}  // namespace prepost::tools
