// SPDX-License-Identifier: Apache-2.0
//
// Survey: which RDMA devices a machine has, and which of them could execute preposted queues.
#ifndef PREPOST_BACKENDS_MLX5_SURVEY_H_
#define PREPOST_BACKENDS_MLX5_SURVEY_H_

#include <string>
#include <vector>

#include "backends/mlx5/verbs.h"
#include "ir/base/status.h"

namespace prepost::mlx5 {

struct SurveyedDevice {
  std::string name;
  bool is_mlx5 = false;
  bool can_offload = false;
  /// What it has; or the missing capability or permission, or what else is in the way.
  std::string why;
};

/// Opens each device, makes on it what queues share, and removes that again. In the order of names.
/// Errors: those of VerbsLibrary::Devices(); one device's are in its line.
Result<std::vector<SurveyedDevice>> Survey(VerbsLibrary& library);

}  // namespace prepost::mlx5

#endif  // PREPOST_BACKENDS_MLX5_SURVEY_H_
