// SPDX-License-Identifier: Apache-2.0
//
// What queue programs need of NICs: a line per node and one of all, for people and as JSON.
#ifndef PREPOST_PLANNING_REPORT_PROGRAM_REPORT_H_
#define PREPOST_PLANNING_REPORT_PROGRAM_REPORT_H_

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "backends/nic/program/lower.h"
#include "backends/nic/program/queue_program.h"
#include "ir/base/status.h"
#include "ir/verify/verify.h"

namespace prepost {

/// Whether a plan can be lowered for a shipped device profile.
struct ProfileFit {
  std::string profile;
  Status status;  ///< why not
};

/// Of all shipped profiles, each in place of that of `options`. Lowers once for each.
std::vector<ProfileFit> FitsOf(const VerifiedPlan& plan, nic::LowerOptions options);

/// `fits` may be empty: it is not known.
void Print(const nic::QueueProgram& program, const std::vector<ProfileFit>& fits,
           std::ostream& out);
nlohmann::ordered_json ToJson(const nic::QueueProgram& program,
                              const std::vector<ProfileFit>& fits);

}  // namespace prepost

#endif  // PREPOST_PLANNING_REPORT_PROGRAM_REPORT_H_
