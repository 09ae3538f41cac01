// SPDX-License-Identifier: Apache-2.0
//
// Capabilities: what an mlx5 device says it can do, as far as preposted queues need it, and whether
// that is enough. Never decided by a device's model.
#ifndef PREPOST_BACKENDS_MLX5_CAPABILITIES_H_
#define PREPOST_BACKENDS_MLX5_CAPABILITIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "backends/mlx5/prm.h"
#include "backends/mlx5/verbs.h"
#include "ir/base/status.h"

namespace prepost::mlx5 {

struct Capabilities {
  bool cross_channel = false;      ///< cd
  bool cq_ignore_overrun = false;  ///< cq_oi
  uint8_t log_max_qp_sz = 0;
  uint8_t log_max_cq_sz = 0;
  uint8_t cqe_version = 0;
  bool has_roce = false;
  // With has_roce:
  bool force_loopback = false;     ///< fl_rc_qp_when_roce_enabled
  bool default_ts_format = false;  ///< QPs take the device's own format of time stamps
};

/// Errors: those of a failed command.
Result<Capabilities> QueryCapabilities(Verbs& verbs);

/// "" when preposted queues can be made, else what is missing, in words.
std::string WhatIsMissing(const Capabilities& capabilities);

/// The error (kEnvironment) of a failed call: of `what`, with errno, and status and syndrome of the
/// output when the firmware refused.
Status CallError(const std::string& what, int error, Input out = {});

/// A header-only input.
prm::Header CommandHeader(prm::Command command, uint16_t op_mod, uint32_t number);

}  // namespace prepost::mlx5

#endif  // PREPOST_BACKENDS_MLX5_CAPABILITIES_H_
