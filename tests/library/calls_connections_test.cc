// SPDX-License-Identifier: Apache-2.0
//
// Connections of a group for calls, which are opened when a call first uses them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/library/calls.h"
#include "tests/support/long_link.h"
#include "tests/support/loopback.h"
#include "tests/support/machines.h"

namespace prepost::calls_test::connections {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

uint64_t PeersOf(Sessions& sessions, uint32_t member) {
  const Result<PeerPaths> paths = sessions[member].Paths(kGroup);
  EXPECT_TRUE(paths.ok()) << paths.status().ToString();
  return paths.ok() ? paths->network + paths->memory : 0;
}

// Catches a group that connects members which have nothing to say to each other.
TEST(CallsConnectionsTest, ConnectionsAreOpenedWhenACallUsesThem) {
  constexpr uint32_t kMembers = 8;
  const std::vector<uint32_t> members = Members(kMembers);
  Sessions sessions(kMembers, Patient({}));
  sessions.Create(kGroup, members, 0, {.calls = true, .deterministic = true});
  ASSERT_TRUE(sessions.Wait(kGroup, members, [](const GroupLog& log) { return log.opened == 1; }));
  for (const uint32_t m : members) EXPECT_EQ(PeersOf(sessions, m), 0u);
  const auto call = [&](CollectiveKind kind, uint64_t count) {
    test::Random random(test::TestSeed());
    std::vector<Collective> calls;
    calls.push_back(MakeCollective(kind, kMembers, 0, count, CombineOp::kSum, random));
    ExpectAll(sessions, members, calls, /*is_in_place=*/false);
  };
  // In a ring, each member has two neighbours.
  call(CollectiveKind::kReduceScatter, 50'000);
  for (const uint32_t m : members) EXPECT_EQ(PeersOf(sessions, m), 2u);
  call(CollectiveKind::kReduceScatter, 50'000);
  for (const uint32_t m : members) EXPECT_EQ(PeersOf(sessions, m), 2u);
  call(CollectiveKind::kAlltoall, 50'000);
  for (const uint32_t m : members) EXPECT_EQ(PeersOf(sessions, m), kMembers - 1);
}

// Whichever of two members connects, the other one may come to the call, or create the group, much
// later. Catches an end that gives up, or takes what the late one does not answer yet for a dead
// connection.
TEST(CallsConnectionsTest, AMemberIsLateForItsFirstConnections) {
  struct Case {
    uint32_t late;
    bool creates_late;
  };
  for (const auto& [late, creates_late] : {Case{0, false}, {2, false}, {0, true}, {2, true}}) {
    SCOPED_TRACE(testing::Message() << late << (creates_late ? " creates late" : " calls late"));
    const std::vector<uint32_t> members = Members(3);
    Sessions sessions(3, Quick());
    const auto create = [&](uint32_t m) {
      ASSERT_TRUE(
          sessions[m]
              .CreateGroup(kGroup, members, /*root=*/1, kCalls, sessions.Callbacks(m, kGroup))
              .ok());
    };
    for (const uint32_t m : members)
      if (m != late || !creates_late) create(m);
    if (!creates_late) {
      ASSERT_TRUE(
          sessions.Wait(kGroup, members, [](const GroupLog& log) { return log.opened == 1; }));
    }
    std::vector<std::future<Status>> futures;
    for (const uint32_t m : members)
      if (m != late) futures.push_back(sessions[m].Session::Barrier(kGroup));
    std::this_thread::sleep_for(milliseconds(1300));
    if (creates_late) {
      // Nobody opens connections before all are there.
      for (const uint32_t m : members) {
        if (m != late) {
          EXPECT_EQ(sessions.LogOf(m, kGroup).opened, 0) << m;
        }
      }
      create(late);
    }
    futures.push_back(sessions[late].Session::Barrier(kGroup));
    for (auto& future : futures) EXPECT_EQ(future.get().ToString(), "");
  }
}

// Catches streams that are counted as late because the group is older than its members may take to
// find each other.
TEST(CallsConnectionsTest, ACallIsTheFirstOfAnOldGroup) {
  SessionOptions options = Quick();
  options.connect_max = milliseconds(2000);
  options.local_copies = false;
  options.paths = {.streams = 3, .long_path = std::chrono::microseconds(0)};
  const std::vector<uint32_t> members = Members(3);
  Sessions sessions(3, options);
  sessions.Create(kGroup, members, /*root=*/1, kCalls);
  ASSERT_TRUE(sessions.Wait(kGroup, members, [](const GroupLog& log) { return log.opened == 1; }));
  std::this_thread::sleep_for(options.connect_max + options.failure_max);
  std::vector<std::future<Status>> futures;
  for (const uint32_t m : members) futures.push_back(sessions[m].Session::Barrier(kGroup));
  for (auto& future : futures) EXPECT_EQ(future.get().ToString(), "");
}

// Two members at each of two sites, a round trip of 60 ms apart, where connections are of several
// streams. Catches streams that are not there when a call begins, and a start that only one of them
// carries.
TEST(CallsConnectionsTest, OverALongPath) {
  constexpr uint32_t kMembers = 4;
  const auto machines = test::Machines::Make(kMembers, /*sites=*/2);
  if (machines == nullptr) GTEST_SKIP() << "there is no long path: needs root and ip";
  const auto link =
      test::LongLink::Make(machines->SwitchOf(0), machines->SwitchOf(1), test::LongPath());
  if (!link.ok()) GTEST_SKIP() << "there is no long path: " << link.status().message();
  SessionOptions options;
  options.sites = {"a", "a", "b", "b"};
  for (uint32_t i = 0; i < kMembers; ++i)
    options.members.push_back({.host = test::Machines::AddressOf(i)});
  Sessions sessions(kMembers, Patient(options), nullptr,
                    [&](const SessionOptions& own) { machines->Enter(own.self); });
  const std::vector<uint32_t> members = Members(kMembers);
  sessions.Create(kGroup, members, 0, kCalls);
  test::Random random(test::TestSeed());
  std::vector<Collective> collectives;
  for (const CollectiveKind kind : kKinds)
    collectives.push_back(MakeCollective(kind, kMembers,
                                         static_cast<uint32_t>(random.Below(kMembers)), 60'000,
                                         CombineOp::kSum, random));
  ExpectAll(sessions, members, collectives, /*is_in_place=*/false);
}

// One member cannot reach another one, though both reach the leader, and finds out when a call
// wants to: all hear of it. Catches a call that waits without an end.
TEST(CallsConnectionsTest, AMemberCannotConnectToAnother) {
  SessionOptions options = Quick();
  options.connect_max = milliseconds(2000);
  options.members = test::SessionAddresses(3);
  Sessions sessions(3, options, nullptr, [](SessionOptions& own) {
    // Where nobody listens.
    if (own.self == 2) own.members[0] = {.host = test::LoopbackAddress(77), .port = 9};
  });
  const std::vector<uint32_t> members = Members(3);
  sessions.Create(kGroup, members, /*root=*/1, kCalls);
  ASSERT_TRUE(sessions.Wait(kGroup, members, [](const GroupLog& log) { return log.opened == 1; }));
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::future<Status>> futures;
  for (const uint32_t m : members) futures.push_back(sessions[m].Session::Barrier(kGroup));
  EXPECT_TRUE(
      sessions.Wait(kGroup, members, [](const GroupLog& log) { return log.failures.size() == 1; }));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(4000));
  for (const uint32_t m : members) {
    EXPECT_THAT(sessions.LogOf(m, kGroup).failures[0],
                AllOf(HasSubstr("cannot connect to member 0"), HasSubstr("refused")));
  }
  for (auto& future : futures) EXPECT_FALSE(future.get().ok());
}

}  // namespace
}  // namespace prepost::calls_test::connections
