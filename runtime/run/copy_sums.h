// SPDX-License-Identifier: Apache-2.0
//
// CopySums: how the leader of a run compares what all nodes have in the end: by sums that each
// node, on another machine than the leader, proves to be its own (sum_proof.h).
#ifndef PREPOST_RUNTIME_RUN_COPY_SUMS_H_
#define PREPOST_RUNTIME_RUN_COPY_SUMS_H_

#include <optional>
#include <vector>

#include "ir/base/status.h"
#include "ir/plan.h"
#include "runtime/group/control_message.h"
#include "runtime/run/sum_proof.h"

namespace prepost {

class CopySums {
 public:
  /// Both must outlive it. Without a prover (null) sums are taken as they are.
  CopySums(const PlanHeader& header, const SumProver* prover);

  /// The leader's, for proofs.
  const NonceBytes& nonce() const { return nonce_; }
  void NoteNonce(NodeId node, const NonceBytes& nonce) { nodes_[node.index()].nonce = nonce; }
  /// Keeps the sum of `node`, if it is the first that it sends. Whether all have sent one.
  bool NoteSum(NodeId node, const MessageSum& sum, const MacBytes& proof);
  /// When all have. Errors (kRejected): a sum is not proved, or copies differ that must not: all of
  /// a multicast; of another collective those that are equal by the plan.
  Status Compare() const;
  /// Instead, when all have: with the sums that outputs must have by the plan, by node, none where
  /// there is no output. Errors (kRejected): which differs.
  Status CompareWith(const std::vector<std::optional<MessageSum>>& expected) const;
  /// What the leader answers `node` then.
  control::Commit CommitOf(NodeId node) const;
  const MessageSum& of(NodeId node) const { return nodes_[node.index()].sum; }

 private:
  struct Node {
    NonceBytes nonce = {};
    bool is_summed = false;
    MessageSum sum;
    MacBytes proof = {};
  };
  ProvenSum Of(NodeId node, ProvenSum::Sender sender) const;

  const PlanHeader& header_;
  const SumProver* const prover_;
  const NonceBytes nonce_;
  std::vector<NodeId> firsts_;  ///< FirstsOfEqualOutputs(); empty: all are to be the leader's
  std::vector<Node> nodes_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_RUN_COPY_SUMS_H_
