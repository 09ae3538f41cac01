// SPDX-License-Identifier: Apache-2.0
//
// Choose: what `auto` means for a spec's algorithm and block size, and then for its readiness and
// send window, too: of all schedules, each with the block size that suits it best, the one with the
// least modelled time, unless a rule says otherwise (choice_rules.h). The models: rounds
// (cost_model.h), by which the best plans are found that a PlanTimer (plan_timing.h) then compares;
// or streams (stream_cost.h). Tools resolve specs by it before they compile.
#ifndef PREPOST_COMPILER_CHOICE_CHOICE_H_
#define PREPOST_COMPILER_CHOICE_CHOICE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/choice/choice_rules.h"
#include "compiler/choice/cost_model.h"
#include "compiler/choice/plan_timing.h"
#include "compiler/choice/stream_cost.h"
#include "compiler/spec.h"

namespace prepost {

/// What Choose() makes of a block of `bytes` bytes: the next multiple of the power of two that is
/// at most a 64th of it, or of 4 KiB for large ones. So blocks of a message in memory begin at
/// cache lines from 4 KiB on, and at pages from 256 KiB on, and are at most a 64th longer than
/// wanted. Needs bytes >= 1.
uint64_t RoundUpBlock(uint64_t bytes);

/// Choose() finds block sizes of which nodes x blocks is at most kChosenBlocksMax, or blocks at
/// most kChosenBlocksLeast: larger plans would take gigabytes for blocks that are hardly better.
/// What a spec or a rule fixes is taken as it is.
inline constexpr uint64_t kChosenBlocksMax = uint64_t{1} << 22;
inline constexpr uint64_t kChosenBlocksLeast = 1024;

/// The real number of blocks with which `bytes` bytes take least time, where r0 + r1 k rounds of k
/// blocks take `round_seconds` and a block's bytes / rate each: sqrt(bytes r0 / (rate r1
/// round_seconds)). Infinity where a round costs nothing. Needs r1, rate > 0.
double BestBlockCount(double bytes, double rate, double r0, double r1, double round_seconds);

struct Choice {
  std::vector<Candidate> candidates;  ///< the winner first, then by time; not empty
  std::string reason;                 ///< one line, why the winner won
  std::optional<size_t> rule;         ///< the one that applied, from 0
  std::optional<Candidate> unpinned;  ///< the winner without it, with ChoiceOptions::weighs_rule
  /// Modelled, of a message that groups of sessions carry without a plan (EagerSeconds()).
  std::optional<double> short_seconds;

  const Candidate& winner() const { return candidates.front(); }
};

struct ChoiceOptions {
  CostParameters parameters = {};
  ChoiceRules rules = {};
  bool weighs_rule = false;  ///< when one applies, also finds the winner without it
  /// Compares the best plans, with and without credits and windows. None, or in groups of more than
  /// kTimedNodesMax: the rounds alone decide.
  PlanTimer timer = {};
  /// Set: for connections that buffer. Rates and latencies are the topology's, if there is one.
  /// `parameters` and `timer` are not used.
  std::optional<StreamParameters> streams = {};
  /// With `streams`: up to how many bytes a message may be a short one.
  uint64_t short_bytes_max = 0;
};

/// A spec that leaves everything to Choose().
Spec OpenSpec();

/// Whether `spec` leaves anything to Choose().
bool IsAutomatic(const Spec& spec);

/// Chooses what `spec` leaves open; what it fixes, and what a rule fixes of the rest, is kept.
/// Errors: a spec that is wrong, `where` as CheckSpec() says it; parameters that are not positive.
/// Cost: without a timer below a second for 1,000 nodes, whatever the size; see docs/compiler.md.
Result<Choice> Choose(const Spec& spec, const ChoiceOptions& options);

/// `spec` with the winner's algorithm, block size, readiness and send window.
Spec Resolve(Spec spec, const Choice& choice);

}  // namespace prepost

#endif  // PREPOST_COMPILER_CHOICE_CHOICE_H_
