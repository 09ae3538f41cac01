// SPDX-License-Identifier: Apache-2.0
//
// RolledPlay: a rolled plan for one message, to be played as it is: each node's ops come out of a
// stream, credits and windows included, and nothing is as long as the message.
#ifndef PREPOST_IR_ROLLED_ROLLED_PLAY_H_
#define PREPOST_IR_ROLLED_ROLLED_PLAY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ir/base/status.h"
#include "ir/op_stream.h"
#include "ir/plan.h"
#include "ir/rolled/rolled_plan.h"

namespace prepost {

/// Ops of a node that are held at once (OpStream::look_ahead()) while a rolled plan is played. Some
/// 64 to 128 blocks: enough to keep a link busy.
inline constexpr size_t kRolledLookAhead = 256;

class RolledPlay {
 public:
  /// `plan` is checked by CheckRolled(), and must outlive it. It may be one node's file. Errors:
  /// sizes beyond the limits; what RolledRounds::Check() refuses.
  static Result<RolledPlay> Make(const RolledPlan& plan, uint64_t bytes);

  const RolledPlan& plan() const { return *plan_; }
  /// A plan's header and channels, without programs. Of a whole plan the very channels that
  /// Unroll() gives; of one node's file those that start or end there.
  const Plan& outline() const { return outline_; }
  /// Whether the program of `node` is there, as the others need.
  bool Has(NodeId node) const;

  /// By channel. O(degree + period).
  std::vector<ChannelOps> ChannelOpsOf(NodeId node) const;
  /// The ops of `node`, which Unroll() gives in the same order; `after` is that of Unroll() before
  /// its last pass, thin, without what is `look_ahead` ops back or more. That is a power of two.
  /// Memory O(look_ahead + degree + period), an op O(log degree).
  std::unique_ptr<OpStream> OpsOf(NodeId node, size_t look_ahead = kRolledLookAhead) const;

 private:
  RolledPlay(const RolledPlan& plan, Plan outline) : plan_(&plan), outline_(std::move(outline)) {}
  const RolledProgram& ProgramOf(NodeId node) const;

  const RolledPlan* plan_;
  Plan outline_;
};

}  // namespace prepost

#endif  // PREPOST_IR_ROLLED_ROLLED_PLAY_H_
