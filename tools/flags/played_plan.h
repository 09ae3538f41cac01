// SPDX-License-Identifier: Apache-2.0
//
// PlayedPlan: what run and node play: a flat plan, or a rolled one with the message it is for.
#ifndef PREPOST_TOOLS_FLAGS_PLAYED_PLAN_H_
#define PREPOST_TOOLS_FLAGS_PLAYED_PLAN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ir/plan.h"
#include "ir/rolled/rolled_plan.h"
#include "ir/rolled/rolled_play.h"
#include "ir/status.h"
#include "runtime/files/plan_folder.h"
#include "runtime/playable.h"

namespace prepost::tools {

/// Whether a message of `bytes`, those of `what` ("input a.raw", "--message-bytes"), can be sent by
/// `rolled`.
Status CheckSize(const RolledPlan& rolled, uint64_t bytes, const std::string& what);

/// Verified. Owns what it plays; move only.
class PlayedPlan {
 public:
  explicit PlayedPlan(Plan plan) : flat_(std::make_unique<Plan>(std::move(plan))) {}
  /// One node's part of a plan.
  explicit PlayedPlan(PlanOfNode part)
      : flat_(std::make_unique<Plan>(std::move(part.plan))), whole_(part.hash) {}
  /// `rolled`, of the file `path`, for a message of `bytes`, for which it is proved; of a file with
  /// some programs, what can be said of each alone. Errors: kRejected.
  static Result<PlayedPlan> Rolled(RolledPlan rolled, uint64_t bytes, const std::string& path);
  /// The same message, for `what` (said on stderr) that takes all ops of all nodes: the flat plan.
  /// Its nodes and those that play `rolled` as it is are one group. Errors: kRejected.
  static Result<PlayedPlan> Unrolled(const RolledPlan& rolled, uint64_t bytes,
                                     const std::string& path, const std::string& what);

  Playable playable() const {
    if (whole_) return Playable(*flat_, *whole_);
    return flat_ ? Playable(*flat_) : Playable(*play_);
  }
  const PlanHeader& header() const { return flat_ ? flat_->header() : play_->outline().header(); }
  /// Null: it is played as it is rolled.
  const Plan* flat() const { return flat_.get(); }
  /// Whether the program of `node` is there.
  bool Has(NodeId node) const { return flat_ || play_->Has(node); }

 private:
  PlayedPlan() = default;

  std::unique_ptr<Plan> flat_;
  std::optional<PlanHash> whole_;  ///< of what flat_ is a part of, or was rolled
  std::unique_ptr<RolledPlan> rolled_;
  std::unique_ptr<RolledPlay> play_;  ///< of *rolled_
};

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_FLAGS_PLAYED_PLAN_H_
