// SPDX-License-Identifier: Apache-2.0
//
// TwoBlocksTest: two endpoints over any local transport with two blocks to move and a credit before
// each, driven by hand. The unit tests of endpoints derive from it.
#ifndef PREPOST_TESTS_SUPPORT_TWO_BLOCKS_H_
#define PREPOST_TESTS_SUPPORT_TWO_BLOCKS_H_

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include "tests/support/local_nodes.h"

namespace prepost::test {

/// Node 0 sends two blocks to node 1, each after a credit: channel 0 is 0>1, channel 1 the credits'
/// 1>0. At both nodes op 2b is the credit of block b, and op 2b + 1 the block.
inline Plan TwoBlocks(uint64_t block_bytes) {
  PlanBuilder builder({.nodes = 2,
                       .payload = *MakePayload(2 * block_bytes, block_bytes),
                       .ready = {.mode = ReadyMode::kWindow, .window = 1}});
  const ChannelId blocks = builder.AddChannel({NodeId(0), NodeId(1), Lane::kBlocks});
  const ChannelId credits = builder.AddChannel({NodeId(1), NodeId(0), Lane::kCredits});
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

class TwoBlocksTest : public ::testing::Test {
 protected:
  /// Starts afresh.
  void Connect(LocalNodes::Options options, uint64_t block_bytes = 1000) {
    nodes_.reset();
    for (auto& completed : completed_) completed.clear();
    plan_ = TwoBlocks(block_bytes);
    options.wake_fd = wake_.get();
    nodes_ = std::make_unique<LocalNodes>(Playable::Part(plan_), options);
  }

  Endpoint& node(uint32_t node) { return nodes_->endpoint(NodeId(node)); }
  void PostSend(uint32_t block) {
    node(0).PostSend(
        {.op = OpId(2 * block + 1),
         .channel = ChannelId(0),
         .block = block,
         .memory = nodes_->memory(NodeId(0)).source.subspan(
             plan_.header().payload.BlockOffset(block), plan_.header().payload.block_bytes)});
  }
  void PostRecv(uint32_t block) {
    node(1).PostRecv(
        {.op = OpId(2 * block + 1),
         .channel = ChannelId(0),
         .block = block,
         .memory = nodes_->memory(NodeId(1)).target.subspan(
             plan_.header().payload.BlockOffset(block), plan_.header().payload.block_bytes)});
  }
  void PostCreditSend(uint32_t block) {
    node(1).PostSend({.op = OpId(2 * block), .channel = ChannelId(1)});
  }
  void PostCreditRecv(uint32_t block) {
    node(0).PostRecv({.op = OpId(2 * block), .channel = ChannelId(1)});
  }

  /// One Poll(); what completed is added to completed_.
  PollOutcome Poll(uint32_t index, std::chrono::milliseconds timeout) {
    std::array<OpId, 8> ops;
    const Result<PollOutcome> outcome = node(index).Poll(ops, timeout);
    EXPECT_TRUE(outcome.ok()) << outcome.status().ToString();
    if (!outcome.ok()) return {};
    for (size_t i = 0; i < outcome->completed; ++i) completed_[index].push_back(ops[i].value);
    return *outcome;
  }
  /// Lets both nodes work until neither gets any further for a while.
  void Exchange() {
    for (int idle = 0; idle < 3 && !HasFailure();) {
      const uint64_t before = Progress();
      for (uint32_t index : {0u, 1u}) Poll(index, std::chrono::milliseconds(10));
      idle = Progress() == before ? idle + 1 : 0;
    }
  }
  uint64_t Progress() {
    uint64_t progress = 0;
    for (uint32_t index : {0u, 1u}) {
      progress += node(index).counters().bytes_moved + completed_[index].size();
    }
    return progress;
  }
  /// Polls until there is an error.
  Status Failure(uint32_t index) {
    std::array<OpId, 8> ops;
    for (;;) {
      const Result<PollOutcome> outcome = node(index).Poll(ops, std::chrono::milliseconds(-1));
      if (!outcome.ok()) return outcome.status();
    }
  }

  Plan plan_;
  FileDescriptor wake_{eventfd(0, 0)};
  std::unique_ptr<LocalNodes> nodes_;
  std::vector<uint32_t> completed_[2];  ///< by node, in order
};

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_TWO_BLOCKS_H_
