// SPDX-License-Identifier: Apache-2.0
//
// What runs and groups rely on of any PlayerDevice (runtime/device/player_device.h), of each in the
// table of engines. Whole groups over devices, also across processes, are in tests/differential and
// tests/library.
#include <gmock/gmock.h>

#include <atomic>
#include <optional>
#include <span>

#include "tests/support/engines.h"
#include "tests/support/plans.h"
#include "tests/support/playing_nodes.h"
#include "tests/support/sessions.h"

namespace prepost::player_device_test {
namespace {

using std::chrono::milliseconds;
using test::CompileOrDie;
using test::NodesDevices;
using test::OpenDevices;
using test::PlayingNode;
using test::PlayingNodes;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;
using Options = PlayingNode::Options;

constexpr std::byte kFill{0x5a};

/// A message and where the nodes of its plan have it.
class Message {
 public:
  Message(const VerifiedPlan& plan, uint64_t seed)
      : root_(plan.header().collective.root.value),
        sent_(test::Bytes(plan.header().payload.bytes, seed)),
        buffers_(plan.header().nodes) {
    for (auto& buffer : buffers_) buffer.resize(sent_.size());
    buffers_[root_] = sent_;
  }

  NodeMemory At(uint32_t node) {
    std::vector<std::byte>& buffer = buffers_[node];
    if (node == root_) return {.source = buffer, .target = {}};
    return {.source = buffer, .target = buffer};
  }
  const std::vector<std::byte>& sent() const { return sent_; }
  std::vector<std::byte>& buffer(uint32_t node) { return buffers_[node]; }
  void Fill(uint32_t node) { std::ranges::fill(buffers_[node], kFill); }
  bool IsFilled(uint32_t node) const {
    return std::ranges::all_of(buffers_[node], [](std::byte it) { return it == kFill; });
  }
  void ExpectDelivered() const {
    for (size_t node = 0; node < buffers_.size(); ++node)
      EXPECT_EQ(buffers_[node], sent_) << "node " << node;
  }

 private:
  const uint32_t root_;
  const std::vector<std::byte> sent_;
  std::vector<std::vector<std::byte>> buffers_;
};

Spec SpecOf(const std::string& algorithm, uint32_t nodes, uint64_t bytes, uint64_t block_bytes,
            Ready ready) {
  Spec spec;
  spec.nodes = nodes;
  spec.message_bytes = bytes;
  spec.block_bytes = block_bytes;
  spec.algorithm = algorithm;
  spec.ready = {.automatic = false, .ready = ready};
  return spec;
}
constexpr Ready kBarrier = {.mode = ReadyMode::kBarrier};
constexpr Ready kWindow = {.mode = ReadyMode::kWindow, .window = 1};

/// A message that takes a while.
VerifiedPlan LongPlan() { return test::PlanWithWindowsOf1("chain", 2, 300, 1000); }

/// How a player ends before its message has.
struct EarlyEnd {
  bool is_stopped;  ///< and destroyed later
  bool has_begun;   ///< something of the message has passed

  std::string ToString() const {
    return fmt::format("{} {}", is_stopped ? "stopped" : "destroyed",
                       has_begun ? "in the middle" : "after its start");
  }
  /// What the node does. Its memory is the test's again.
  Status Play(PlayingNode& its) const {
    const uint64_t before = its.player().AskProgress();
    its.player().Start();
    const Status polled =
        its.Poll([&] { return !has_begun || its.player().AskProgress() != before; });
    if (is_stopped) {
      its.player().Stop();
    } else {
      its.EndPlayer();
    }
    return polled;
  }
};
constexpr EarlyEnd kEarlyEnds[] = {{true, false}, {false, false}, {true, true}, {false, true}};

/// What its peer does until then, and for some time after. That the node is gone may be an error.
Status PlayOn(PlayingNode& its, const std::atomic<bool>& has_ended) {
  its.player().Start();
  if (its.Poll([&] { return has_ended.load(); }).ok())
    static_cast<void>(its.PollFor(milliseconds(40)));
  its.EndPlayer();
  return {};
}

class PlayerDeviceTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { PREPOST_SKIP_IF_NOT_THERE(engine_); }

  const std::string& device() const { return engine_.device; }
  bool can_offload() const { return engine_.can_prepost(); }
  /// Whether nodes are preposted.
  std::vector<bool> Ways() const {
    return can_offload() ? std::vector{false, true} : std::vector{false};
  }
  static std::string NameOf(bool is_preposted) { return is_preposted ? "preposted" : "driven"; }

  /// Nodes with devices of their own. Those of the last call must be gone.
  std::unique_ptr<PlayingNodes> NodesOf(const VerifiedPlan& plan, bool is_preposted) {
    auto devices = OpenDevices(device(), plan.header().nodes, is_preposted);
    EXPECT_TRUE(devices.ok()) << devices.status().ToString();
    if (!devices.ok()) return nullptr;
    devices_ = *std::move(devices);
    return MoreNodes(0, plan, is_preposted);
  }
  /// The same nodes, with their devices `index`.
  std::unique_ptr<PlayingNodes> MoreNodes(uint32_t index, const VerifiedPlan& plan,
                                          bool is_preposted) {
    auto nodes = PlayingNodes::Make([&](uint32_t node) { return devices_[node]->Open(index); },
                                    plan, std::vector(plan.header().nodes, is_preposted));
    EXPECT_TRUE(nodes.ok()) << nodes.status().ToString();
    return nodes.ok() ? *std::move(nodes) : nullptr;
  }

  /// Players at all nodes.
  static testing::AssertionResult Make(PlayingNodes& nodes, const VerifiedPlan& plan,
                                       Message& message, const Options& options = {}) {
    return nodes.All(
        [&](uint32_t node, PlayingNode& its) { return its.Make(plan, message.At(node), options); });
  }
  static testing::AssertionResult StartAndPoll(PlayingNodes& nodes) {
    return nodes.All([](uint32_t, PlayingNode& its) { return its.StartAndPoll(); });
  }
  static void Reconnect(PlayingNodes& nodes, const VerifiedPlan& plan) {
    TcpMesh mesh = *MakeTcpMesh(plan);
    for (uint32_t node = 0; node < mesh.size(); ++node)
      nodes[node].Reconnect(std::move(mesh[node]));
  }
  static void PlayOnce(PlayingNodes& nodes, const VerifiedPlan& plan, uint64_t seed,
                       const Options& options = {}) {
    Message message(plan, seed);
    ASSERT_TRUE(Make(nodes, plan, message, options));
    ASSERT_TRUE(StartAndPoll(nodes));
    nodes.EndPlayers();
    message.ExpectDelivered();
  }

  /// A player at node 0, or why there is none.
  static Status MakeAtNode0(PlayingNodes& nodes, const VerifiedPlan& plan, Message& message,
                            const Options& options) {
    return nodes.At(0, [&](uint32_t node, PlayingNode& its) {
      return its.Make(plan, message.At(node), options);
    });
  }

  /// In each way to end early: a player at node `ending` ends, and its memory is filled with
  /// something else, while its peer plays on; then `check`.
  void ForEachEarlyEnd(uint32_t ending, const std::function<void(Message&)>& check) {
    const VerifiedPlan plan = LongPlan();
    for (const bool is_preposted : Ways()) {
      for (const EarlyEnd end : kEarlyEnds) {
        SCOPED_TRACE(NameOf(is_preposted) + " " + end.ToString());
        const auto nodes = NodesOf(plan, is_preposted);
        ASSERT_NE(nodes, nullptr);
        Message message(plan, 1);
        ASSERT_TRUE(Make(*nodes, plan, message, {.is_kept = true}));
        std::atomic<bool> has_ended = false;
        const auto begin_peer = [&] {
          return nodes->Begin(1 - ending,
                              [&](uint32_t, PlayingNode& its) { return PlayOn(its, has_ended); });
        };
        // Nothing comes to a receiver that has not begun.
        const bool is_late = ending == 1 && !end.has_begun;
        std::future<Status> peer;
        if (!is_late) peer = begin_peer();
        const Status ended = nodes->At(ending, [&](uint32_t, PlayingNode& its) {
          const Status played = end.Play(its);
          message.Fill(ending);
          return played;
        });
        has_ended = true;
        EXPECT_TRUE(ended.ok()) << ended.ToString();
        if (is_late) peer = begin_peer();
        EXPECT_TRUE(peer.get().ok());
        check(message);
      }
    }
  }

  NodesDevices devices_;  ///< opened ones go first
  const test::Engine& engine_ = test::EngineOf(GetParam());
};

// Catches bytes that are lost, moved or cut off where the last block is short, where there is none,
// and where no node is to be sent anything.
TEST_P(PlayerDeviceTest, MovesEveryByte) {
  const std::vector<Spec> specs = {SpecOf("binomial_pipeline", 4, 5 * 1000 + 17, 1000, kWindow),
                                   SpecOf("chain", 3, 4 * 300 + 1, 300, kBarrier),
                                   SpecOf("chain", 3, 0, 300, kWindow),
                                   SpecOf("chain", 1, 1000, 300, kWindow)};
  for (const Spec& spec : specs) {
    const VerifiedPlan plan = CompileOrDie(spec);
    for (const bool is_preposted : Ways()) {
      SCOPED_TRACE(test::Label(spec) + " " + NameOf(is_preposted));
      const auto nodes = NodesOf(plan, is_preposted);
      ASSERT_NE(nodes, nullptr);
      ASSERT_NO_FATAL_FAILURE(PlayOnce(*nodes, plan, 1));
    }
  }
}

/// Of no device.
struct NoProgram final : PlayerDevice::Program {
  uint64_t work_requests() const override { return 0; }
};

// Catches a device that is offloaded to and never starts anything, one that takes another device's
// programs for its own, and a listing that says otherwise than the device.
TEST_P(PlayerDeviceTest, WhatCannotBePrepostedIsRefused) {
  for (const ListedDevice& it : ListDevices().devices) {
    if (it.name == engine_.listed_name()) {
      ASSERT_EQ(it.can_offload, can_offload()) << it.why;
    }
  }
  Spec sums = SpecOf("ring", 2, 1000, 300, kWindow);
  sums.collective = CollectiveKind::kAllreduce;
  sums.combine = {.op = CombineOp::kSum, .type = ElementType::kInt32};
  const VerifiedPlan plan = CompileOrDie(can_offload() ? *engine_.too_large : sums);
  const auto nodes = NodesOf(plan, /*is_preposted=*/false);
  ASSERT_NE(nodes, nullptr);
  const auto lower = [&](const VerifiedPlan& it) {
    return nodes->At(
        0, [&](uint32_t, PlayingNode& its) { return LowerAll(its.device(), it).status(); });
  };
  EXPECT_EQ(lower(plan).code(), StatusCode::kRejected) << lower(plan).ToString();
  EXPECT_EQ(lower(CompileOrDie(sums)).code(), StatusCode::kRejected);
  if (can_offload()) return;
  EXPECT_EQ(lower(test::PlanOf(2, 2)).code(), StatusCode::kRejected);
  const Status refused = OpenDevices(device(), 2, /*needs_offload=*/true).status();
  EXPECT_EQ(refused.code(), StatusCode::kEnvironment) << refused.ToString();
  EXPECT_THAT(refused.message(), HasSubstr("device " + device()));
  const VerifiedPlan small = test::PlanOf(2, 2);
  Message message(small, 1);
  const Status made = nodes->At(0, [&](uint32_t node, PlayingNode& its) {
    const NoProgram program;
    return its.device()
        .MakePreposted(program, {.plan = small,
                                 .node = NodeId(node),
                                 .links = std::make_unique<TcpLinks>(std::vector<TcpSocket>()),
                                 .context = {.memory = message.At(node)}})
        .status();
  });
  EXPECT_EQ(made.code(), StatusCode::kRejected) << made.ToString();
}

// Catches queues that are used again and still send from, or receive into, the memory of the
// message before, that stand where that one has left them, or that another plan's message goes
// over.
TEST_P(PlayerDeviceTest, AKeptPlayerPlaysTheNextMessageElsewhere) {
  const VerifiedPlan plan = CompileOrDie(SpecOf("binomial_pipeline", 4, 5 * 100 + 7, 100, kWindow));
  const VerifiedPlan other = CompileOrDie(SpecOf("chain", 4, 3 * 200 + 1, 200, kBarrier));
  for (const bool is_preposted : Ways()) {
    SCOPED_TRACE(NameOf(is_preposted));
    const auto nodes = NodesOf(plan, is_preposted);
    ASSERT_NE(nodes, nullptr);
    Message first(plan, 1);
    ASSERT_TRUE(Make(*nodes, plan, first, {.is_kept = true}));
    ASSERT_TRUE(StartAndPoll(*nodes));
    nodes->EndPlayers();
    first.ExpectDelivered();
    for (uint32_t node = 0; node < 4; ++node) first.Fill(node);
    for (uint64_t seed = 2; seed <= 3; ++seed)
      ASSERT_NO_FATAL_FAILURE(
          PlayOnce(*nodes, plan, seed, {.is_kept = true, .is_as_before = true}));
    for (uint32_t node = 0; node < 4; ++node) EXPECT_TRUE(first.IsFilled(node)) << node;
    Reconnect(*nodes, other);
    ASSERT_NO_FATAL_FAILURE(PlayOnce(*nodes, other, 4, {.is_kept = true}));
    ASSERT_NO_FATAL_FAILURE(PlayOnce(*nodes, other, 5, {.is_as_before = true}));
  }
}

// Catches receives that stay with the hardware or with a library's thread when the memory is the
// caller's again, also where the device keeps queues for the next message.
TEST_P(PlayerDeviceTest, AReceiverThatEndsEarlyWritesNothingMore) {
  ForEachEarlyEnd(/*ending=*/1, [](Message& message) { EXPECT_TRUE(message.IsFilled(1)); });
}

// Catches sends that are still to be read from memory that is the caller's again: a peer would get
// bytes that no node has sent.
TEST_P(PlayerDeviceTest, ASenderThatEndsEarlyReadsNothingMore) {
  ForEachEarlyEnd(/*ending=*/0, [](Message& message) {
    for (size_t i = 0; i < message.sent().size(); ++i) {
      const std::byte got = message.buffer(1)[i];
      ASSERT_TRUE(got == std::byte{0} || got == message.sent()[i]) << "byte " << i;
    }
  });
}

// Catches a node that connects with whatever its peer has, or waits for what the peer never makes;
// and a device that is good for nothing after that.
TEST_P(PlayerDeviceTest, APeerWithAnotherPlanIsNamed) {
  const VerifiedPlan plan = CompileOrDie(SpecOf("chain", 2, 1000, 300, kWindow));
  Spec reversed = SpecOf("chain", 2, 1000, 300, kBarrier);
  reversed.root = NodeId(1);
  const VerifiedPlan other = CompileOrDie(reversed);
  for (const bool is_preposted : Ways()) {
    SCOPED_TRACE(NameOf(is_preposted));
    const auto nodes = NodesOf(plan, is_preposted);
    ASSERT_NE(nodes, nullptr);
    Message message(plan, 1);
    Message others(other, 2);
    std::future<Status> made = nodes->Begin(1, [&](uint32_t node, PlayingNode& its) {
      return its.Make(other, others.At(node), {.answer_max = milliseconds(5000)});
    });
    const Status status = MakeAtNode0(*nodes, plan, message, {.answer_max = milliseconds(5000)});
    const Status of_peer = made.get();
    EXPECT_EQ(status.code(), StatusCode::kRejected) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr("of node 1: it "));
    EXPECT_EQ(of_peer.code(), StatusCode::kRejected) << of_peer.ToString();
    EXPECT_THAT(of_peer.message(), HasSubstr("of node 0: it "));
    Reconnect(*nodes, plan);
    ASSERT_NO_FATAL_FAILURE(PlayOnce(*nodes, plan, 3));
  }
}

// Catches making that nothing ends, that nobody can interrupt, or whose error does not say who is
// missed.
TEST_P(PlayerDeviceTest, APeerThatDoesNotAnswerIsNamed) {
  const VerifiedPlan plan = CompileOrDie(SpecOf("chain", 2, 1000, 300, kWindow));
  for (const bool is_preposted : Ways()) {
    SCOPED_TRACE(NameOf(is_preposted));
    const auto nodes = NodesOf(plan, is_preposted);
    ASSERT_NE(nodes, nullptr);
    Message message(plan, 1);
    uint32_t calls = 0;
    const auto count = [&calls] {
      ++calls;
      return Status();
    };
    const Clock::time_point begin = Clock::now();
    const Status silent =
        MakeAtNode0(*nodes, plan, message, {.answer_max = milliseconds(150), .checkpoint = count});
    EXPECT_EQ(silent.code(), StatusCode::kRejected) << silent.ToString();
    EXPECT_THAT(silent.message(), HasSubstr("of node 1: no answer"));
    EXPECT_GE(Clock::now() - begin, milliseconds(150));
    EXPECT_GE(calls, 3u);

    const auto interrupt = [&calls] {
      return ++calls == 3 ? Status(StatusCode::kUsage, "enough") : Status();
    };
    calls = 0;
    const Status interrupted = MakeAtNode0(*nodes, plan, message, {.checkpoint = interrupt});
    EXPECT_EQ(interrupted.code(), StatusCode::kUsage);
    EXPECT_EQ(interrupted.message(), "enough");

    (*nodes)[1].CloseLinks();
    const Status closed = MakeAtNode0(*nodes, plan, message, {});
    EXPECT_EQ(closed.code(), StatusCode::kRejected) << closed.ToString();
    EXPECT_THAT(closed.message(), HasSubstr("of node 1: "));
    Reconnect(*nodes, plan);
    ASSERT_NO_FATAL_FAILURE(PlayOnce(*nodes, plan, 2));
  }
}

// Sends are under way to it all the time. A node that has none is not asked: groups see by their
// links that a peer of it is gone. Catches senders that wait for ever, and a wrong name for the
// cause.
TEST_P(PlayerDeviceTest, APeerThatGoesAwayEndsASender) {
  const VerifiedPlan plan = CompileOrDie(SpecOf("chain", 2, 400 * 50'000, 50'000, kBarrier));
  for (const bool is_preposted : Ways()) {
    for (const bool has_begun : {false, true}) {
      if (!has_begun && !engine_.connects_late.empty()) continue;
      SCOPED_TRACE(NameOf(is_preposted) + (has_begun ? " in the middle" : " before the start"));
      const auto nodes = NodesOf(plan, is_preposted);
      ASSERT_NE(nodes, nullptr);
      Message message(plan, 1);
      ASSERT_TRUE(Make(*nodes, plan, message));
      std::future<Status> gone = nodes->Begin(1, [&](uint32_t, PlayingNode& its) {
        const uint64_t before = its.player().AskProgress();
        its.player().Start();
        const Status polled =
            its.Poll([&] { return !has_begun || its.player().AskProgress() != before; });
        its.Leave();
        return polled;
      });
      if (!has_begun) gone.wait();
      std::optional<NodeId> lost;
      bool is_done = false;
      const Status ended = nodes->At(0, [&](uint32_t, PlayingNode& its) {
        const Status polled = its.StartAndPoll();
        lost = its.player().lost_peer();
        is_done = its.player().done();
        return polled;
      });
      EXPECT_TRUE(gone.get().ok());
      if (is_done && has_begun) continue;  // before its peer went
      EXPECT_EQ(ended.code(), StatusCode::kRejected) << ended.ToString();
      EXPECT_THAT(ended.message(), testing::Not(HasSubstr("it hangs")));
      EXPECT_EQ(lost, NodeId(1)) << ended.ToString();
    }
  }
}

// Catches what two open devices of a process have in common and take from each other: events,
// completions, addresses, and what the first to be closed takes with it.
TEST_P(PlayerDeviceTest, TwoOfOneProcessServeBoth) {
  const VerifiedPlan plan = CompileOrDie(SpecOf("binomial_pipeline", 3, 5 * 100 + 7, 100, kWindow));
  const VerifiedPlan other = CompileOrDie(SpecOf("chain", 3, 3 * 200 + 1, 200, kBarrier));
  for (const bool is_preposted : Ways()) {
    SCOPED_TRACE(NameOf(is_preposted));
    auto nodes = NodesOf(plan, is_preposted);
    const auto more = MoreNodes(1, other, is_preposted);
    ASSERT_NE(nodes, nullptr);
    ASSERT_NE(more, nullptr);
    Message message(plan, 1);
    Message others(other, 2);
    ASSERT_TRUE(Make(*nodes, plan, message));
    ASSERT_TRUE(Make(*more, other, others));
    const auto play = [](uint32_t, PlayingNode& its) { return its.StartAndPoll(); };
    auto played = nodes->BeginAll(play);
    EXPECT_TRUE(more->All(play));
    EXPECT_TRUE(PlayingNodes::AllOf(std::move(played)));
    message.ExpectDelivered();
    others.ExpectDelivered();
    more->EndPlayers();
    nodes = nullptr;
    ASSERT_NO_FATAL_FAILURE(PlayOnce(*more, other, 3));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, PlayerDeviceTest,
                         testing::ValuesIn(test::EnginesWhere([](const test::Engine& it) {
                           return !it.device.empty();
                         })),
                         [](const auto& it) { return it.param; });

}  // namespace
}  // namespace prepost::player_device_test
