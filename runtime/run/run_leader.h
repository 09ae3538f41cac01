// SPDX-License-Identifier: Apache-2.0
//
// RunLeader: what the leader of a run does beside its own part, if it has one: it collects what
// members report, has them sum what they have when all have delivered, compares, and lets them
// name their copies.
#ifndef PREPOST_RUNTIME_RUN_RUN_LEADER_H_
#define PREPOST_RUNTIME_RUN_RUN_LEADER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "ir/base/status.h"
#include "ir/plan.h"
#include "runtime/files/message_sum.h"
#include "runtime/run/copy_sums.h"
#include "runtime/run/run_control.h"
#include "runtime/run/sum_proof.h"
#include "runtime/trace/report.h"

namespace prepost {

struct RunLeaderOptions {
  const SumProver* prover = nullptr;  ///< of members' sums; null: this process has started them all
  /// The leader's own part; none: it only leads.
  std::optional<NodeId> node = {};
  /// Which sum each node's output must have, none: it has no output; asked when all are known.
  /// Empty: CopySums decides.
  std::function<Result<std::vector<std::optional<MessageSum>>>()> expected = {};
  /// Called about once a second with the bytes that all receivers have received together. May be
  /// empty.
  std::function<void(uint64_t bytes_received)> progress = {};
};

/// What a run gives its caller.
struct LocalRun {
  RunReport report;
  MessageSum sum;  ///< of every copy
  /// Of another collective than a multicast, by node: of its output; none: it has none.
  std::vector<std::optional<MessageSum>> outputs = {};
};

/// Used by one thread.
class RunLeader {
 public:
  /// `header` and `control` must outlive it.
  RunLeader(const PlanHeader& header, RunControl& control, RunLeaderOptions options);

  /// An event of the group's keeper. Errors: sums differ, or are not proved (kRejected); those of
  /// the options' functions.
  Status Take(const KeeperEvent& event);

  /// All have delivered: members are asked for their sums, with this nonce.
  bool may_sum() const { return may_sum_; }
  const NonceBytes& nonce() const { return sums_.nonce(); }
  /// All sums are what they must be.
  bool may_commit() const { return may_commit_; }
  /// Then: members hear it.
  void LetCommit();
  /// The report has no names of what played. After the end.
  LocalRun MakeRun() const;

 private:
  void AskForSums();
  Status NoteSum(NodeId node, const control::Summed& summed);
  void NoteProgress(NodeId node, const NodeReport& report);

  const PlanHeader& header_;
  RunControl& control_;
  const RunLeaderOptions options_;
  CopySums sums_;
  std::vector<NodeReport> reports_;
  std::chrono::steady_clock::time_point next_progress_;
  bool may_sum_ = false;
  bool may_commit_ = false;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_RUN_RUN_LEADER_H_
