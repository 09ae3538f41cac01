// SPDX-License-Identifier: Apache-2.0
//
// Who has what: which nodes have a part of a block at first, and which must have the whole of it at
// the end. Plans, their checks and their executors ask here where data comes from and where it
// goes. Who leads a group, and what is drawn as the top of a tree, is another question, though its
// answer is often the same node.
//
// Members are the nodes but the helpers, which are last. What members exchange piece by piece has
// parts: one for each member (reduce_scatter, allgather, gather, scatter) or for each pair
// (alltoall; that from member f to member t is part f * members + t). Otherwise there is one part.
// All parts have equally many blocks, one part after the other.
//
//                     contributes to      wants
//   multicast         root: all           members: all
//   reduce            members: all        root: all
//   allreduce         members: all        members: all
//   reduce_scatter    members: all        member m: part m
//   allgather         member m: part m    members: all
//   gather            member m: part m    root: all
//   scatter           root: all           member m: part m
//   alltoall          member m: m > ...   member m: ... > m
//   barrier           members: all        members: all
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
#include "prepost/collective.h"

namespace prepost {

/// The word of the plan file.
const char* Name(CollectiveKind kind);
/// The article before Name(): "an" of an allreduce, "a" of a reduce.
const char* ArticleOf(CollectiveKind kind);
/// Whether what several nodes contribute to a block becomes one value.
constexpr bool Combines(CollectiveKind kind) {
  return kind == CollectiveKind::kReduce || kind == CollectiveKind::kAllreduce ||
         kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kBarrier;
}
/// Whether one member is asked for by name: who has, or gets, the message.
constexpr bool HasRoot(CollectiveKind kind) {
  return kind == CollectiveKind::kMulticast || kind == CollectiveKind::kReduce ||
         kind == CollectiveKind::kGather || kind == CollectiveKind::kScatter;
}
/// Parts of a collective of so many members.
uint64_t PartsOf(CollectiveKind kind, uint32_t members);

/// What a plan is for. A value.
struct Collective {
  CollectiveKind kind = CollectiveKind::kMulticast;
  NodeId root;           ///< has, or gets, the message; of kinds without one, who leads
  uint32_t helpers = 0;  ///< the last so many nodes: they contribute nothing and want nothing

  /// Whether `node` is the one that is asked for by name.
  constexpr bool IsRoot(NodeId node) const { return HasRoot(kind) && node == root; }
  friend constexpr bool operator==(const Collective&, const Collective&) = default;
};

/// Parts, or nodes, `first`, `first + step`, ...: `count` of them. Parts lie in a node's memory in
/// this order.
struct PartRow {
  uint32_t first = 0;
  uint32_t step = 1;
  uint32_t count = 0;

  bool Has(uint32_t part) const {
    return part >= first && (part - first) % step == 0 && (part - first) / step < count;
  }
  uint32_t At(uint32_t i) const { return first + i * step; }
  /// The place of `part` in the row, which has it.
  uint32_t PlaceOf(uint32_t part) const { return (part - first) / step; }
};

/// A collective among `nodes`, of `blocks` in all; it knows no ranges. A value.
class Roles {
 public:
  Roles(const Collective& collective, uint32_t nodes, uint32_t blocks);

  uint32_t members() const { return members_; }
  uint32_t blocks_per_part() const { return blocks_per_part_; }
  uint32_t PartOf(uint32_t block) const { return block / blocks_per_part_; }
  /// To which `node` contributes, and which it wants.
  PartRow Contributed(NodeId node) const;
  PartRow Wanted(NodeId node) const;

  /// The nodes that want a part, as Wanted() has them.
  PartRow NodesWanting(uint32_t part) const;

  /// Whether `node` has a part of `block` at first.
  bool Contributes(NodeId node, uint32_t block) const {
    return kind_ == CollectiveKind::kMulticast ? IsRoot(node)
                                               : Contributed(node).Has(PartOf(block));
  }
  /// Whether `node` must have the whole of `block` at the end.
  bool Wants(NodeId node, uint32_t block) const {
    return kind_ == CollectiveKind::kMulticast ? IsMember(node) : Wanted(node).Has(PartOf(block));
  }
  /// Whether `node` must be sent something of `block`.
  bool Lacks(NodeId node, uint32_t block) const {
    return Wants(node, block) && (Combines(kind_) ? members_ > 1 : !Contributes(node, block));
  }

  /// Whether `node` contributes to a block: it has a source that is read.
  bool IsSource(NodeId node) const;
  /// Whether `node` has a target that is written: it wants a block, and is not the root of a
  /// multicast, which has its message where it is.
  bool IsTarget(NodeId node) const;

 private:
  bool IsMember(NodeId node) const { return node.value < members_; }
  bool IsRoot(NodeId node) const { return HasRoot(kind_) && node == root_; }
  CollectiveKind kind_;
  NodeId root_;
  uint32_t members_;
  uint32_t parts_;
  uint32_t blocks_per_part_;
};

/// Of a collective's parts those up to the last that some node must be sent, 1 if there is none: of
/// a gather whose root is the last member, all but the last. Needs nodes with at most 2^32 parts.
uint32_t MovingParts(const Collective& collective, uint32_t nodes);

}  // namespace prepost

#endif  // PREPOST_IR_COLLECTIVE_H_
