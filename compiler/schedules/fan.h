// SPDX-License-Identifier: Apache-2.0
//
// Fan: whether nodes have several peers, on which what `auto` means for ready and send windows
// rests.
#ifndef PREPOST_COMPILER_SCHEDULES_FAN_H_
#define PREPOST_COMPILER_SCHEDULES_FAN_H_

#include <cstdint>
#include <optional>

#include "compiler/spec.h"
#include "ir/plan.h"

namespace prepost {

/// Whether some node receives blocks from more than one peer, or sends blocks to more than one, and
/// how many blocks it may send, and receive, in one round.
struct Fan {
  bool in = false;
  bool out = false;
  uint32_t ports = 1;

  bool operator==(const Fan&) const = default;
};

Fan FanOf(const Plan& plan);

/// How many blocks of `spec`'s size a long path between its racks holds, there and back, and one
/// more: with smaller windows the path stands idle while acknowledgements are under way. 1 without
/// a topology, and where a round trip takes less than kLongRoundTrip.
uint32_t BlocksOnPath(const Spec& spec);

/// What was asked for; auto: a window of as many blocks as there are ports, or on the longest path,
/// where some node receives from several peers, since uncoordinated senders would share its ports;
/// else barrier.
Ready ReadyFor(const SpecReady& wanted, Fan fan);

/// What was asked for; auto: as many as there are ports, or on the longest path, where some node
/// sends blocks to several peers or receives from several; else none, since the one channel of each
/// node already keeps its sends in order.
std::optional<uint32_t> SendWindowFor(const SpecSendWindow& wanted, Fan fan);

}  // namespace prepost

#endif  // PREPOST_COMPILER_SCHEDULES_FAN_H_
