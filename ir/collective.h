// SPDX-License-Identifier: Apache-2.0
//
// Who has what: which nodes have a part of a block at first, and which must have the whole of it at
// the end. Plans, their checks and their executors ask here where data comes from and where it goes.
// Who leads a group, and what is drawn as the top of a tree, is another question, though its answer
// is often the same node.
//
// In a multicast of 3 nodes with root 1, for every block:
//   node            0    1    2
//   Contributes     no   yes  no
//   Wants           yes  yes  yes
//   Lacks           yes  no   yes
#ifndef PREPOST_IR_COLLECTIVE_H_
#define PREPOST_IR_COLLECTIVE_H_

#include <cstdint>

#include "ir/ids.h"

namespace prepost {

enum class CollectiveKind : uint8_t { kMulticast };

/// The word of the plan file.
constexpr const char* Name(CollectiveKind) { return "multicast"; }

/// What a plan is for. A value.
struct Collective {
  CollectiveKind kind = CollectiveKind::kMulticast;
  NodeId root;  ///< has the message at first

  friend constexpr bool operator==(const Collective&, const Collective&) = default;
};

/// A collective among `nodes`, of `blocks`; it knows no ranges. A value.
class Roles {
 public:
  constexpr Roles(const Collective& collective, uint32_t /*nodes*/, uint32_t /*blocks*/)
      : root_(collective.root) {}

  /// Whether `node` has a part of `block` at first.
  constexpr bool Contributes(NodeId node, uint32_t /*block*/) const { return node == root_; }
  /// Whether `node` must have the whole of `block` at the end.
  constexpr bool Wants(NodeId, uint32_t /*block*/) const { return true; }
  /// Whether `node` must be sent `block`.
  constexpr bool Lacks(NodeId node, uint32_t block) const {
    return Wants(node, block) && !Contributes(node, block);
  }

  /// Whether `node` contributes to a block: it has a source that is read.
  constexpr bool IsSource(NodeId node) const { return Contributes(node, 0); }
  /// Whether `node` lacks a block: it has a target that is written.
  constexpr bool IsTarget(NodeId node) const { return Lacks(node, 0); }

 private:
  NodeId root_;
};

}  // namespace prepost

#endif  // PREPOST_IR_COLLECTIVE_H_
