// SPDX-License-Identifier: Apache-2.0
//
// CheckRounds: whether the transfers of a file of rounds are a multicast, and which. Internal to
// compiler/rounds/.
#ifndef PREPOST_COMPILER_ROUNDS_ROUNDS_CHECK_H_
#define PREPOST_COMPILER_ROUNDS_ROUNDS_CHECK_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/rounds/rounds_file.h"
#include "ir/collective.h"
#include "ir/status.h"

namespace prepost {

/// What neither the user nor the file says is found from the transfers.
struct RoundsExtent {
  uint32_t nodes = 0;
  Collective collective;
  uint32_t blocks = 0;

  Roles roles() const { return {collective, nodes, blocks}; }
};

struct CheckedRounds {
  static constexpr uint32_t kNone = 0xffffffff;

  /// Transfer -> the one by which its sender got the block; kNone for the root's.
  std::vector<uint32_t> source;
  uint32_t ports = 1;  ///< the most blocks that a node sends, or receives, in a round
  /// The first transfer that needs so many; none with one port.
  std::optional<uint32_t> busiest;
};

/// Every node but the root gets each block once, and sends it in a later round; the root gets
/// nothing. Errors: kRejected, with all that is wrong, in the order of the file. Cost: sorting the
/// transfers; memory for transfers and nodes, whatever the number of blocks.
Result<CheckedRounds> CheckRounds(const RoundsFile& file, const RoundsExtent& extent);

}  // namespace prepost

#endif  // PREPOST_COMPILER_ROUNDS_ROUNDS_CHECK_H_
