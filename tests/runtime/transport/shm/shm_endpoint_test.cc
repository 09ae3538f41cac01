// SPDX-License-Identifier: Apache-2.0
//
// What is shared memory's own; endpoint_test.cc has what all transports promise.
#include "runtime/transport/shm/shm_endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "tests/support/two_blocks.h"

namespace prepost::shm_endpoint_test {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr milliseconds kLook{0};
constexpr milliseconds kSleep{-1};
constexpr uint64_t kLargeBytes = 5'000'000;

class ShmEndpointTest : public test::TwoBlocksTest {
 protected:
  ShmEndpointTest() { Connect({.transport = TransportKind::kShm}); }
};

// A credit is delivered where its receive is posted, so its sender need not be woken to hear of it:
// catches a wake-up more for each block.
TEST_F(ShmEndpointTest, ACreditCompletesWithoutItsReceiver) {
  PostCreditRecv(0);
  PostCreditSend(0);
  PostCreditSend(1);
  Poll(1, kLook);
  EXPECT_THAT(completed_[1], ElementsAre(0));
  PostCreditRecv(1);
  Poll(1, kLook);
  EXPECT_THAT(completed_[1], ElementsAre(0, 2));
  Poll(0, kLook);
  EXPECT_THAT(completed_[0], ElementsAre(0, 2));
}

// Catches a copy that keeps its node from everything else until it is done.
TEST_F(ShmEndpointTest, ALargeBlockIsCopiedInPieces) {
  Connect({.transport = TransportKind::kShm}, kLargeBytes);
  PostRecv(0);
  PostSend(0);
  Poll(1, kLook);
  EXPECT_THAT(completed_[1], IsEmpty());
  EXPECT_GT(node(1).counters().bytes_moved, 0u);
  EXPECT_LE(node(1).counters().bytes_moved, kLargeBytes / 2);
  PostRecv(1);
  PostSend(1);
  Exchange();
  EXPECT_THAT(completed_[1], ElementsAre(1, 3));
  nodes_->ExpectDelivered();
}

// Two messages and a node that waits without a bound: it comes back once or twice, not all the time
// in between. Catches a node that spins.
TEST_F(ShmEndpointTest, ANodeThatWaitsSleeps) {
  PostRecv(0);
  PostRecv(1);
  std::thread receiver([this] {
    while (completed_[1].size() < 2 && !HasFailure()) Poll(1, kSleep);
  });
  PostSend(0);
  while (completed_[0].empty() && !HasFailure()) Poll(0, kSleep);
  PostSend(1);
  receiver.join();
  EXPECT_LE(node(1).counters().wakeups, 2u);
  nodes_->ExpectDelivered();
}

TEST_F(ShmEndpointTest, CopiesBetweenFilesAsInMemory) {
  Connect({.transport = TransportKind::kShm, .in_files = true}, kLargeBytes);
  PostRecv(0);
  PostRecv(1);
  PostSend(0);
  PostSend(1);
  Exchange();
  nodes_->ExpectDelivered();
}

// Files that shrink meanwhile: an error, not a SIGBUS.
TEST_F(ShmEndpointTest, ATruncatedSourceIsAnError) {
  Connect({.transport = TransportKind::kShm, .in_files = true});
  ASSERT_EQ(truncate(nodes_->input().path().c_str(), 0), 0);
  PostRecv(0);
  PostSend(0);
  EXPECT_EQ(Failure(1).message(),
            "node 1 cannot copy block 0 from node 0: the copy there ends before it; was its file "
            "truncated meanwhile?");
}

TEST_F(ShmEndpointTest, ATruncatedTargetIsAnError) {
  Connect({.transport = TransportKind::kShm, .in_files = true});
  ASSERT_EQ(ftruncate(nodes_->buffer(NodeId(1)).fd(), 0), 0);
  PostRecv(0);
  PostSend(0);
  EXPECT_THAT(Failure(1).message(),
              HasSubstr("node 1 cannot copy block 0 from node 0: the memory for it is gone"));
}

}  // namespace
}  // namespace prepost::shm_endpoint_test
