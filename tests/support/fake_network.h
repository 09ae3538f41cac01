// SPDX-License-Identifier: Apache-2.0
//
// FakeNetwork: endpoints of all nodes in one thread, with memory for a wire. A seeded adversary
// picks which message is delivered next and which completion is seen next, within what Endpoint
// promises (channel order).
#ifndef PREPOST_TESTS_SUPPORT_FAKE_NETWORK_H_
#define PREPOST_TESTS_SUPPORT_FAKE_NETWORK_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "runtime/executor/endpoint.h"

namespace prepost::test {

class FakeNetwork {
 public:
  FakeNetwork(const Plan& plan, uint64_t seed) : plan_(plan), random_(seed) {
    wires_.resize(plan.channels().size());
    for (uint32_t node = 0; node < plan.header().nodes; ++node) {
      nodes_.push_back(std::make_unique<Node>(*this, NodeId(node)));
    }
  }

  Endpoint& At(NodeId node) { return *nodes_[node.index()]; }

  /// Delivers one message that is sent and has its receive posted; false if there is none.
  bool DeliverOne() {
    std::vector<Wire*> ready;
    for (Wire& wire : wires_) {
      if (!wire.sends.empty() && !wire.receives.empty()) ready.push_back(&wire);
    }
    if (ready.empty()) return false;
    Wire& wire = *ready[random_() % ready.size()];
    const Channel& channel = plan_.channels()[static_cast<size_t>(&wire - wires_.data())];
    const SendRequest send = wire.sends.front();
    const RecvRequest receive = wire.receives.front();
    wire.sends.pop_front();
    wire.receives.pop_front();
    EXPECT_EQ(send.block, receive.block);
    EXPECT_EQ(send.memory.size(), receive.memory.size());
    std::ranges::copy(send.memory, receive.memory.begin());
    if (receive.block != kNoBlock) --nodes_[channel.to.index()]->open_blocks;
    nodes_[channel.to.index()]->completed.push_back(receive.op);
    notes_.push_back({channel.from, send.op});
    return true;
  }

  /// Reports to one sender that its send was delivered, some time after; false if there is nothing
  /// to report.
  bool NoteOne() {
    if (notes_.empty()) return false;
    const size_t pick = random_() % notes_.size();
    // Notes of one channel stay in order.
    const auto note =
        std::ranges::find_if(notes_, [&](const Note& n) { return SameChannel(n, notes_[pick]); });
    nodes_[note->node.index()]->completed.push_back(note->op);
    notes_.erase(note);
    return true;
  }

  uint64_t Random(uint64_t below) { return random_() % below; }
  /// Sends that were posted before their receive.
  uint64_t early() const { return early_; }
  /// The most block receives that node had open at a time.
  size_t open_blocks_max(NodeId node) const { return nodes_[node.index()]->open_blocks_max; }

 private:
  struct Wire {
    std::deque<SendRequest> sends;
    std::deque<RecvRequest> receives;
  };
  struct Note {
    NodeId node;
    OpId op;
  };

  class Node final : public Endpoint {
   public:
    Node(FakeNetwork& network, NodeId node) : network_(network), node_(node) {}

    void PostRecv(const RecvRequest& request) override {
      EXPECT_EQ(network_.plan_.channels()[request.channel.index()].to, node_);
      network_.wires_[request.channel.index()].receives.push_back(request);
      if (request.block != kNoBlock) open_blocks_max = std::max(open_blocks_max, ++open_blocks);
    }
    void PostSend(const SendRequest& request) override {
      EXPECT_EQ(network_.plan_.channels()[request.channel.index()].from, node_);
      Wire& wire = network_.wires_[request.channel.index()];
      wire.sends.push_back(request);
      if (wire.sends.size() > wire.receives.size()) ++network_.early_;
    }
    Result<PollOutcome> Poll(std::span<OpId> out, std::chrono::milliseconds) override {
      const size_t count = std::min({out.size(), completed.size(), network_.Random(4)});
      for (size_t i = 0; i < count; ++i) {
        out[i] = completed.front();
        completed.pop_front();
      }
      return PollOutcome{.completed = count};
    }
    Status Flush() override { return {}; }
    bool quiet() const override { return true; }
    std::optional<NodeId> lost_peer() const override { return std::nullopt; }
    EndpointCounters counters() const override { return {}; }

    std::deque<OpId> completed;
    size_t open_blocks = 0;
    size_t open_blocks_max = 0;

   private:
    FakeNetwork& network_;
    NodeId node_;
  };

  bool SameChannel(const Note& a, const Note& b) const {
    return a.node == b.node && ChannelOf(a) == ChannelOf(b);
  }
  ChannelId ChannelOf(const Note& note) const {
    for (const Program& program : plan_.programs()) {
      if (program.node == note.node) return plan_.ops(program)[note.op.index()].channel;
    }
    return {};
  }

  const Plan& plan_;
  std::mt19937_64 random_;
  std::vector<Wire> wires_;  ///< by channel
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<Note> notes_;
  uint64_t early_ = 0;
};

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_FAKE_NETWORK_H_
