// SPDX-License-Identifier: Apache-2.0
//
// PathFlags: --streams, --pace and --congestion of commands that move blocks between machines.
#ifndef PREPOST_TOOLS_FLAGS_PATH_FLAGS_H_
#define PREPOST_TOOLS_FLAGS_PATH_FLAGS_H_

#include <string>

#include "ir/base/status.h"
#include "planning/flags/values.h"
#include "prepost/prepost.h"

namespace prepost::tools {

class PathFlags {
 public:
  void AddTo(CLI::App& command);
  /// Errors (kUsage), with the flag.
  Result<PathOptions> Options() const;

 private:
  uint16_t streams_ = 0;
  std::string pace_;  // empty: not given
  std::string congestion_;
};

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_FLAGS_PATH_FLAGS_H_
