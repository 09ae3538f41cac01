// SPDX-License-Identifier: Apache-2.0
//
// What run and node play, and what a user may choose about it: WaitFlags, also of other subcommands
// whose hosts wait for completions; PlayFlags; and PlayedPlan, a flat plan, or a rolled one with
// the message it is for.
#ifndef PREPOST_PLANNING_FLAGS_PLAY_FLAGS_H_
#define PREPOST_PLANNING_FLAGS_PLAY_FLAGS_H_

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/base/status.h"
#include "ir/plan.h"
#include "ir/rolled/rolled_plan.h"
#include "ir/rolled/rolled_play.h"
#include "ir/verify/verify.h"
#include "planning/flags/values.h"
#include "runtime/executor/playable.h"
#include "runtime/executor/wait_policy.h"
#include "runtime/files/message_file.h"
#include "runtime/files/plan_folder.h"

namespace prepost {

/// How modelled hosts wait where nothing is said, in every command: RDMC's way.
inline constexpr WaitMode kModelledWait = WaitMode::kHybrid;

/// --wait and --idle-ms.
class WaitFlags {
 public:
  /// Must outlive the parsing. `otherwise`: what --help calls the default.
  void AddTo(CLI::App& command, const std::string& description,
             const std::string& otherwise = "interrupt");

  /// True when --wait was given.
  bool any() const { return !wait_.empty(); }
  /// True when --idle-ms was given.
  bool has_idle() const { return idle_ms_.has_value(); }
  /// Errors: kUsage.
  Status Check() const;
  /// Of hosts whose NICs play by themselves, for which nothing is to be said. Errors: kUsage.
  Status CheckOffload() const {
    if (!any()) return {};
    return {StatusCode::kUsage, "--wait is for CPUs: a preposted host sleeps to the end"};
  }
  /// After Check(). `otherwise`: where --wait was not given.
  WaitPolicy policy(WaitMode otherwise = WaitMode::kInterrupt) const;

 private:
  std::string wait_;  // empty: not given
  std::optional<double> idle_ms_;
};

/// "2", seconds, or "2s", "500ms"; 15 s where it is empty. Errors: kUsage.
Result<std::chrono::milliseconds> ParseFailureMax(const std::string& text);
/// --failure-max, for ParseFailureMax().
void AddFailureMax(CLI::App& command, std::string* text);

/// What run and node both let a user choose about playing a plan on CPUs.
struct PlayFlags {
  WaitFlags wait;
  std::optional<double> timeout_s;
  std::string failure_max_text;  ///< empty: not given
  bool json = false;

  void AddTo(CLI::App& command);
  /// Errors: kUsage.
  Status Check() const;
  /// After Check().
  std::chrono::milliseconds no_progress_max() const;
  std::chrono::milliseconds failure_max() const;
};

/// An error (kRejected) if the plan of the file `path` combines by an operation of the caller's,
/// which only programs have.
Status CheckOperation(const PlanHeader& header, const std::string& path);

/// An error (kRejected) unless `input` has the size of the plan's message; of another collective
/// than a multicast: of all nodes' inputs, or of that of `node`.
Status CheckInputSize(const PlanHeader& header, const MappedInput& input);
Status CheckInputSize(const PlanHeader& header, const MappedInput& input, NodeId node);

/// Shows, if `is_shown`, how much of all copies has been delivered, over itself on stderr. Empty if
/// there is nothing to show; the line is cleared by ClearProgress().
std::function<void(uint64_t bytes_received)> DeliveryProgress(const PlanHeader& header,
                                                              bool is_shown);
void ClearProgress(bool is_shown);

/// Whether a message of `bytes`, those of `what` ("input a.raw", "--message-bytes"), can be sent by
/// `rolled`.
Status CheckSize(const RolledPlan& rolled, uint64_t bytes, const std::string& what);

/// Verified. Owns what it plays; move only.
class PlayedPlan {
 public:
  explicit PlayedPlan(VerifiedPlan plan) : flat_(std::make_unique<VerifiedPlan>(std::move(plan))) {}
  /// One node's part of a plan.
  explicit PlayedPlan(PlanOfNode part)
      : part_(std::make_unique<Plan>(std::move(part.plan))), whole_(part.hash) {}
  /// `rolled`, of the file `path`, for a message of `bytes`, for which it is proved; of a file with
  /// some programs, what can be said of each alone. Errors: kRejected.
  static Result<PlayedPlan> Rolled(RolledPlan rolled, uint64_t bytes, const std::string& path);
  /// The flat plan for that message, which `what` needs (a note on stderr names it). Its nodes and
  /// nodes that play `rolled` as it is can be in one group. Errors: kRejected.
  static Result<PlayedPlan> Unrolled(const RolledPlan& rolled, uint64_t bytes,
                                     const std::string& path, const std::string& what);

  Playable playable() const {
    if (play_) return Playable(*play_);
    return whole_ ? Playable::Part(part_ ? *part_ : *flat_, whole_) : Playable(*flat_);
  }
  const PlanHeader& header() const {
    return play_ ? play_->outline().header() : part_ ? part_->header() : flat_->header();
  }
  /// Null: it is played as it is rolled, or one node's part is all there is.
  const VerifiedPlan* flat() const { return flat_.get(); }
  /// Whether the program of `node` is there.
  bool Has(NodeId node) const { return !play_ || play_->Has(node); }

 private:
  PlayedPlan() = default;

  std::unique_ptr<VerifiedPlan> flat_;
  std::unique_ptr<Plan> part_;
  std::optional<PlanHash> whole_;  ///< of what part_ is a part of, or flat_ was rolled
  std::unique_ptr<RolledPlan> rolled_;
  std::unique_ptr<RolledPlay> play_;  ///< of *rolled_
};

}  // namespace prepost

#endif  // PREPOST_PLANNING_FLAGS_PLAY_FLAGS_H_
