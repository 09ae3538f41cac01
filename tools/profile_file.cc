// SPDX-License-Identifier: Apache-2.0
#include "tools/profile_file.h"

#include <istream>
#include <utility>
#include <vector>

#include "tools/message.h"
#include "tools/named_file.h"

namespace prepost::tools {

Result<emulated::Profile> LoadProfile(const std::string& path) {
  emulated::Profile profile;
  PREPOST_RETURN_IF_ERROR(WithInput(path, [&](std::istream& in, const std::string& name) -> Status {
    std::vector<std::string> warnings;
    Result<emulated::Profile> read = emulated::ReadProfile(in, name, &warnings);
    PrintWarnings(name, warnings);
    if (!read.ok()) return read.status();
    profile = *std::move(read);
    return {};
  }));
  return profile;
}

}  // namespace prepost::tools
