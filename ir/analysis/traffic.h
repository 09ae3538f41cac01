// SPDX-License-Identifier: Apache-2.0
//
// Traffic: what each node and channel of a plan has to do, whatever the network: queue pairs, ops,
// blocks, and when a node has all of them.
#ifndef PREPOST_IR_ANALYSIS_TRAFFIC_H_
#define PREPOST_IR_ANALYSIS_TRAFFIC_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/plan_tables.h"

namespace prepost {

struct NodeTraffic {
  /// One per peer and lane, used both ways, as lowering makes them; without a NIC's loopback QPs.
  uint32_t queue_pairs = 0;
  uint32_t ops = 0;
  uint32_t peers_in = 0;  ///< that it receives blocks from
  uint32_t peers_out = 0;
  std::optional<uint32_t> last_round;  ///< of its last block's receive; none if it has none
  uint64_t combined_blocks = 0;        ///< what the host must combine
  uint64_t combined_bytes = 0;
};

struct Traffic {
  std::vector<NodeTraffic> nodes;        ///< by node id
  std::vector<uint32_t> channel_blocks;  ///< by channel; 0 of credit channels
  std::vector<uint64_t> channel_bytes;   ///< the same
  uint64_t messages = 0;                 ///< that carry blocks
  uint64_t blocks = 0;                   ///< in them
  uint64_t empty_blocks = 0;  ///< of these, those behind the end of a part of its own size
  uint64_t credits = 0;
};

/// Linear, but for the sorting of channels.
Traffic MeasureTraffic(const PlanTables& tables);

}  // namespace prepost

#endif  // PREPOST_IR_ANALYSIS_TRAFFIC_H_
