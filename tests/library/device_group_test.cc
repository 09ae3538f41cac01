// SPDX-License-Identifier: Apache-2.0
//
// The mover of a group on NICs by itself: two members whose owner is the test. Sessions with such
// groups are in session_test.cc.
#include "library/device_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "backends/registry.h"
#include "library/group_plans.h"
#include "runtime/transport/tcp/tcp_links.h"
#include "runtime/transport/tcp/tcp_mesh.h"
#include "tests/support/engines.h"
#include "tests/support/plans.h"
#include "tests/support/sessions.h"

namespace prepost::device_group_test {
namespace {

using Event = MessageMover::Event;
using Kind = Event::Kind;
using std::chrono::milliseconds;
using test::Bytes;
using test::GroupLog;
using test::Sessions;
using ::testing::HasSubstr;

/// One member and what its mover has reported.
class Part {
 public:
  Part(uint32_t node, const std::string& device, std::vector<TcpSocket> sockets)
      : plans_(*MakeGroupPlans({.nodes = 2,
                                .self = NodeId(node),
                                .root = NodeId(0),
                                .algorithm = "chain",
                                .block_bytes = 100,
                                .is_flat = true})),
        mover_(MakeDeviceGroup(
            {.self = NodeId(node),
             .root = NodeId(0),
             .executor = Executor::kOffload,
             .device = device},
            *OpenGroupDevices(
                {.device = device, .needs_offload = true, .nodes = 2, .self = NodeId(node)}),
            *plans_)) {
    mover_->Open(std::make_unique<TcpLinks>(std::move(sockets)), {}, [this](Event event) {
      const std::lock_guard lock(mutex_);
      events_.push_back(std::move(event));
      changed_.notify_all();
    });
  }
  ~Part() { mover_->Stop(); }

  MessageMover& mover() { return *mover_; }
  /// The first event of the kind, of message `number`, or kFailed.
  Event Await(Kind kind, uint64_t number = 0, milliseconds max = std::chrono::seconds(10)) {
    std::unique_lock lock(mutex_);
    Event found;
    changed_.wait_for(lock, max, [&] {
      for (const Event& event : events_) {
        const bool is_it = event.kind == kind && event.number == number;
        if (!is_it && event.kind != Kind::kFailed) continue;
        found = event;
        return true;
      }
      return false;
    });
    return found;
  }
  bool Has(Kind kind, uint64_t number) { return Await(kind, number, milliseconds(0)).kind == kind; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Event> events_;
  std::unique_ptr<GroupPlans> plans_;
  std::unique_ptr<MessageMover> mover_;
};

class DeviceGroupTest : public testing::TestWithParam<std::string> {
 protected:
  DeviceGroupTest() {
    TcpMesh mesh = *MakeTcpMesh(test::CompileOrDie(
        {.nodes = 2, .message_bytes = 10, .block_bytes = 10, .algorithm = "chain"}));
    for (uint32_t node = 0; node < 2; ++node)
      parts_.push_back(std::make_unique<Part>(node, device_, std::move(mesh[node])));
  }
  MessageMover& root() { return parts_[0]->mover(); }
  MessageMover& other() { return parts_[1]->mover(); }

  const std::string device_ = test::EngineOf(GetParam()).device;
  std::vector<std::unique_ptr<Part>> parts_;
};

// The second message is armed at both while the first stands still, since its root has not been
// told to start, and moves as soon as it may. Catches a member that arms between two messages only,
// one that waits for its NIC meanwhile, and queues or events of two messages that get into each
// other's way.
TEST_P(DeviceGroupTest, TheNextMessageIsArmedWhileOneMoves) {
  const Event place = parts_[0]->Await(Kind::kPlace);
  ASSERT_EQ(place.kind, Kind::kPlace) << place.status.ToString();
  other().Join(place.text);
  constexpr uint64_t kMessages = 200;  // more than there are of one device
  std::vector<std::vector<std::byte>> sent, received;
  for (uint64_t i = 0; i < kMessages; ++i) {
    sent.push_back(Bytes(i % 7 * 150, i));
    received.emplace_back(sent.back().size());
  }
  const auto begin = [&](uint64_t i) {
    root().Begin({.source = sent[i]}, sent[i].size());
    other().Begin({.source = received[i], .target = received[i]}, sent[i].size());
    root().Arm(i);
    other().Arm(i);
  };
  begin(0);
  for (uint64_t i = 0; i < kMessages; ++i) {
    SCOPED_TRACE(i);
    for (const auto& part : parts_) {
      const Event armed = part->Await(Kind::kArmed, i);
      ASSERT_EQ(armed.kind, Kind::kArmed) << armed.status.ToString();
    }
    other().Start(i);  // and waits for the root's blocks
    if (i + 1 < kMessages) {
      begin(i + 1);
      for (const auto& part : parts_) {
        const Event armed = part->Await(Kind::kArmed, i + 1);
        ASSERT_EQ(armed.kind, Kind::kArmed) << armed.status.ToString();
        EXPECT_FALSE(part->Has(Kind::kMoved, i));
      }
    }
    root().Start(i);
    for (const auto& part : parts_) {
      const Event moved = part->Await(Kind::kMoved, i);
      ASSERT_EQ(moved.kind, Kind::kMoved) << moved.status.ToString();
    }
    EXPECT_EQ(received[i], sent[i]);
    root().Complete(i);
    other().Complete(i);
  }
}

// A member waits for the queue pairs of one that has not been told to arm yet. Catches a message
// before that which does not start, or does not move, until then.
TEST_P(DeviceGroupTest, AMessageMovesWhileTheNextWaitsForAPeer) {
  const Event place = parts_[0]->Await(Kind::kPlace);
  other().Join(place.text);
  const std::vector<std::byte> sent = Bytes(5000, 1);
  std::vector<std::byte> first(5000), second(5000);
  for (std::vector<std::byte>* const received : {&first, &second}) {
    root().Begin({.source = sent}, sent.size());
    other().Begin({.source = *received, .target = *received}, sent.size());
  }
  for (const auto& part : parts_) part->mover().Arm(0);
  for (const auto& part : parts_) ASSERT_EQ(part->Await(Kind::kArmed).kind, Kind::kArmed);
  root().Arm(1);
  std::this_thread::sleep_for(milliseconds(50));
  for (const auto& part : parts_) part->mover().Start(0);
  for (const auto& part : parts_) {
    const Event moved = part->Await(Kind::kMoved);
    EXPECT_EQ(moved.kind, Kind::kMoved) << moved.status.ToString();
  }
  EXPECT_EQ(first, sent);
  other().Arm(1);
  for (const auto& part : parts_) ASSERT_EQ(part->Await(Kind::kArmed, 1).kind, Kind::kArmed);
  for (const auto& part : parts_) part->mover().Start(1);
  for (const auto& part : parts_) EXPECT_EQ(part->Await(Kind::kMoved, 1).kind, Kind::kMoved);
  EXPECT_EQ(second, sent);
}

// A place that another process has named. Catches a member that makes NICs of its own, which
// nothing ever reaches.
TEST_P(DeviceGroupTest, MembersElsewhereAreAnError) {
  other().Join("0123456789abcdef0123456789abcdef");
  const Event failed = parts_[1]->Await(Kind::kFailed);
  EXPECT_THAT(failed.status.ToString(), HasSubstr("this member is not in the root's process"));
  EXPECT_THAT(failed.status.ToString(), HasSubstr(device_));
}

// A peer that leaves while its queue pairs are awaited. Catches waits that do not end, and a
// consequence that is reported as a cause.
TEST_P(DeviceGroupTest, APeerThatLeavesIsNamed) {
  const Event place = parts_[0]->Await(Kind::kPlace);
  other().Join(place.text);
  ASSERT_EQ(parts_[1]->Await(Kind::kOpened).kind, Kind::kOpened);
  std::vector<std::byte> memory(500);
  root().Begin({.source = memory}, memory.size());
  root().Arm(0);
  parts_[1].reset();
  const Event failed = parts_[0]->Await(Kind::kArmed);
  ASSERT_EQ(failed.kind, Kind::kFailed);
  EXPECT_EQ(failed.lost_peer, NodeId(1)) << failed.status.ToString();
}

// Memory is the caller's when Stop() has returned, also in the middle of a message.
TEST_P(DeviceGroupTest, StopsWhileAMessageMoves) {
  const Event place = parts_[0]->Await(Kind::kPlace);
  other().Join(place.text);
  const std::vector<std::byte> sent = Bytes(5000, 1);
  std::vector<std::byte> received(5000);
  root().Begin({.source = sent}, sent.size());
  other().Begin({.source = received, .target = received}, sent.size());
  for (const auto& part : parts_) part->mover().Arm(0);
  for (const auto& part : parts_) ASSERT_EQ(part->Await(Kind::kArmed).kind, Kind::kArmed);
  other().Start(0);
  other().Stop();
  std::ranges::fill(received, std::byte{0x5a});
  root().Start(0);
  const Event failed = parts_[0]->Await(Kind::kMoved);
  EXPECT_EQ(failed.kind, Kind::kFailed);
  EXPECT_EQ(failed.lost_peer, NodeId(1)) << failed.status.ToString();
  EXPECT_EQ(received, std::vector<std::byte>(5000, std::byte{0x5a}));
}

// At the moment when there is something to do, too. Catches a thread that takes the signal of its
// end for one of orders, and waits for more.
TEST(DeviceGroupStopTest, StopsAtAnyMoment) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point due = Clock::now() + std::chrono::seconds(2);
  for (uint32_t round = 0; Clock::now() < due; ++round) {
    TcpMesh mesh = *MakeTcpMesh(test::CompileOrDie(
        {.nodes = 2, .message_bytes = 10, .block_bytes = 10, .algorithm = "chain"}));
    Part root(0, "emulated", std::move(mesh[0]));
    ASSERT_EQ(root.Await(Kind::kOpened).kind, Kind::kOpened);
    const auto until = Clock::now() + std::chrono::nanoseconds(round * 97 % 20000);
    while (Clock::now() < until) continue;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceGroupTest,
                         testing::ValuesIn(test::EnginesWhere([](const test::Engine& it) {
                           return it.nics && !it.device.empty();
                         })),
                         [](const auto& it) { return it.param; });

// A barrier needs a receive posted for every block, and the largest ring has 32768.
TEST(DeviceGroupSessionTest, AutoTakesTheCpuWhereThePlanDoesNotFit) {
  Sessions sessions(2);
  const GroupOptions options = {.algorithm = "chain", .block_bytes = 1, .device = "emulated"};
  sessions.Create(1, {0, 1}, 0, options);
  test::ExpectDelivery(sessions, 1, {0, 1}, 0, {Bytes(10, 1), Bytes(40000, 2), Bytes(10, 3)});
  GroupOptions offload = options;
  offload.executor = "offload";
  sessions.Create(2, {0, 1}, 0, offload);
  const std::vector<std::byte> message = Bytes(40000, 1);
  ASSERT_TRUE(sessions[0].Send(2, message.data(), message.size()).ok());
  ASSERT_TRUE(
      sessions.Wait(2, {0, 1}, [](const GroupLog& log) { return log.failures.size() == 1; }));
  EXPECT_THAT(sessions.LogOf(0, 2).failures.front(),
              HasSubstr("message 0 of 40000 bytes over device emulated: its plan does not fit"));
}

// Members of one group must go over the same.
TEST(DeviceGroupSessionTest, MembersWithOtherDevicesAreRefused) {
  Sessions sessions(2);
  ASSERT_TRUE(sessions[0].CreateGroup(1, {0, 1}, 0, {}, sessions.Callbacks(0, 1)).ok());
  ASSERT_TRUE(
      sessions[1].CreateGroup(1, {0, 1}, 0, {.device = "emulated"}, sessions.Callbacks(1, 1)).ok());
  ASSERT_TRUE(
      sessions.Wait(1, {0, 1}, [](const GroupLog& log) { return log.failures.size() == 1; }));
  EXPECT_THAT(sessions.LogOf(1, 1).failures.front(), HasSubstr("other options or another plan"));
}

}  // namespace
}  // namespace prepost::device_group_test
