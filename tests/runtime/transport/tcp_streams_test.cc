// SPDX-License-Identifier: Apache-2.0
//
// TCP connections of several streams: what may arrive in which order, and what may not arrive at
// all. cpu_executor_test.cc plays all plans over them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <memory>
#include <vector>

#include "runtime/transport/tcp/tcp_endpoint.h"
#include "runtime/transport/tcp/tcp_mesh.h"
#include "runtime/transport/tcp/tcp_path.h"
#include "tests/support/random_bytes.h"
#include "tests/support/tcp_disturbance.h"
#include "tests/support/two_blocks.h"

namespace prepost::tcp_streams_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Holds what node 0 writes on some of its streams.
class HeldStreams final : public TcpHook {
 public:
  explicit HeldStreams(std::vector<uint16_t> held) : held_(std::move(held)) {}
  size_t Limit(const TcpWay& way, size_t bytes) override {
    const bool is_held = way.is_send && way.lane == Lane::kBlocks &&
                         std::ranges::find(held_, way.stream) != held_.end();
    return is_held ? 0 : bytes;
  }
  void Release() { held_.clear(); }

 private:
  std::vector<uint16_t> held_;
};

/// Node 0 sends node 1 messages of `kBlocks` blocks; the endpoints are driven by hand.
class TcpStreamsTest : public testing::Test {
 protected:
  static constexpr uint64_t kBlockBytes = 100'000;  // several pieces
  static constexpr uint32_t kBlocks = 6;
  static constexpr uint16_t kStreams = 3;

  TcpStreamsTest() { Connect(); }

  /// Starts afresh.
  void Connect() {
    files_.clear();
    PlanBuilder builder({.nodes = 2,
                         .payload = *MakePayload(kBlocks * kBlockBytes, kBlockBytes),
                         .ready = {.mode = ReadyMode::kBarrier}});
    const ChannelId channel = builder.AddChannel({NodeId(0), NodeId(1), Lane::kBlocks});
    for (const uint32_t node : {0u, 1u}) {
      builder.BeginProgram(NodeId(node));
      for (uint32_t block = 0; block < kBlocks; ++block) {
        builder.AddOp({.channel = channel,
                       .block = block,
                       .kind = node == 0 ? OpKind::kSend : OpKind::kRecv});
      }
    }
    plan_ = std::move(builder).Build();
    Result<TcpMesh> mesh = MakeTcpMesh(Playable::Part(plan_), kStreams);
    EXPECT_TRUE(mesh.ok()) << mesh.status().ToString();
    for (const size_t node : {0u, 1u}) {
      for (const TcpSocket& socket : (*mesh)[node]) {
        if (node == 0 && socket.lane == Lane::kBlocks) files_.push_back(socket.fd.get());
      }
      auto endpoint = TcpEndpoint::Make(NodeId::FromIndex(node), std::move((*mesh)[node]),
                                        /*wake_fd=*/-1, /*ahead_max=*/2);
      EXPECT_TRUE(endpoint.ok()) << endpoint.status().ToString();
      endpoints_[node] = *std::move(endpoint);
    }
  }

  /// `number`: of the message, which node `node` begins.
  void Begin(size_t node, uint32_t number) {
    const MessageStart start = {.number = number, .bytes = kBlocks * kBlockBytes};
    ASSERT_TRUE(endpoints_[node]->Begin(Playable::Part(plan_), start).ok());
  }
  void Post(size_t node, uint32_t block) {
    const auto memory = std::span(memory_[node]).subspan(block * kBlockBytes, kBlockBytes);
    if (node == 0) {
      endpoints_[0]->PostSend(
          {.op = OpId(block), .channel = ChannelId(0), .block = block, .memory = memory});
    } else {
      endpoints_[1]->PostRecv(
          {.op = OpId(block), .channel = ChannelId(0), .block = block, .memory = memory});
    }
  }
  void PostAll(size_t node) {
    for (uint32_t block = 0; block < kBlocks; ++block) Post(node, block);
  }
  /// Until nothing moves for a while, or there is an error, which is returned.
  Status Exchange() {
    for (int idle = 0; idle < 5;) {
      size_t moved = 0;
      for (const size_t node : {0u, 1u}) {
        std::array<OpId, 8> ops;
        const uint64_t before = endpoints_[node]->counters().bytes_moved;
        const auto outcome = endpoints_[node]->Poll(ops, std::chrono::milliseconds(2));
        if (!outcome.ok()) return outcome.status();
        for (size_t i = 0; i < outcome->completed; ++i) completed_[node].push_back(ops[i].value);
        moved += outcome->completed + endpoints_[node]->counters().bytes_moved - before;
      }
      idle = moved == 0 ? idle + 1 : 0;
    }
    return {};
  }
  /// What node 1 says of `record`, which comes on the first stream behind the message's start.
  std::string Refusal(const Record& record) {
    Begin(1, 0);
    PostAll(1);
    Say({.channel = kStartChannel, .block = 0, .bytes = kBlocks * kBlockBytes});
    Say(record);
    return Exchange().message();
  }
  void Say(const Record& record, size_t stream = 0) {
    std::array<std::byte, kRecordBytes> bytes;
    EncodeRecord(record, bytes);
    ASSERT_EQ(send(files_[stream], bytes.data(), bytes.size(), 0), ssize_t{kRecordBytes});
  }

  Plan plan_;
  std::array<std::vector<std::byte>, 2> memory_ = {
      test::RandomBytes(kBlocks * kBlockBytes),
      std::vector<std::byte>(kBlocks* kBlockBytes, std::byte{0xee})};
  std::vector<int> files_;  ///< of node 0's streams
  std::array<std::unique_ptr<TcpEndpoint>, 2> endpoints_;
  std::array<std::vector<uint32_t>, 2> completed_;  ///< by node, in order
};

// Catches pieces at wrong places, a block that is complete before all of its pieces are, and one
// that is said to be before the one that stands before it.
TEST_F(TcpStreamsTest, BlocksCompleteInOrder) {
  test::TcpDisturbance disturbance(/*seed=*/7);
  for (auto& endpoint : endpoints_) endpoint->set_hook(&disturbance);
  for (const size_t node : {1u, 0u}) {
    Begin(node, 0);
    PostAll(node);
  }
  while (completed_[0].size() < kBlocks && !HasFailure()) ASSERT_TRUE(Exchange().ok());
  EXPECT_THAT(completed_[1], ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(completed_[0], completed_[1]);
  EXPECT_EQ(memory_[1], memory_[0]);
}

// Catches a connection that waits for the slowest of its streams: what the others have room for
// goes on, and only what the slow one has taken is missing.
TEST_F(TcpStreamsTest, AStreamThatStandsStillHoldsUpItsOwnPieces) {
  HeldStreams held({1});
  endpoints_[0]->set_hook(&held);
  for (const size_t node : {1u, 0u}) {
    Begin(node, 0);
    PostAll(node);
  }
  ASSERT_TRUE(Exchange().ok());
  EXPECT_TRUE(completed_[1].empty());  // of the first block a piece is missing
  const auto missing = static_cast<size_t>(std::ranges::count(memory_[1], std::byte{0xee}));
  EXPECT_LT(missing, 2 * kBlockBytes);
  held.Release();
  while (completed_[0].size() < kBlocks && !HasFailure()) ASSERT_TRUE(Exchange().ok());
  EXPECT_EQ(memory_[1], memory_[0]);
}

// Catches a piece that is lost, or taken for another one, because its receive is not posted yet.
TEST_F(TcpStreamsTest, PiecesWaitForTheirReceives) {
  for (const size_t node : {1u, 0u}) Begin(node, 0);
  PostAll(0);
  ASSERT_TRUE(Exchange().ok());
  for (uint32_t block = 0; block < kBlocks; ++block) {
    EXPECT_EQ(completed_[1].size(), block);
    Post(1, block);
    ASSERT_TRUE(Exchange().ok());
  }
  EXPECT_THAT(completed_[1], ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(memory_[1], memory_[0]);
}

// Streams of one message end at different times: catches one that has begun the next message, and
// is taken for wrong, or for all of them.
TEST_F(TcpStreamsTest, AStreamMayBeInTheNextMessage) {
  HeldStreams held({2});
  endpoints_[0]->set_hook(&held);
  for (const size_t node : {1u, 0u}) {
    Begin(node, 0);
    PostAll(node);
  }
  ASSERT_TRUE(Exchange().ok());
  // Which may be any later one: those between had no piece for this stream.
  Say({.channel = kStartChannel, .block = 2, .bytes = kBlocks * kBlockBytes});
  ASSERT_TRUE(Exchange().ok());
  ASSERT_TRUE(endpoints_[1]->announced().has_value());
  EXPECT_EQ(endpoints_[1]->announced()->number, 2u);
  held.Release();
  while (completed_[0].size() < kBlocks && !HasFailure()) ASSERT_TRUE(Exchange().ok());
  EXPECT_EQ(memory_[1], memory_[0]);
}

// Node 1 says nothing: catches a message that waits for the notes of the one before, and notes that
// are taken for those of another message, or for wrong.
TEST_F(TcpStreamsTest, TheNextMessageNeedNotWaitForNotes) {
  class Silence final : public TcpHook {
   public:
    size_t Limit(const TcpWay& way, size_t bytes) override {
      return is_silent && way.is_send && way.self == NodeId(1) ? 0 : bytes;
    }
    bool is_silent = true;
  } silence;
  endpoints_[1]->set_hook(&silence);
  endpoints_[0]->set_ends_early(true);
  for (uint32_t message = 0; message < 4; ++message) {
    SCOPED_TRACE(message);
    if (message == 3) endpoints_[0]->set_ends_early(false);
    for (auto& completed : completed_) completed.clear();
    for (const size_t node : {1u, 0u}) {
      Begin(node, message);
      PostAll(node);
    }
    if (message == 1) {  // which is over only when the one before is known to be
      ASSERT_TRUE(Exchange().ok());
      EXPECT_TRUE(completed_[0].empty());
      EXPECT_EQ(completed_[1].size(), kBlocks);
      silence.is_silent = false;
    }
    while ((completed_[0].size() < kBlocks || completed_[1].size() < kBlocks) && !HasFailure())
      ASSERT_TRUE(Exchange().ok());
    EXPECT_THAT(completed_[0], ElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_EQ(memory_[1], memory_[0]);
    for (auto& endpoint : endpoints_) endpoint->End();
  }
}

// Catches memory that is written where a record says and nobody has checked.
TEST_F(TcpStreamsTest, RefusesPiecesThatMakeNoSense) {
  const ChannelId wire = WireChannel({NodeId(0), NodeId(1), Lane::kBlocks});
  const uint64_t piece = uint64_t{32} << 10;
  const char* const why = "expected a piece of a block that is to come";
  EXPECT_THAT(Refusal({.channel = wire, .block = 0, .bytes = piece | uint64_t{9} << kPieceShift}),
              HasSubstr(why));
  for (const Record& record :
       {Record{.channel = wire, .block = 0, .bytes = kBlockBytes},
        Record{.channel = wire, .block = 0, .bytes = piece | uint64_t{3} << kPieceShift},
        Record{.channel = wire, .block = 77, .bytes = piece},
        Record{.channel = ChannelId(5), .block = 0, .bytes = piece}}) {
    Connect();
    EXPECT_THAT(Refusal(record), HasSubstr(why));
  }
}

// The same piece on two streams: catches one that is written after its block is complete, when the
// memory is somebody else's.
TEST_F(TcpStreamsTest, RefusesAPieceTwice) {
  const ChannelId wire = WireChannel({NodeId(0), NodeId(1), Lane::kBlocks});
  const Record start = {.channel = kStartChannel, .block = 0, .bytes = kBlocks * kBlockBytes};
  Begin(1, 0);
  PostAll(1);
  for (const size_t stream : {0u, 1u}) {
    Say(start, stream);
    Say({.channel = wire, .block = 0, .bytes = uint64_t{32} << 10}, stream);
  }
  EXPECT_THAT(Exchange().message(), HasSubstr("expected a piece of a block that is to come"));
}

// Stream 0 says only now that the message before begins: catches that it is taken for wrong.
TEST_F(TcpStreamsTest, AStartMayComeAfterItsMessage) {
  for (uint32_t message = 0; message < 2; ++message) {
    for (auto& completed : completed_) completed.clear();
    Begin(1, message);
    if (message == 1) Say({.channel = kStartChannel, .block = 0, .bytes = kBlocks * kBlockBytes});
    Begin(0, message);
    for (const size_t node : {1u, 0u}) PostAll(node);
    while (completed_[0].size() < kBlocks && !HasFailure()) ASSERT_TRUE(Exchange().ok());
    EXPECT_EQ(memory_[1], memory_[0]);
  }
}

TEST(TcpPathTest, OptionsAreChecked) {
  EXPECT_TRUE(CheckPathOptions({}).ok());
  EXPECT_TRUE(CheckPathOptions({.streams = kStreamsMax, .pace = 1e6, .congestion = "reno"}).ok());
  EXPECT_EQ(CheckPathOptions({.streams = kStreamsMax + 1}).code(), StatusCode::kUsage);
  EXPECT_EQ(CheckPathOptions({.pace = -1}).code(), StatusCode::kUsage);
  EXPECT_EQ(CheckPathOptions({.pace = HUGE_VAL}).code(), StatusCode::kUsage);
  EXPECT_THAT(CheckPathOptions({.congestion = "none of these"}).message(), HasSubstr("reno"));
}

}  // namespace
}  // namespace prepost::tcp_streams_test
