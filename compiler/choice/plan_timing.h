// SPDX-License-Identifier: Apache-2.0
//
// TimePlans: what comes after the rounds (cost_model.h) have said which schedules are good. Rounds
// know no executor: in truth nodes need not keep step, and what keeps them in step, credits and
// windows, has its price. So the best of them are compiled, with and without, in larger and smaller
// blocks, and timed as they would run by whoever can: sim/plan_timer.h.
#ifndef PREPOST_COMPILER_CHOICE_PLAN_TIMING_H_
#define PREPOST_COMPILER_CHOICE_PLAN_TIMING_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/choice/cost_model.h"
#include "compiler/spec.h"
#include "ir/base/status.h"
#include "ir/verify/verify.h"

namespace prepost {

/// A schedule with the block size that suits it best of those tried.
struct Candidate {
  std::string algorithm;
  uint64_t block_bytes = 0;
  uint32_t blocks = 1;
  ScheduleCost cost;  ///< of its rounds, or of its streams
  /// Left out of the exact count, since its estimate, as if all ports were the fastest, is far
  /// above the winner's, or as CostModel::IsTooLarge(): only rounds and seconds are there.
  bool is_rough = false;
  /// Whether that limit ended the search: more blocks might take less time.
  bool is_bounded = false;
  // What the spec asks for or, where a plan was timed, what suits it best.
  SpecReady ready = {};
  SpecSendWindow send_window = {};
  /// Modelled, until all nodes have the message, if the plan was timed. Of many blocks,
  /// extrapolated from fewer.
  std::optional<double> plan_seconds = {};

  double seconds() const { return plan_seconds.value_or(cost.seconds); }
};

/// Seconds, modelled, until all nodes have the message of a plan that is the beginning of one of
/// `blocks` blocks, or that. Errors: that one cannot be run or modelled, and is left out.
using PlanTimer = std::function<Result<double>(const VerifiedPlan& plan, uint32_t blocks)>;

/// Plans with more nodes are not timed.
inline constexpr uint32_t kTimedNodesMax = 1024;
/// Transfers of a plan that is timed, blocks * (nodes - 1), unless it has only kTimedBlocksMin
/// blocks.
inline constexpr uint64_t kTimedTransfersMax = uint64_t{1} << 18;
inline constexpr uint32_t kTimedBlocksMin = 16;

/// Times the best of `candidates`, which are those of `spec` by their rounds' time, best first,
/// with what `spec` leaves open of readiness and windows: none of either, and what the rule of
/// fan.h says; and, if it leaves the block size open, in blocks of other sizes. What is timed comes
/// first then, by its time. `blocks_max`: at most so many are tried. Needs a resolvable spec of at
/// most kTimedNodesMax nodes, and of 2 or more.
void TimePlans(const Spec& spec, const PlanTimer& timer, uint32_t blocks_max,
               std::vector<Candidate>* candidates);

}  // namespace prepost

#endif  // PREPOST_COMPILER_CHOICE_PLAN_TIMING_H_
