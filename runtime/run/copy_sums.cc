// SPDX-License-Identifier: Apache-2.0
#include "runtime/run/copy_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "runtime/files/collective_sums.h"
#include "runtime/files/node_buffer.h"

namespace prepost {

CopySums::CopySums(const PlanHeader& header, const SumProver* prover)
    : header_(header), prover_(prover), nonce_(RandomNonce()), nodes_(header.nodes) {
  if (header.collective.kind != CollectiveKind::kMulticast) firsts_ = FirstsOfEqualOutputs(header);
}

bool CopySums::NoteSum(NodeId node, const MessageSum& sum, const MacBytes& proof) {
  Node& it = nodes_[node.index()];
  if (!std::exchange(it.is_summed, true)) {
    it.sum = sum;
    it.proof = proof;
  }
  return std::ranges::all_of(nodes_, &Node::is_summed);
}

ProvenSum CopySums::Of(NodeId node, ProvenSum::Sender sender) const {
  const Node& it = nodes_[node.index()];
  return {.sender = sender,
          .node = node,
          .member_nonce = it.nonce,
          .leader_nonce = nonce_,
          .sum = it.sum};
}

control::Commit CopySums::CommitOf(NodeId node) const {
  control::Commit commit = {.sum = of(node)};
  if (prover_ != nullptr) commit.proof = prover_->Prove(Of(node, ProvenSum::Sender::kLeader));
  return commit;
}

Status CopySums::Compare() const {
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    const NodeId node(i);
    if (prover_ != nullptr &&
        !prover_->Verify(nodes_[i].proof, Of(node, ProvenSum::Sender::kMember))) {
      return Rejected(
          fmt::format("the sum of node {} is not proved to be its own: its control messages were "
                      "changed on the way",
                      i));
    }
    if (firsts_.empty()) {
      PREPOST_RETURN_IF_ERROR(CheckCopy(node, of(node), of(header_.collective.root)));
      continue;
    }
    const NodeId first = firsts_[i];
    if (of(node) == of(first)) continue;
    return Rejected(
        fmt::format("the output of node {} has the BLAKE2b-256 sum {}, that of node {} {}: the "
                    "plan makes them equal",
                    i, of(node).ToString(), first.value, of(first).ToString()));
  }
  return {};
}

Status CopySums::CompareWith(const std::vector<std::optional<MessageSum>>& expected) const {
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    if (!expected[i] || *expected[i] == nodes_[i].sum) continue;
    return Rejected(fmt::format(
        "the output of node {} has the BLAKE2b-256 sum {}, and the plan makes {} of the inputs", i,
        nodes_[i].sum.ToString(), expected[i]->ToString()));
  }
  return {};
}

}  // namespace prepost
