// SPDX-License-Identifier: Apache-2.0
#include "prepost/runtime/tcp_endpoint.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "prepost/runtime/mapping.h"
#include "tests/support/random_bytes.h"
#include "tests/support/temp_folder.h"

namespace prepost {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kBlockBytes = 1000;

/// Node 0 sends two blocks to node 1, each after a credit: channel 0 is 0>1, channel 1 the credits'
/// 1>0.
Plan TwoBlocks() {
  PlanBuilder builder({.nodes = 2,
                       .message = *MakeMessage(2 * kBlockBytes, kBlockBytes),
                       .ready = {.mode = ReadyMode::kWindow, .window = 1}});
  const ChannelId blocks = builder.AddChannel({NodeId(0), NodeId(1), kBlockLane});
  const ChannelId credits = builder.AddChannel({NodeId(1), NodeId(0), kCreditLane});
  for (uint32_t node : {0u, 1u}) {
    builder.BeginProgram(NodeId(node));
    for (uint32_t block : {0u, 1u}) {
      const OpKind credit_kind = node == 0 ? OpKind::kRecv : OpKind::kSend;
      const OpKind block_kind = node == 0 ? OpKind::kSend : OpKind::kRecv;
      builder.AddOp({.channel = credits, .grants = node, .kind = credit_kind});
      builder.AddOp({.channel = blocks, .block = block, .kind = block_kind});
    }
  }
  return std::move(builder).Build();
}

class TcpEndpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<TcpMesh> mesh = MakeTcpMesh(plan_);
    ASSERT_TRUE(mesh.ok()) << mesh.status().ToString();
    for (uint32_t node : {0u, 1u}) {
      for (const TcpSocket& socket : (*mesh)[node]) fds_[node].push_back(socket.fd.get());
      auto endpoint = TcpEndpoint::Make(plan_, NodeId(node), std::move((*mesh)[node]), wake_.get());
      ASSERT_TRUE(endpoint.ok()) << endpoint.status().ToString();
      nodes_[node] = std::move(*endpoint);
    }
  }

  void PostSend(uint32_t block) {
    nodes_[0]->PostSend(
        {.op = OpId(2 * block + 1),
         .channel = ChannelId(0),
         .block = block,
         .memory = std::span<const std::byte>(message_).subspan(block * kBlockBytes, kBlockBytes)});
  }
  void PostRecv(uint32_t block) {
    nodes_[1]->PostRecv({.op = OpId(2 * block + 1),
                         .channel = ChannelId(0),
                         .block = block,
                         .memory = std::span(copy_).subspan(block * kBlockBytes, kBlockBytes)});
  }
  /// Lets both nodes work until each is quiet and sees nothing for a while; the ops that node
  /// completed, in order.
  void Exchange() {
    for (int idle = 0; idle < 3;) {
      const size_t before = completed_[0].size() + completed_[1].size();
      for (uint32_t node : {0u, 1u}) {
        std::array<OpId, 8> ops;
        const Result<PollOutcome> outcome = nodes_[node]->Poll(ops, milliseconds(10));
        ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
        for (size_t i = 0; i < outcome->completed; ++i) completed_[node].push_back(ops[i].value);
      }
      idle = completed_[0].size() + completed_[1].size() == before ? idle + 1 : 0;
    }
  }
  /// Polls until there is an error.
  Status Failure(uint32_t node) {
    std::array<OpId, 8> ops;
    for (;;) {
      const Result<PollOutcome> outcome = nodes_[node]->Poll(ops, milliseconds(-1));
      if (!outcome.ok()) return outcome.status();
    }
  }

  const Plan plan_ = TwoBlocks();
  const std::vector<std::byte> message_ = test::RandomBytes(2 * kBlockBytes);
  std::vector<std::byte> copy_ = std::vector<std::byte>(2 * kBlockBytes);
  FileDescriptor wake_{eventfd(0, 0)};
  std::vector<int> fds_[2];  ///< blocks, credits
  std::unique_ptr<TcpEndpoint> nodes_[2];
  std::vector<uint32_t> completed_[2];
};

// A returned write is no completion: catches a send that completes before it is delivered.
TEST_F(TcpEndpointTest, SendCompletesOnlyWhenTheReceiveIsPosted) {
  PostSend(0);
  Exchange();
  EXPECT_TRUE(completed_[0].empty());
  EXPECT_EQ(nodes_[1]->counters().early, 1u);
  PostRecv(0);
  Exchange();
  EXPECT_THAT(completed_[0], ElementsAre(1));
  EXPECT_THAT(completed_[1], ElementsAre(1));
  EXPECT_TRUE(nodes_[0]->quiet() && nodes_[1]->quiet());
}

TEST_F(TcpEndpointTest, BlocksGoWhereTheyBelong) {
  PostRecv(0);
  PostRecv(1);
  PostSend(0);
  PostSend(1);
  Exchange();
  EXPECT_THAT(completed_[0], ElementsAre(1, 3));
  EXPECT_THAT(completed_[1], ElementsAre(1, 3));
  EXPECT_TRUE(copy_ == message_);
  EXPECT_EQ(nodes_[1]->counters().early, 0u);
}

// A block that waits for its receive must not hold up credits.
TEST_F(TcpEndpointTest, CreditsPassWaitingBlocksAndMayComeEarly) {
  PostSend(0);
  nodes_[1]->PostSend({.op = OpId(0), .channel = ChannelId(1)});
  Exchange();
  EXPECT_TRUE(completed_[0].empty());
  nodes_[0]->PostRecv({.op = OpId(0), .channel = ChannelId(1)});
  Exchange();
  EXPECT_THAT(completed_[0], ElementsAre(0));
  EXPECT_THAT(completed_[1], ElementsAre(0));
}

TEST_F(TcpEndpointTest, NamesALostPeer) {
  nodes_[1].reset();
  EXPECT_EQ(Failure(0).message(), "node 0 lost its connection to node 1");
  EXPECT_EQ(nodes_[0]->lost_peer(), NodeId(1));
}

TEST_F(TcpEndpointTest, RefusesABlockThatIsNotNext) {
  PostRecv(0);
  PostSend(1);
  ASSERT_TRUE(nodes_[0]->Flush().ok());
  EXPECT_THAT(
      Failure(1).message(),
      HasSubstr("from node 0 for channel 0, block 1, 1000 bytes; expected channel 0, block 0"));
  EXPECT_FALSE(nodes_[1]->lost_peer().has_value());
}

// Junk on a socket: catches use of a channel number that nobody checked.
TEST_F(TcpEndpointTest, RefusesRecordsThatMakeNoSense) {
  const auto refuses = [this](const Record& record, const char* expected) {
    nodes_[0].reset();
    nodes_[1].reset();
    fds_[0].clear();
    fds_[1].clear();
    SetUp();
    std::array<std::byte, kRecordBytes> bytes;
    EncodeRecord(record, bytes);
    ASSERT_EQ(send(fds_[1][1], bytes.data(), bytes.size(), 0), ssize_t{kRecordBytes});
    EXPECT_THAT(Failure(0).message(), HasSubstr(expected));
  };
  refuses({.channel = ChannelId(7)}, "expected a channel between the two");
  refuses({.channel = ChannelId(0), .block = 0, .bytes = kBlockBytes},
          "expected the note of the oldest undelivered send");
  refuses({.channel = ChannelId(1), .block = 3}, "expected a credit that the plan has");
}

// The memory of a file that was truncated: an error, not a signal.
TEST_F(TcpEndpointTest, SendFromATruncatedFileIsAnError) {
  const test::TempFolder folder;
  test::WriteBytes(folder / "in", message_);
  const FileDescriptor file(open((folder / "in").c_str(), O_RDWR));
  const Result<Mapping> mapping =
      Mapping::OfFile(file.get(), message_.size(), Mapping::Access::kRead);
  ASSERT_TRUE(mapping.ok());
  ASSERT_EQ(ftruncate(file.get(), 0), 0);
  nodes_[0]->PostSend({.op = OpId(1),
                       .channel = ChannelId(0),
                       .block = 0,
                       .memory = mapping->bytes().first(kBlockBytes)});
  EXPECT_THAT(Failure(0).message(), HasSubstr("the memory of block 0 is gone"));
}

TEST_F(TcpEndpointTest, WakesUpWhenAsked) {
  const uint64_t one = 1;
  ASSERT_EQ(write(wake_.get(), &one, sizeof(one)), ssize_t{sizeof(one)});
  std::array<OpId, 8> ops;
  const Result<PollOutcome> outcome = nodes_[0]->Poll(ops, milliseconds(-1));
  ASSERT_TRUE(outcome.ok());
  EXPECT_TRUE(outcome->woken);
}

}  // namespace
}  // namespace prepost
