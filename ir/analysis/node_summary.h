// SPDX-License-Identifier: Apache-2.0
//
// NodeSummary: one node's part in a plan: whom it receives from and sends to, and how tight its
// times are.
#ifndef PREPOST_IR_ANALYSIS_NODE_SUMMARY_H_
#define PREPOST_IR_ANALYSIS_NODE_SUMMARY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/analysis/event_times.h"
#include "ir/plan_tables.h"

namespace prepost {

struct PeerBlocks {
  NodeId peer;
  uint32_t blocks = 0;

  friend bool operator==(const PeerBlocks&, const PeerBlocks&) = default;
};

struct NodeSummary {
  NodeId node;
  uint32_t ops = 0;
  uint32_t blocks_in = 0;
  uint32_t blocks_out = 0;
  uint32_t credits_in = 0;
  uint32_t credits_out = 0;
  std::vector<PeerBlocks> from;  ///< most blocks first, then by peer
  std::vector<PeerBlocks> to;
  std::vector<OpId> critical;             ///< ops of blocks without slack
  uint64_t slack_min = 0;                 ///< of its block ops
  uint64_t slack_max = 0;                 ///< of its block ops
  std::optional<uint32_t> first_message;  ///< the block that arrives first; none at the root
  std::optional<uint32_t> last_message;   ///< the one that arrives last, in model time
};

/// Linear in the node's ops.
NodeSummary Summarise(const PlanTables& tables, const EventTimes& times, NodeId node);

}  // namespace prepost

#endif  // PREPOST_IR_ANALYSIS_NODE_SUMMARY_H_
