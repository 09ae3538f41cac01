// SPDX-License-Identifier: Apache-2.0
#include "runtime/run/copy_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>

namespace prepost::copy_sums_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// What a leader finds where its members have these sums; each proves its own, but what is changed.
class CopySumsTest : public testing::Test {
 protected:
  explicit CopySumsTest(CollectiveKind kind = CollectiveKind::kMulticast) {
    header_.nodes = 3;
    header_.collective.kind = kind;
  }
  Status Compare(std::array<uint8_t, 3> sums, const std::function<void(ProvenSum&)>& change = {}) {
    CopySums copies(header_, &prover_);
    const NonceBytes nonce = {std::byte{9}};
    for (uint32_t node = 0; node < 3; ++node) {
      copies.NoteNonce(NodeId(node), nonce);
      const MessageSum sum = {.bytes = {std::byte{sums[node]}}};
      ProvenSum proven = {
          .node = NodeId(node), .member_nonce = nonce, .leader_nonce = copies.nonce(), .sum = sum};
      if (node == 1 && change) change(proven);
      EXPECT_EQ(copies.NoteSum(NodeId(node), sum, prover_.Prove(proven)), node == 2);
      // What is said again is not believed.
      copies.NoteSum(NodeId(node), {}, {});
    }
    return copies.Compare();
  }

  PlanHeader header_;
  const SumProver prover_{GroupKey::FromSecret("a secret of the group", "here").value(), {}};
};

TEST_F(CopySumsTest, CopiesMustBeTheRoots) {
  EXPECT_TRUE(Compare({7, 7, 7}).ok());
  EXPECT_THAT(Compare({7, 8, 7}).message(),
              HasSubstr("the copy of node 1 has the BLAKE2b-256 sum 08"));
}

// Sums that are equal, of which one is proved for another node, by what was said in another run, or
// as the leader's. Catches a leader that believes what comes on the way of the data.
TEST_F(CopySumsTest, SumsThatAreNotProvedAreAnError) {
  for (const auto& change : {+[](ProvenSum& it) { it.node = NodeId(2); },
                             +[](ProvenSum& it) { it.leader_nonce[0] ^= std::byte{1}; },
                             +[](ProvenSum& it) { it.member_nonce[0] ^= std::byte{1}; },
                             +[](ProvenSum& it) { it.sender = ProvenSum::Sender::kLeader; }}) {
    EXPECT_EQ(Compare({7, 7, 7}, change).message(),
              "the sum of node 1 is not proved to be its own: its control messages were changed on "
              "the way");
  }
}

// Of a collective whose inputs no node has: outputs that the plan makes equal must be, others need
// not. Catches a leader that compares all outputs with its own, and one that compares none.
class AllreduceSumsTest : public CopySumsTest {
 protected:
  AllreduceSumsTest() : CopySumsTest(CollectiveKind::kAllreduce) {}
};
TEST_F(AllreduceSumsTest, AreEqual) {
  EXPECT_TRUE(Compare({7, 7, 7}).ok());
  EXPECT_THAT(Compare({7, 7, 3}).message(),
              AllOf(HasSubstr("the output of node 2 has the BLAKE2b-256 sum 03"),
                    HasSubstr("that of node 0 07")));
}
class AlltoallSumsTest : public CopySumsTest {
 protected:
  AlltoallSumsTest() : CopySumsTest(CollectiveKind::kAlltoall) {}
};
TEST_F(AlltoallSumsTest, NeedNotBe) { EXPECT_TRUE(Compare({7, 8, 9}).ok()); }

}  // namespace
}  // namespace prepost::copy_sums_test
