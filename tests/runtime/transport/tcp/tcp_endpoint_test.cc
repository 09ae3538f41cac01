// SPDX-License-Identifier: Apache-2.0
//
// What is TCP's own; endpoint_test.cc has what all transports promise.
#include "runtime/transport/tcp/tcp_endpoint.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "runtime/base/mapping.h"
#include "runtime/transport/tcp/tcp_mesh.h"
#include "tests/support/two_blocks.h"

namespace prepost::tcp_endpoint_test {
namespace {

using ::testing::HasSubstr;

class TcpEndpointTest : public test::TwoBlocksTest {
 protected:
  TcpEndpointTest() { Connect({.transport = TransportKind::kTcp}); }
};

TEST_F(TcpEndpointTest, NamesALostPeer) {
  nodes_->Drop(NodeId(1));
  EXPECT_EQ(Failure(0).message(), "node 0 lost its connection to node 1");
  EXPECT_EQ(node(0).lost_peer(), NodeId(1));
}

TEST_F(TcpEndpointTest, RefusesABlockThatIsNotNext) {
  PostRecv(0);
  PostSend(1);
  ASSERT_TRUE(node(0).Flush().ok());
  EXPECT_THAT(
      Failure(1).message(),
      HasSubstr("from node 0 for 0>1 lane 0, block 1, 1000 bytes; expected 0>1 lane 0, block 0"));
  EXPECT_FALSE(node(1).lost_peer().has_value());
}

// Junk on a socket: catches use of a channel number that nobody checked.
TEST_F(TcpEndpointTest, RefusesRecordsThatMakeNoSense) {
  const Record start = {
      .channel = kStartChannel, .block = 0, .bytes = plan_.header().payload.bytes};
  const auto refuses_all = [this](const std::vector<Record>& records, const char* expected) {
    Connect({.transport = TransportKind::kTcp});
    const int credits = nodes_->files(NodeId(1))[1];
    for (const Record& record : records) {
      std::array<std::byte, kRecordBytes> bytes;
      EncodeRecord(record, bytes);
      ASSERT_EQ(send(credits, bytes.data(), bytes.size(), 0), ssize_t{kRecordBytes});
    }
    EXPECT_THAT(Failure(0).message(), HasSubstr(expected));
  };
  const auto refuses = [&](const Record& record, const char* expected) {
    refuses_all({start, record}, expected);
  };
  refuses_all({{.channel = ChannelId(0)}}, "expected the start of a message");
  refuses_all({{.channel = kStartChannel, .block = 0, .bytes = 1}}, "expected the start");
  refuses(start, "expected the start of a message");
  refuses({.channel = ChannelId(7)}, "expected a channel between the two");
  refuses({.channel = ChannelId(0), .block = 0, .bytes = 1000},
          "expected the note of the oldest undelivered send");
  refuses({.channel = ChannelId(3), .block = 3}, "expected a credit that the plan has");
}

// Catches a message that begins on a connection for blocks of which none is to come: what follows
// would be read to nowhere.
TEST_F(TcpEndpointTest, RefusesTheStartOfBlocksThatDoNotCome) {
  std::array<std::byte, kRecordBytes> bytes;
  EncodeRecord({.channel = kStartChannel, .block = 0, .bytes = plan_.header().payload.bytes},
               bytes);
  ASSERT_EQ(send(nodes_->files(NodeId(1))[0], bytes.data(), bytes.size(), 0),
            ssize_t{kRecordBytes});
  EXPECT_THAT(Failure(0).message(), HasSubstr("expected no block"));
}

// The memory of a file that was truncated: an error, not a signal.
TEST_F(TcpEndpointTest, SendFromATruncatedFileIsAnError) {
  Connect({.transport = TransportKind::kTcp, .in_files = true});
  ASSERT_EQ(truncate(nodes_->input().path().c_str(), 0), 0);
  PostSend(0);
  EXPECT_THAT(Failure(0).message(), HasSubstr("the memory of block 0 at node 0 is gone"));
}

// Catches a cipher that reads the memory of a file itself: a SIGBUS.
TEST_F(TcpEndpointTest, SealedSendFromATruncatedFileIsAnError) {
  Connect({.seal = SealCipher::kChaCha20Poly1305, .in_files = true});
  ASSERT_EQ(truncate(nodes_->input().path().c_str(), 0), 0);
  PostSend(0);
  EXPECT_THAT(Failure(0).message(), HasSubstr("the memory of block 0 at node 0 is gone"));
}

// Bytes of somebody between the two: nothing of them is taken for a record, at any size that they
// claim.
TEST_F(TcpEndpointTest, WhatIsNotSealedByThePeerEndsIt) {
  for (const uint32_t claimed : {0u, 1u, 16u, 1u << 16, (1u << 16) + 1, 0xffffffffu}) {
    for (const size_t file : {size_t{0}, size_t{1}}) {  // of blocks, of credits
      SCOPED_TRACE(testing::Message() << claimed << ", file " << file);
      Connect({.seal = SealCipher::kChaCha20Poly1305});
      PostRecv(0);
      std::vector<std::byte> bytes(size_t{70} << 10, std::byte{5});
      std::memcpy(bytes.data(), &claimed, sizeof(claimed));
      ASSERT_GT(send(nodes_->files(NodeId(0))[file], bytes.data(), bytes.size(), 0), 0);
      EXPECT_EQ(
          Failure(1).message(),
          "a record over the connection of node 1 to node 0 is not authentic: it was changed, "
          "lost or repeated on the way");
      EXPECT_FALSE(node(1).lost_peer().has_value());
      EXPECT_TRUE(std::ranges::all_of(nodes_->memory(NodeId(1)).target,
                                      [](std::byte byte) { return byte == std::byte{0xee}; }));
    }
  }
}

/// Two endpoints of this process that copy blocks from memory to memory.
class MemoryCopiesTest : public testing::Test {
 protected:
  static constexpr uint64_t kBlock = 3u << 20;  // several pieces

  MemoryCopiesTest() : MemoryCopiesTest(test::TwoBlocks(kBlock)) {}
  explicit MemoryCopiesTest(Plan plan) : plan_(std::move(plan)) {
    Result<TcpMesh> mesh = MakeTcpMesh(Playable::Part(plan_));
    EXPECT_TRUE(mesh.ok()) << mesh.status().ToString();
    for (size_t node : {0u, 1u}) {
      for (TcpSocket& socket : (*mesh)[node]) {
        kept_.emplace_back(fcntl(socket.fd.get(), F_DUPFD_CLOEXEC, 0));
        if (socket.lane == Lane::kCredits) continue;
        socket.window = std::make_unique<MemoryWindow>();
        socket.window->set_sign(kSigns[node]);
        windows_[node] = socket.window.get();
      }
    }
    for (size_t node : {0u, 1u}) {
      for (TcpSocket& socket : (*mesh)[node]) {
        if (socket.lane == Lane::kCredits) continue;
        socket.local = {.process = getpid(),
                        .can_read = true,
                        .is_read = true,
                        .window = windows_[1 - node]->address(),
                        .sign = kSigns[1 - node]};
      }
      auto endpoint =
          TcpEndpoint::Make(NodeId::FromIndex(node), std::move((*mesh)[node]), /*wake_fd=*/-1,
                            /*ahead_max=*/2);
      EXPECT_TRUE(endpoint.ok()) << endpoint.status().ToString();
      endpoints_[node] = *std::move(endpoint);
      EXPECT_TRUE(endpoints_[node]->Begin(Playable::Part(plan_), {.bytes = bytes()}).ok());
    }
    PostRecv(0);
    PostSend(0);
  }

  uint64_t bytes() const { return plan_.header().payload.bytes; }
  std::span<std::byte> At(std::vector<std::byte>& memory, uint32_t block) const {
    return std::span(memory).subspan(plan_.header().payload.BlockOffset(block),
                                     plan_.header().payload.BlockSize(block));
  }
  void PostRecv(uint32_t block) {
    endpoints_[1]->PostRecv({.op = OpId(2 * block + 1),
                             .channel = ChannelId(0),
                             .block = block,
                             .memory = At(target_, block)});
  }
  void PostSend(uint32_t block) {
    endpoints_[0]->PostSend({.op = OpId(2 * block + 1),
                             .channel = ChannelId(0),
                             .block = block,
                             .memory = At(source_, block)});
  }

  /// Polls node 1 until an op completes.
  Status Receive() {
    std::array<OpId, 8> ops;
    for (;;) {
      const Result<PollOutcome> outcome = endpoints_[1]->Poll(ops, std::chrono::milliseconds(-1));
      if (!outcome.ok() || outcome->completed > 0) return outcome.status();
    }
  }

  static constexpr std::array<MemoryWindow::Sign, 2> kSigns = {
      MemoryWindow::Sign{std::byte{1}, std::byte{2}, std::byte{3}},
      MemoryWindow::Sign{std::byte{4}, std::byte{5}, std::byte{6}}};
  const Plan plan_;
  std::vector<std::byte> source_ = std::vector<std::byte>(bytes(), std::byte{7});
  std::vector<std::byte> target_ = std::vector<std::byte>(bytes());
  std::array<MemoryWindow*, 2> windows_ = {};
  /// Of each node, blocks and then credits: so that no connection closes.
  std::vector<FileDescriptor> kept_;
  std::array<std::unique_ptr<TcpEndpoint>, 2> endpoints_;
};

/// What the connection says that node 0 has sent, written by an attacker.
void Forge(int fd, std::initializer_list<Record> records) {
  for (const Record& record : records) {
    std::array<std::byte, kRecordBytes> bytes;
    EncodeRecord(record, bytes);
    ASSERT_EQ(send(fd, bytes.data(), bytes.size(), 0), ssize_t{kRecordBytes});
  }
}

// Where the message is and what of it may be copied is in the sender's memory alone. Catches
// records that are believed, by which an attacker who can write to a connection has memory read
// that was never sent.
TEST_F(MemoryCopiesTest, WhatTheConnectionSaysIsNoLeaveToCopy) {
  Forge(kept_[0].get(), {{.channel = kStartChannel, .block = 0, .bytes = 2 * kBlock},
                         {.channel = ChannelId(0), .block = 0, .bytes = kBlock}});
  EXPECT_THAT(Receive().message(), HasSubstr("block 0 of message 0, which node 0 has not sent"));
  EXPECT_EQ(target_, std::vector<std::byte>(2 * kBlock));
}

// An attacker on the way holds the record of a block back until the sender has been told that it
// arrived. Catches memory that is read when it is its caller's again.
TEST_F(MemoryCopiesTest, NothingIsCopiedOfAMessageThatIsOver) {
  ASSERT_TRUE(endpoints_[0]->Flush().ok());
  endpoints_[0]->End();
  std::ranges::fill(source_, std::byte{0xee});
  EXPECT_THAT(Receive().message(), HasSubstr("block 0 of message 0, which node 0 has not sent"));
  EXPECT_EQ(target_, std::vector<std::byte>(2 * kBlock));
}

// No peer is ahead by more messages than there are members that one can wait for.
TEST_F(MemoryCopiesTest, StartsFarAheadAreRefused) {
  Forge(kept_[0].get(), {{.channel = kStartChannel, .block = 499, .bytes = 2 * kBlock}});
  EXPECT_THAT(Receive().message(), HasSubstr("for the start of message 499"));
}

TEST_F(MemoryCopiesTest, WindowsOfAnotherMessageAreNotRead) {
  const std::vector<std::byte> other(2 * kBlock, std::byte{9});
  ASSERT_TRUE(endpoints_[0]->Flush().ok());
  windows_[0]->Add(1, 0, std::span(other).first(kBlock));
  EXPECT_THAT(Receive().message(), HasSubstr("which node 0 has not sent"));
  EXPECT_EQ(target_, std::vector<std::byte>(2 * kBlock));
}

// A process that has the number of one that has ended, or another connection's window.
TEST_F(MemoryCopiesTest, WindowsOfAnotherSignAreNotRead) {
  ASSERT_TRUE(endpoints_[0]->Flush().ok());
  windows_[0]->set_sign(kSigns[1]);
  EXPECT_EQ(Receive().message(), "node 1 lost its connection to node 0");
  EXPECT_EQ(target_, std::vector<std::byte>(2 * kBlock));
}

// The record of a block whose send has not been posted, behind that of one that has. Catches sends
// that are taken for others in the window, and memory that is read since its neighbour may be.
TEST_F(MemoryCopiesTest, NothingIsCopiedBeyondWhatWasSent) {
  PostRecv(1);
  ASSERT_TRUE(endpoints_[0]->Flush().ok());
  Forge(kept_[0].get(), {{.channel = ChannelId(0), .block = 1, .bytes = kBlock}});
  ASSERT_TRUE(Receive().ok());
  EXPECT_THAT(Receive().message(), HasSubstr("block 1 of message 0, which node 0 has not sent"));
  EXPECT_EQ(target_[kBlock], std::byte{0});
}

// The window says that the send has other bytes than the plan's block.
TEST_F(MemoryCopiesTest, SendsOfOtherSizesAreNotRead) {
  ASSERT_TRUE(endpoints_[0]->Flush().ok());
  windows_[0]->Add(0, 0, std::span(source_));
  EXPECT_THAT(Receive().message(), HasSubstr("which node 0 has not sent"));
  EXPECT_EQ(target_, std::vector<std::byte>(2 * kBlock));
}

// Somebody on the way notes that a block has come which is still being copied, so that its sender
// may write there. Catches copies of what is no send any more, in a message that goes on.
TEST_F(MemoryCopiesTest, CopiesOfASendThatIsOverDoNotCount) {
  ASSERT_TRUE(endpoints_[0]->Flush().ok());
  std::array<OpId, 8> ops;
  while (target_.front() == std::byte{0})
    ASSERT_TRUE(endpoints_[1]->Poll(ops, std::chrono::milliseconds(0)).ok());
  Forge(kept_[3].get(), {{.channel = kStartChannel, .block = 0, .bytes = 2 * kBlock},
                         {.channel = ChannelId(0), .block = 0, .bytes = kBlock}});
  size_t completed = 0;
  while (completed == 0) {
    const Result<PollOutcome> outcome = endpoints_[0]->Poll(ops, std::chrono::milliseconds(-1));
    ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
    completed = outcome->completed;
  }
  EXPECT_EQ(ops[0], OpId(1));
  std::ranges::fill(source_, std::byte{0xee});
  EXPECT_EQ(Receive().message(), "node 1 lost its connection to node 0");
}

// A reader may see an entry while it is written: of no mixture of two is anything read.
TEST(MemoryWindowTest, EntriesInParts) {
  const std::vector<std::byte> memory(100);
  MemoryWindow window;
  const auto& value = *reinterpret_cast<const MemoryWindow::Value*>(window.address());
  EXPECT_EQ(value.Find(0, 0), nullptr);
  window.Add(3, 5, std::span(memory).first(60));
  const MemoryWindow::Value before = value;
  ASSERT_NE(before.Find(3, 5), nullptr);
  EXPECT_EQ(before.Find(3, 5 + MemoryWindow::kSendsMax), nullptr);
  EXPECT_EQ(before.Find(2, 5), nullptr);
  window.Add(3, 5 + MemoryWindow::kSendsMax, std::span(memory).subspan(10, 50));  // ends there, too
  const MemoryWindow::Entry old = before.entries[5], now = value.entries[5];
  for (uint32_t parts = 1; parts < 15; ++parts) {
    MemoryWindow::Value mixed = before;
    mixed.entries[5] = {.send = (parts & 1) != 0 ? old.send : now.send,
                        .place = (parts & 2) != 0 ? old.place : now.place,
                        .bytes = (parts & 4) != 0 ? old.bytes : now.bytes,
                        .sum = (parts & 8) != 0 ? old.sum : now.sum};
    EXPECT_EQ(mixed.Find(3, 5), nullptr) << parts;
    EXPECT_EQ(mixed.Find(3, 5 + MemoryWindow::kSendsMax), nullptr) << parts;
  }
  EXPECT_NE(value.Find(3, 5 + MemoryWindow::kSendsMax), nullptr);
  window.Remove(5);
  EXPECT_EQ(value.Find(3, 5 + MemoryWindow::kSendsMax), nullptr);
}

TEST_F(MemoryCopiesTest, ReceiverCopiesTheBlock) {
  ASSERT_TRUE(endpoints_[0]->Flush().ok());
  ASSERT_TRUE(Receive().ok());
  EXPECT_TRUE(
      std::ranges::equal(std::span(target_).first(kBlock), std::span(source_).first(kBlock)));
}

/// More blocks than a window holds; the last has one byte, and goes over TCP.
class ManyCopiesTest : public MemoryCopiesTest {
 protected:
  static constexpr uint32_t kBlocks = 3 * MemoryWindow::kSendsMax;
  ManyCopiesTest() : MemoryCopiesTest(MakePlan()) {}

 private:
  static Plan MakePlan() {
    PlanBuilder builder(
        {.nodes = 2,
         .payload = *MakePayload(kBlocks * kReadBytesMin - kReadBytesMin + 1, kReadBytesMin)});
    const ChannelId blocks = builder.AddChannel({NodeId(0), NodeId(1), Lane::kBlocks});
    for (uint32_t node : {0u, 1u}) {
      builder.BeginProgram(NodeId(node));
      for (uint32_t block = 0; block < kBlocks; ++block)
        builder.AddOp(
            {.channel = blocks, .block = block, .kind = node == 0 ? OpKind::kSend : OpKind::kRecv});
    }
    return std::move(builder).Build();
  }
};

// Catches a send that takes the place of one that is still to be copied, and one that waits for
// room and is forgotten.
TEST_F(ManyCopiesTest, SendsWaitForRoomInTheWindow) {
  for (size_t i = 0; i < source_.size(); ++i) source_[i] = static_cast<std::byte>(i / 100);
  for (uint32_t block = 1; block < kBlocks; ++block) PostSend(block);
  ASSERT_TRUE(endpoints_[0]->Flush().ok());
  for (uint32_t block = 1; block < kBlocks; ++block) PostRecv(block);
  std::array<OpId, 8> ops;
  size_t completed[2] = {};
  while (completed[0] < kBlocks || completed[1] < kBlocks) {
    for (size_t node : {0u, 1u}) {
      const auto outcome = endpoints_[node]->Poll(ops, std::chrono::milliseconds(0));
      ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
      completed[node] += outcome->completed;
    }
  }
  EXPECT_EQ(target_, source_);
}

// The notes that make room are of blocks that went over TCP. Catches a send that only the note of a
// copied block wakes.
TEST_F(ManyCopiesTest, SendsWaitForRoomBehindSmallOnes) {
  const auto bytes = [](uint32_t block) {
    return block < MemoryWindow::kSendsMax ? kReadBytesMin / 4 : kReadBytesMin;
  };
  const auto part = [&](std::vector<std::byte>& of, uint32_t block) {
    return std::span(of).subspan(size_t{block} * kReadBytesMin, bytes(block));
  };
  for (uint32_t block = 1; block <= MemoryWindow::kSendsMax; ++block) {
    endpoints_[0]->PostSend({.op = OpId(block),
                             .channel = ChannelId(0),
                             .block = block,
                             .memory = part(source_, block)});
  }
  ASSERT_TRUE(endpoints_[0]->Flush().ok());
  for (uint32_t block = 1; block <= MemoryWindow::kSendsMax; ++block) {
    endpoints_[1]->PostRecv({.op = OpId(block),
                             .channel = ChannelId(0),
                             .block = block,
                             .memory = part(target_, block)});
  }
  std::array<OpId, 8> ops;
  size_t received = 0;
  for (int visits = 0; visits < 1000 && received <= MemoryWindow::kSendsMax; ++visits) {
    for (size_t node : {0u, 1u}) {
      const auto outcome = endpoints_[node]->Poll(ops, std::chrono::milliseconds(1));
      ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
      if (node == 1) received += outcome->completed;
    }
  }
  EXPECT_EQ(received, MemoryWindow::kSendsMax + 1);
}

/// Lets copies go on by so many bytes at a time, and holds every other one.
class SlowCopies final : public TcpHook {
 public:
  explicit SlowCopies(size_t bytes) : bytes_(bytes) {}
  size_t Limit(const TcpWay& way, size_t bytes) override {
    if (!way.is_copy) return bytes;
    EXPECT_EQ(way.self, NodeId(1));
    EXPECT_EQ(way.peer, NodeId(0));
    return ++asked_ % 2 == 0 ? bytes_ : 0;
  }
  int asked() const { return asked_; }

 private:
  const size_t bytes_;
  int asked_ = 0;
};

TEST_F(MemoryCopiesTest, HooksLimitAndHoldCopies) {
  SlowCopies hook(kBlock / 10);
  endpoints_[1]->set_hook(&hook);
  ASSERT_TRUE(endpoints_[0]->Flush().ok());
  ASSERT_TRUE(Receive().ok());
  EXPECT_EQ(hook.asked(), 2 * 11);  // a tenth of it is no whole number of bytes
  EXPECT_TRUE(
      std::ranges::equal(std::span(target_).first(kBlock), std::span(source_).first(kBlock)));
  SlowCopies cut(TcpHook::kCut);
  endpoints_[1]->set_hook(&cut);
  PostRecv(1);
  PostSend(1);
  ASSERT_TRUE(endpoints_[0]->Flush().ok());
  EXPECT_EQ(Receive().message(), "node 1 lost its connection to node 0");
}

// The sender's memory is its caller's again, but the news of it never arrives, as over a link that
// is cut. Catches copies that count for as long as the connection seems to be open.
TEST_F(MemoryCopiesTest, CopiesOfAGoneSendersMemoryDoNotCount) {
  ASSERT_TRUE(endpoints_[0]->Flush().ok());
  endpoints_[0].reset();
  std::ranges::fill(source_, std::byte{0xee});
  EXPECT_EQ(Receive().message(), "node 1 lost its connection to node 0");
  EXPECT_EQ(endpoints_[1]->lost_peer(), NodeId(0));
}

// As before, in the middle of a block.
TEST_F(MemoryCopiesTest, SenderThatGoesBetweenTwoPieces) {
  ASSERT_TRUE(endpoints_[0]->Flush().ok());
  std::array<OpId, 8> ops;
  while (target_.front() == std::byte{0}) {
    const Result<PollOutcome> outcome = endpoints_[1]->Poll(ops, std::chrono::milliseconds(0));
    ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
    ASSERT_EQ(outcome->completed, 0u);
  }
  endpoints_[0].reset();
  std::ranges::fill(source_, std::byte{0xee});
  EXPECT_EQ(Receive().message(), "node 1 lost its connection to node 0");
}

}  // namespace
}  // namespace prepost::tcp_endpoint_test
