// SPDX-License-Identifier: Apache-2.0
//
// ChannelEnd: one end of a channel of a plan, at one node. Over libfabric it is an endpoint of its
// own: so the channel's messages go into its receives in their order, and a counter of the endpoint
// counts completions of that channel alone.
#ifndef PREPOST_BACKENDS_FABRIC_CHANNEL_END_H_
#define PREPOST_BACKENDS_FABRIC_CHANNEL_END_H_

#include <cstdint>
#include <vector>

#include "ir/ids.h"
#include "ir/plan.h"

namespace prepost::fabric {

struct ChannelEnd {
  ChannelId channel;
  NodeId peer;
  uint32_t lane = kBlockLane;
  bool is_send = false;
  std::vector<OpId> ops;  ///< in channel order

  friend bool operator==(const ChannelEnd&, const ChannelEnd&) = default;
};

/// Of the node's program, in the order of their first ops; channels without ops have none.
std::vector<ChannelEnd> EndsOf(const Plan& plan, const Program& program);

}  // namespace prepost::fabric

#endif  // PREPOST_BACKENDS_FABRIC_CHANNEL_END_H_
