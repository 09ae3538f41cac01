// SPDX-License-Identifier: Apache-2.0
//
// TcpEndpoints of one machine, whose records go through memory that both ends have mapped and whose
// blocks their sender puts into its stage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "runtime/transport/shm/block_stage.h"
#include "runtime/transport/tcp/tcp_endpoint.h"
#include "runtime/transport/tcp/tcp_mesh.h"
#include "tests/support/random.h"
#include "tests/support/random_bytes.h"
#include "tests/support/shared_memory.h"

namespace prepost::tcp_memory_test {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr uint32_t kBlocks = 100;
constexpr uint64_t kBlockBytes = 5000;  // the smallest that are staged, and a half page
constexpr uint64_t kBytes = kBlocks * kBlockBytes - 4990;  // the last one is too small
constexpr uint32_t kAheadMax = 8;

/// Node 0 sends each block to nodes 1 and 2, by channels 0 and 1.
Plan MakePlan() {
  PlanBuilder builder({.nodes = 3, .payload = *MakePayload(kBytes, kBlockBytes)});
  std::array<ChannelId, 2> channels;
  for (uint32_t to : {1u, 2u})
    channels[to - 1] = builder.AddChannel({NodeId(0), NodeId(to), Lane::kBlocks});
  builder.BeginProgram(NodeId(0));
  for (uint32_t block = 0; block < kBlocks; ++block) {
    for (const ChannelId channel : channels)
      builder.AddOp({.channel = channel, .block = block, .kind = OpKind::kSend});
  }
  for (const ChannelId channel : channels) {
    builder.BeginProgram(NodeId(channel.value + 1));
    for (uint32_t block = 0; block < kBlocks; ++block)
      builder.AddOp({.channel = channel, .block = block, .kind = OpKind::kRecv});
  }
  return std::move(builder).Build();
}

class TcpMemoryTest : public testing::Test {
 protected:
  TcpMemoryTest() { test::ShareMemory(mesh_); }

  void Open(bool in_step) {
    for (const TcpSocket& socket : mesh_[0]) stage_ = socket.stage ? socket.stage : stage_;
    for (uint32_t node = 0; node < 3; ++node) OpenNode(node, in_step);
    for (uint32_t block = 0; block < kBlocks; ++block) {
      for (uint32_t to : {1u, 2u}) PostRecv(to, block);
      for (uint32_t to : {1u, 2u}) PostSend(to, block);
    }
  }
  void OpenNode(uint32_t node, bool in_step = false) {
    endpoints_[node] =
        *TcpEndpoint::Make(NodeId(node), std::move(mesh_[node]), /*wake_fd=*/-1, /*ahead_max=*/2);
    endpoints_[node]->set_in_step(in_step);
    ASSERT_TRUE(
        endpoints_[node]
            ->Begin(Playable::Part(plan_), {.number = 0, .bytes = plan_.header().payload.bytes})
            .ok());
  }
  std::span<std::byte> At(std::vector<std::byte>& memory, uint32_t block) const {
    return std::span(memory).subspan(block * kBlockBytes, plan_.header().payload.BlockSize(block));
  }
  void PostRecv(uint32_t to, uint32_t block) {
    endpoints_[to]->PostRecv({.op = OpId(block),
                              .channel = ChannelId(to - 1),
                              .block = block,
                              .memory = At(targets_[to], block)});
  }
  void PostSend(uint32_t to, uint32_t block) {
    endpoints_[0]->PostSend({.op = OpId(2 * block + to - 1),
                             .channel = ChannelId(to - 1),
                             .block = block,
                             .memory = At(source_, block)});
  }
  /// Each of `nodes` once; what completes is counted.
  Status Poll(std::initializer_list<uint32_t> nodes) {
    for (const uint32_t node : nodes) {
      std::array<OpId, 8> ops;
      const Result<PollOutcome> outcome = endpoints_[node]->Poll(ops, milliseconds(0));
      if (!outcome.ok()) return outcome.status();
      completed_[node] += outcome->completed;
    }
    return {};
  }
  void PollAll() {
    for (int i = 0; i < 10'000 && completed_[0] < 2 * kBlocks; ++i)
      ASSERT_TRUE(Poll({0, 1, 2}).ok());
    EXPECT_EQ(completed_, (std::array<size_t, 3>{2 * kBlocks, kBlocks, kBlocks}));
    for (uint32_t to : {1u, 2u}) EXPECT_EQ(targets_[to], source_) << to;
  }

  const Plan plan_ = MakePlan();
  TcpMesh mesh_ = *MakeTcpMesh(Playable::Part(plan_));
  std::shared_ptr<BlockStage> stage_;
  std::vector<std::byte> source_ = test::RandomBytes(kBytes);
  std::array<std::vector<std::byte>, 3> targets_ = {
      {{}, std::vector<std::byte>(source_.size()), std::vector<std::byte>(source_.size())}};
  std::array<std::unique_ptr<TcpEndpoint>, 3> endpoints_;
  std::array<size_t, 3> completed_ = {};
};

// Catches a receiver that runs away from one that gets no processor, so that the other finds none
// of its blocks in a cache; and one that waits for ever for who has all it is to have.
TEST_F(TcpMemoryTest, InStepNobodyIsFarAhead) {
  Open(/*in_step=*/true);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(Poll({0, 1}).ok());
  EXPECT_EQ(completed_[1], kAheadMax);
  PollAll();
}

// Nodes that wait for each other may need any number. Catches a bound that would be their deadlock.
TEST_F(TcpMemoryTest, OutOfStepNobodyWaitsForAnother) {
  Open(/*in_step=*/false);
  for (int i = 0; i < 10'000 && completed_[1] < kBlocks; ++i) ASSERT_TRUE(Poll({0, 1}).ok());
  EXPECT_EQ(completed_[1], kBlocks);
  PollAll();
}

// However much of the stage others have. Catches blocks that wait for a place that is not theirs,
// and places that are lost.
TEST_F(TcpMemoryTest, WhereTheStageIsFullTheConnectionCarriesThem) {
  const std::vector<std::byte> others(BlockStage::kPlaces);
  for (uint32_t taken = 0; taken <= BlockStage::kPlaces; taken += taken < 35 ? 7 : 1) {
    SCOPED_TRACE(taken);
    mesh_ = *MakeTcpMesh(Playable::Part(plan_));
    test::ShareMemory(mesh_);
    for (uint32_t to : {1u, 2u}) targets_[to].assign(source_.size(), std::byte{0});
    completed_ = {};
    Open(/*in_step=*/false);
    for (uint32_t i = 0; i < taken; ++i) ASSERT_TRUE(stage_->Add(std::span(others).subspan(i, 1)));
    PollAll();
    EXPECT_EQ(stage_->free_places(), BlockStage::kPlaces - taken);
  }
}

// What a send's memory is afterwards is its caller's. Catches a block that is found in the stage by
// its address, with the bytes of the message before.
TEST_F(TcpMemoryTest, TheNextMessageOfTheSameMemoryIsAnother) {
  Open(/*in_step=*/true);
  PollAll();
  for (uint32_t number = 1; number < 4; ++number) {
    source_ = test::RandomBytes(source_.size());
    completed_ = {};
    for (const auto& endpoint : endpoints_) {
      endpoint->End();
      ASSERT_TRUE(endpoint
                      ->Begin(Playable::Part(plan_),
                              {.number = number, .bytes = plan_.header().payload.bytes})
                      .ok());
    }
    for (uint32_t block = 0; block < kBlocks; ++block) {
      for (uint32_t to : {1u, 2u}) PostRecv(to, block);
      for (uint32_t to : {1u, 2u}) PostSend(to, block);
    }
    PollAll();
  }
}

// A sender that lies about where its block is.
TEST_F(TcpMemoryTest, OnlyPlacesOfTheStageAreRead) {
  for (const uint64_t place :
       {uint64_t{BlockStage::kPlaces} + 1, uint64_t{0x7fff}, uint64_t{0xffff}}) {
    SCOPED_TRACE(place);
    mesh_ = *MakeTcpMesh(Playable::Part(plan_));
    test::ShareMemory(mesh_);
    TcpSocket& liar = *std::ranges::find_if(mesh_[0], [](const TcpSocket& it) {
      return it.peer == NodeId(1) && it.lane == Lane::kBlocks;
    });
    OpenNode(1);
    PostRecv(1, 0);
    std::array<std::byte, 2 * kRecordBytes> records;
    EncodeRecord({.channel = kStartChannel, .block = 0, .bytes = source_.size()},
                 std::span(records).first<kRecordBytes>());
    EncodeRecord({.channel = ChannelId(0), .block = 0, .bytes = kBlockBytes | place << kPieceShift},
                 std::span(records).last<kRecordBytes>());
    const iovec bytes = {.iov_base = records.data(), .iov_len = records.size()};
    ASSERT_EQ(liar.memory->Write(std::span(&bytes, 1)).bytes, records.size());
    Status status;
    for (int i = 0; i < 100 && status.ok(); ++i) status = Poll({1});
    EXPECT_THAT(status.message(), HasSubstr("expected 0>1 lane 0, block 0, 5000 bytes"));
    EXPECT_EQ(targets_[1], std::vector<std::byte>(source_.size()));
  }
}

// Memory outlives a process. Catches one that is waited for since its memory is there, and silent.
TEST_F(TcpMemoryTest, APeerThatEndsIsMissed) {
  Open(/*in_step=*/false);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Poll({0, 1}).ok());
  endpoints_[0].reset();
  Status status;
  for (int i = 0; i < 1000 && status.ok(); ++i) status = Poll({1});
  EXPECT_EQ(status.message(), "node 1 lost its connection to node 0");
  EXPECT_EQ(endpoints_[1]->lost_peer(), NodeId(0));
}

}  // namespace
}  // namespace prepost::tcp_memory_test
