// SPDX-License-Identifier: Apache-2.0
//
// ReadWith: a file that an argument names ("-": stdin), read by one of the libraries' readers, whose
// warnings go to stderr.
#ifndef PREPOST_TOOLS_FLAGS_READ_WITH_H_
#define PREPOST_TOOLS_FLAGS_READ_WITH_H_

#include <istream>
#include <string>
#include <utility>
#include <vector>

#include "ir/status.h"
#include "tools/flags/message.h"
#include "tools/flags/named_file.h"

namespace prepost::tools {

/// What `read`, a Result<T>(std::istream&, name, std::vector<std::string>* warnings), makes of the file
/// `path`. Errors: its own; kRejected: the file cannot be read.
template <typename Read>
auto ReadWith(Read read, const std::string& path)
    -> decltype(read(std::declval<std::istream&>(), path, nullptr)) {
  auto result =
      decltype(read(std::declval<std::istream&>(), path, nullptr))(Rejected("not read", path));
  const Status status = WithInput(path, [&](std::istream& in, const std::string& name) -> Status {
    std::vector<std::string> warnings;
    result = read(in, name, &warnings);
    PrintWarnings(name, warnings);
    return result.status();
  });
  if (!status.ok()) return status;
  return result;
}

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_FLAGS_READ_WITH_H_
