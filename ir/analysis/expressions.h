// SPDX-License-Identifier: Apache-2.0
//
// Expressions: what the values of a plan's blocks are made of, in which order: trees over the
// members' contributions, where own := own op received joins two. Two of the same fingerprint give
// the same bytes, whatever plan they are of.
#ifndef PREPOST_IR_ANALYSIS_EXPRESSIONS_H_
#define PREPOST_IR_ANALYSIS_EXPRESSIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/block_touches.h"
#include "ir/plan_tables.h"

namespace prepost {

/// Of a block that is brought or sent from one place to another it is the contribution alone. Not
/// thread-safe. Keeps a reference to the tables.
class Expressions {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  explicit Expressions(const PlanTables& tables);

  /// Numbers of what is there of a block.
  struct OfBlock {
    std::vector<uint32_t> at_end;                   ///< by node; kNone: it has nothing
    std::unordered_map<uint32_t, uint32_t> of_ops;  ///< by op: what it sent, or has left behind
  };
  /// Linear in the block's ops.
  OfBlock Of(uint32_t block);

  /// Where a block that is wanted has different values, and over how many blocks, as numbers.
  struct Count {
    uint64_t different = 0;
    uint32_t first = kNone;  ///< that of the first block
  };
  /// Those of all blocks at those who want them; operands that may be swapped make no difference.
  Count CountWanted();

  /// A node's value that became an operand of another's.
  struct Step {
    NodeId from;
    NodeId into;
    uint32_t message = 0;  ///< as in MessageTable
  };
  struct Way {
    NodeId made_at;           ///< where the value was combined last, from where it was sent on
    std::vector<Step> steps;  ///< each node at most once, behind the one that it goes into
  };
  /// How the value that `node` has of `block` at the end was made. It has one.
  Way WayOf(uint32_t block, NodeId node);

  /// "x0+(x3+x2)", "min(x0, x1)": cut to about `bytes_max` bytes and an ellipsis.
  std::string TextOf(uint32_t expression, size_t bytes_max) const;
  /// Own and other; none: it is the contribution of the member of that number.
  std::optional<std::pair<uint32_t, uint32_t>> PairOf(uint32_t expression) const {
    const Tree& tree = trees_[expression];
    return tree.own == kNone ? std::nullopt : std::optional(std::pair(tree.own, tree.other));
  }
  /// Contributions in it.
  uint64_t OperandsOf(uint32_t expression) const { return trees_[expression].operands; }
  /// A hash of the tree, where operands that may be swapped make no difference.
  uint64_t FingerprintOf(uint32_t expression) const { return trees_[expression].fingerprint; }

 private:
  struct Tree {
    uint32_t own = kNone;  ///< kNone: it is a member's contribution
    uint32_t other = kNone;
    uint64_t operands = 1;
    uint64_t fingerprint = 0;
  };
  uint32_t Join(uint32_t own, uint32_t other);

  const PlanTables& tables_;
  const Roles roles_;
  BlockRun run_;
  std::vector<Tree> trees_;  // first the members' contributions
  std::unordered_map<uint64_t, uint32_t> joined_;
};

}  // namespace prepost

#endif  // PREPOST_IR_ANALYSIS_EXPRESSIONS_H_
