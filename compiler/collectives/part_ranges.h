// SPDX-License-Identifier: Apache-2.0
//
// What the schedules of collectives have in common: members in a circle, and the ranges of blocks
// that messages carry.
#ifndef PREPOST_COMPILER_COLLECTIVES_PART_RANGES_H_
#define PREPOST_COMPILER_COLLECTIVES_PART_RANGES_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "compiler/collectives/collective_schedule.h"

namespace prepost {

/// Rounds until 2^rounds >= members.
constexpr uint32_t DoublingRounds(uint32_t members) {
  return static_cast<uint32_t>(std::bit_width(members - 1));
}

/// The shares of the members in the blocks of a collective, one member's after the other's: parts
/// as they are, or one part cut into as many.
class MemberShares {
 public:
  explicit MemberShares(const CollectiveExtent& extent)
      : members_(extent.members),
        blocks_(extent.blocks_per_part),
        are_parts_(PartsOf(extent.kind, extent.members) != 1) {}

  /// Where the share of member `i` <= members begins.
  uint32_t Begin(uint32_t i) const {
    const uint64_t blocks = uint64_t{blocks_} * i;
    return static_cast<uint32_t>(are_parts_ ? blocks : blocks / members_);
  }
  /// The most blocks of a share.
  uint32_t most() const { return are_parts_ ? blocks_ : (blocks_ - 1) / members_ + 1; }

  /// Adds `message` with the shares of members `first`, `first + 1`, ..., `count` of them in the
  /// circle, without those that are empty: in one message, or two around the end of the ranks.
  void Send(PlannedTransfer message, uint32_t first, uint32_t count,
            std::vector<PlannedTransfer>* all) const {
    first %= members_;
    const uint32_t straight = std::min(count, members_ - first);
    for (const auto& [begin, end] :
         {std::pair(first, first + straight), std::pair(0u, count - straight)}) {
      message.block = Begin(begin);
      message.count = Begin(end) - Begin(begin);
      if (message.count != 0) all->push_back(message);
    }
  }

 private:
  uint32_t members_;
  uint32_t blocks_;
  bool are_parts_;
};

}  // namespace prepost

#endif  // PREPOST_COMPILER_COLLECTIVES_PART_RANGES_H_
