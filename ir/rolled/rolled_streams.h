// SPDX-License-Identifier: Apache-2.0
//
// SendStreams: what a rolled program sends, not round by round but all at once: as many streams as
// its segments have slots, however long the message is.
#ifndef PREPOST_IR_ROLLED_ROLLED_STREAMS_H_
#define PREPOST_IR_ROLLED_ROLLED_STREAMS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "ir/rolled/rolled_plan.h"

namespace prepost {

/// A send in each of the rounds first, first + period, .., last.
struct SendStream {
  NodeId peer;
  uint32_t first = 0;
  uint32_t last = 0;  ///< first + a multiple of period
  uint32_t period = 1;
  bool is_last_block = false;  ///< all sends carry the last block; else none does

  friend bool operator==(const SendStream&, const SendStream&) = default;
};

/// The sends of a program's segments for `blocks` >= 1 blocks, the very ones that
/// RolledRounds::Outgoing() gives where segments do not overlap. Linear in slots.
std::vector<SendStream> SendStreams(std::span<const Segment> segments, uint32_t blocks);

}  // namespace prepost

#endif  // PREPOST_IR_ROLLED_ROLLED_STREAMS_H_
