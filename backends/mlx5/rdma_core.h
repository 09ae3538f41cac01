// SPDX-License-Identifier: Apache-2.0
//
// RdmaCore: the devices of this machine, through libibverbs and libmlx5.
#ifndef PREPOST_BACKENDS_MLX5_RDMA_CORE_H_
#define PREPOST_BACKENDS_MLX5_RDMA_CORE_H_

#include <memory>

#include "backends/mlx5/verbs.h"

namespace prepost::mlx5 {

/// Null when this was built without libmlx5.
std::unique_ptr<VerbsLibrary> RdmaCore();

}  // namespace prepost::mlx5

#endif  // PREPOST_BACKENDS_MLX5_RDMA_CORE_H_
