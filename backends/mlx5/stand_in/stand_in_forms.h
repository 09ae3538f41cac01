// SPDX-License-Identifier: Apache-2.0
//
// Internal to the stand-in: the form of every command that it knows. A bit outside of the fields
// that a command takes is refused, whether it is reserved or a field of another command: hardware
// would ignore it.
#ifndef PREPOST_BACKENDS_MLX5_STAND_IN_STAND_IN_FORMS_H_
#define PREPOST_BACKENDS_MLX5_STAND_IN_STAND_IN_FORMS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "backends/mlx5/prm.h"
#include "backends/mlx5/verbs.h"

namespace prepost::mlx5::stand_in {

/// How a command gets to the firmware.
enum class Call : uint8_t { kGeneral, kCreate, kModify, kQuery };

struct CommandForm {
  prm::Command command;
  Call call;
  size_t in_bytes;
  size_t out_bytes;                ///< at least
  std::vector<prm::Field> fields;  ///< that may be other than zero, besides the opcode
};

/// Null for a command that is not known.
const CommandForm* FindForm(prm::Command command);

/// The first bit that is set outside of the fields of `form`. `in` has its size.
std::optional<uint32_t> StrayBit(Input in, const CommandForm& form);

}  // namespace prepost::mlx5::stand_in

#endif  // PREPOST_BACKENDS_MLX5_STAND_IN_STAND_IN_FORMS_H_
