// SPDX-License-Identifier: Apache-2.0
#include "runtime/run/sum_proof.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace prepost::sum_proof_test {
namespace {

const GroupKey& Key() {
  static const GroupKey key = GroupKey::FromSecret("a secret of the group", "here").value();
  return key;
}

// Whatever differs, the proof is none. Catches a field that the MAC is not over, so that a proof
// can be sent back, used for another node, for another sum, or again in a later run.
TEST(SumProofTest, IsOfOneSumOfOneNodeInOneRun) {
  const GroupTerms terms = {.plan = {std::byte{7}}, .message_bytes = 8};
  const ProvenSum sum = {.sender = ProvenSum::Sender::kMember,
                         .node = NodeId(3),
                         .member_nonce = {std::byte{1}},
                         .leader_nonce = {std::byte{2}},
                         .sum = {.bytes = {std::byte{3}}}};
  const SumProver prover(Key(), terms);
  const MacBytes proof = prover.Prove(sum);
  EXPECT_TRUE(prover.Verify(proof, sum));
  EXPECT_FALSE(prover.Verify({}, sum));
  const std::vector<std::function<void(ProvenSum&)>> changes = {
      [](ProvenSum& it) { it.sender = ProvenSum::Sender::kLeader; },
      [](ProvenSum& it) { it.node = NodeId(4); },
      [](ProvenSum& it) { it.member_nonce[31] = std::byte{1}; },
      [](ProvenSum& it) { it.leader_nonce[31] = std::byte{1}; },
      [](ProvenSum& it) { std::swap(it.member_nonce, it.leader_nonce); },
      [](ProvenSum& it) { it.sum.bytes[31] = std::byte{1}; }};
  for (size_t i = 0; i < changes.size(); ++i) {
    ProvenSum other = sum;
    changes[i](other);
    EXPECT_FALSE(prover.Verify(proof, other)) << i;
  }
  GroupTerms other_terms = terms;
  other_terms.plan[31] = std::byte{1};
  EXPECT_FALSE(SumProver(Key(), other_terms).Verify(proof, sum));
  other_terms = terms;
  other_terms.message_bytes = 9;
  EXPECT_FALSE(SumProver(Key(), other_terms).Verify(proof, sum));
  other_terms = terms;
  other_terms.carrier = Carrier::kDevice;
  EXPECT_FALSE(SumProver(Key(), other_terms).Verify(proof, sum));
  const GroupKey other_key = GroupKey::FromSecret("a secret of another", "here").value();
  EXPECT_FALSE(SumProver(other_key, terms).Verify(proof, sum));
}

}  // namespace
}  // namespace prepost::sum_proof_test
