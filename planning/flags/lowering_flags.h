// SPDX-License-Identifier: Apache-2.0
//
// LoweringFlags: --mode, --masters and --device-profile, for every subcommand that lowers a plan;
// and CompileForDevice: the plan of a spec that is to be preposted.
#ifndef PREPOST_PLANNING_FLAGS_LOWERING_FLAGS_H_
#define PREPOST_PLANNING_FLAGS_LOWERING_FLAGS_H_

#include <string>

#include "backends/nic/program/lower.h"
#include "compiler/spec.h"
#include "ir/base/status.h"
#include "ir/plan.h"
#include "ir/verify/verify.h"
#include "planning/flags/values.h"

namespace prepost {

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

/// Compile(). Where `ready` is auto and the plan so made does not fit the device of `lower`, as
/// more receives must be posted at once than a ring holds, but one with ready window=1 does, that
/// one, with a note on stderr unless `is_quiet`. Another plan that does not fit is returned, to be
/// refused as any. `lower`: null if nothing is to be preposted.
Result<VerifiedPlan> CompileForDevice(const Spec& spec, const nic::LowerOptions* lower,
                                      bool is_quiet = false);

}  // namespace prepost

#endif  // PREPOST_PLANNING_FLAGS_LOWERING_FLAGS_H_
