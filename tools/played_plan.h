// SPDX-License-Identifier: Apache-2.0
//
// PlayedPlan: what run and node play: a flat plan, or a rolled one with the message it is for.
#ifndef PREPOST_TOOLS_PLAYED_PLAN_H_
#define PREPOST_TOOLS_PLAYED_PLAN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "prepost/ir/plan.h"
#include "prepost/ir/rolled_plan.h"
#include "prepost/ir/rolled_play.h"
#include "prepost/ir/status.h"
#include "prepost/runtime/playable.h"

namespace prepost::tools {

/// Verified. Owns what it plays; move only.
class PlayedPlan {
 public:
  explicit PlayedPlan(Plan plan) : flat_(std::make_unique<Plan>(std::move(plan))) {}
  /// `rolled`, of the file `path`, for a message of `bytes`. A whole plan is proved for every size;
  /// of a file with some programs, what can be said of each alone. Errors: kRejected.
  static Result<PlayedPlan> Rolled(RolledPlan rolled, uint64_t bytes, const std::string& path);

  Playable playable() const { return flat_ ? Playable(*flat_) : Playable(*play_); }
  const PlanHeader& header() const { return flat_ ? flat_->header() : play_->outline().header(); }
  /// Null: it is played as it is rolled.
  const Plan* flat() const { return flat_.get(); }
  /// Whether the program of `node` is there.
  bool Has(NodeId node) const { return flat_ || play_->Has(node); }

 private:
  PlayedPlan() = default;

  std::unique_ptr<Plan> flat_;
  std::unique_ptr<RolledPlan> rolled_;
  std::unique_ptr<RolledPlay> play_;  ///< of *rolled_
};

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_PLAYED_PLAN_H_
