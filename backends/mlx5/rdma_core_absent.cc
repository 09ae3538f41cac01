// SPDX-License-Identifier: Apache-2.0
//
// In place of rdma_core.cc where libmlx5 was not found.
#include "backends/mlx5/rdma_core.h"

namespace prepost::mlx5 {

std::unique_ptr<VerbsLibrary> RdmaCore() { return nullptr; }

}  // namespace prepost::mlx5
