// SPDX-License-Identifier: Apache-2.0
//
// Prints whether a plan fits a device in each mode (`prepost verify --device-profile`), for people
// and for programs.
#ifndef PREPOST_TOOLS_REPORT_FIT_PRINT_H_
#define PREPOST_TOOLS_REPORT_FIT_PRINT_H_

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <span>

#include "backends/nic/program/device_profile.h"
#include "backends/nic/program/fit.h"

namespace prepost::tools {

/// True when the plan fits in some mode: then it can run preposted.
bool FitsSomehow(std::span<const nic::Fit> fits);

/// A line of verdict, a table of what is needed beside the limits with a column per mode, the
/// queues written in parts, and the findings.
void PrintFits(const nic::DeviceProfile& profile, std::span<const nic::Fit> fits,
               std::ostream& out);

/// The same as one object.
nlohmann::ordered_json FitsJson(const nic::DeviceProfile& profile, std::span<const nic::Fit> fits);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_REPORT_FIT_PRINT_H_
