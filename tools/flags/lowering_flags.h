// SPDX-License-Identifier: Apache-2.0
//
// LoweringFlags: --mode, --masters and --device-profile, for every subcommand that lowers a plan.
#ifndef PREPOST_TOOLS_FLAGS_LOWERING_FLAGS_H_
#define PREPOST_TOOLS_FLAGS_LOWERING_FLAGS_H_

#include <string>

#include "backends/nic/program/lower.h"
#include "ir/status.h"
#include "tools/flags/cli_forward.h"

namespace prepost::tools {

class LoweringFlags {
 public:
  /// Must outlive the parsing.
  void AddTo(CLI::App& command);

  /// A flag that was given, for messages; null when none was.
  const char* given() const;
  /// Errors: kUsage.
  Status Check() const;
  /// After Check(). Errors: those of LoadDeviceProfile().
  Result<nic::LowerOptions> ToOptions() const;

 private:
  // Empty: not given.
  std::string mode_;
  std::string masters_;
  std::string profile_path_;
};

/// Adds --device-profile alone; `otherwise` says what holds without it.
void AddDeviceProfileFlag(CLI::App& command, std::string* path, const std::string& otherwise);

/// Reads the profile of the file ("-": stdin), warnings to stderr. Errors: kRejected.
Result<nic::DeviceProfile> LoadDeviceProfile(const std::string& path);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_FLAGS_LOWERING_FLAGS_H_
