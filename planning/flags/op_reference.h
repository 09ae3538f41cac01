// SPDX-License-Identifier: Apache-2.0
//
// OpReference: what of a plan a user asks about: a node, one of its ops, the message of a block, or
// a block.
#ifndef PREPOST_PLANNING_FLAGS_OP_REFERENCE_H_
#define PREPOST_PLANNING_FLAGS_OP_REFERENCE_H_

#include <cstdint>
#include <string>
#include <variant>

#include "ir/plan_tables.h"

namespace prepost {

struct MessageReference {
  uint32_t message = 0;  ///< as in MessageTable

  friend bool operator==(const MessageReference&, const MessageReference&) = default;
};

struct BlockReference {
  uint32_t block = 0;

  friend bool operator==(const BlockReference&, const BlockReference&) = default;
};

using OpReference = std::variant<NodeId, OpRef, MessageReference, BlockReference>;

/// "5": a node; "5/12": its op 12; "5>2:3": the message that carries block 3 from 5 to 2 (the
/// first of several); ":3": block 3. Errors:
/// kUsage, with what the plan has instead.
Result<OpReference> ParseOpReference(const std::string& text, const PlanTables& tables);

}  // namespace prepost

#endif  // PREPOST_PLANNING_FLAGS_OP_REFERENCE_H_
