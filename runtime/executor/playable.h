// SPDX-License-Identifier: Apache-2.0
//
// Playable: what CPUs play for one message: a flat plan, or a rolled one as it is. Executors,
// transports and groups see header, channels and one node's ops, and do not know which it is.
#ifndef PREPOST_RUNTIME_EXECUTOR_PLAYABLE_H_
#define PREPOST_RUNTIME_EXECUTOR_PLAYABLE_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ir/op_stream.h"
#include "ir/plan.h"
#include "ir/rolled/rolled_play.h"
#include "ir/verify/verify.h"
#include "runtime/executor/block_places.h"
#include "runtime/files/plan_hash.h"

namespace prepost {

/// A reference, to be passed by value; what it names must outlive it.
class Playable {
 public:
  Playable(const VerifiedPlan& plan)
      : outline_(&plan), flat_(&plan) {}  // NOLINT: a plan is playable
  /// One node's part of a verified plan, as NodePlan() makes it or its file has it, of a plan that
  /// has the hash `whole`; none: nobody asks for it.
  static Playable Part(const Plan& part, const std::optional<PlanHash>& whole = {}) {
    return Playable(&part, whole);
  }
  Playable(const RolledPlay& play)  // NOLINT: so is this
      : outline_(&play.outline()), rolled_(&play) {}

  bool is_rolled() const { return rolled_ != nullptr; }
  /// The plan, if all of it is there, verified; null: it is rolled, or a part.
  const VerifiedPlan* flat() const { return flat_; }
  const PlanHeader& header() const { return outline_->header(); }
  /// The channels; for one node's file or part only those of the node.
  std::span<const Channel> channels() const { return outline_->channels(); }
  /// Those that start or end at `node`.
  std::vector<ChannelOps> ChannelOpsOf(NodeId node) const;
  std::unique_ptr<OpStream> OpsOf(NodeId node) const;
  /// Ops of `node` that are posted and not complete at once, at most: OpsOf(node)->look_ahead().
  size_t look_ahead(NodeId node) const;
  /// Where the blocks of `node` lie, of another collective than a multicast, which is never rolled.
  std::unique_ptr<const BlockPlaces> PlacesOf(NodeId node) const;
  /// What all members of a group must have in common, besides the size of the message.
  PlanHash Hash() const;

 private:
  Playable(const Plan* part, const std::optional<PlanHash>& whole)
      : outline_(part), whole_(whole) {}

  const Plan* outline_;
  const VerifiedPlan* flat_ = nullptr;
  const RolledPlay* rolled_ = nullptr;  ///< null: outline_ is a plan, or a part of one
  std::optional<PlanHash> whole_;       ///< if outline_ is a part
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_EXECUTOR_PLAYABLE_H_
