// SPDX-License-Identifier: Apache-2.0
//
// Control connections on which a member, or an attacker between two members, sends what it likes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "prepost/prepost.h"
#include "runtime/group/control_socket.h"
#include "tests/support/relayed_sessions.h"

namespace prepost::control_attack_test {
namespace {

using test::Bytes;
using test::GroupLog;
using test::Members;
using test::RelayedBytes;
using test::RelayedLink;
using test::RelayedSessions;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Messages as a member sends them that has said `said` before; of a claim, each of the next call.
RelayedBytes Sealed(ControlMessage message, size_t said, size_t count) {
  auto pair = ControlSocket::MakePair();
  RelayedBytes bytes;
  for (size_t i = 0; i < said + count; ++i) {
    pair->first.Send(message);
    RelayedBytes one(kControlMessageBytes + ControlSocket::kCheckBytes);
    EXPECT_EQ(recv(pair->second.fd(), one.data(), one.size(), MSG_WAITALL),
              static_cast<ssize_t>(one.size()));
    if (i >= said) bytes.insert(bytes.end(), one.begin(), one.end());
    if (auto* const claim = std::get_if<control::Waiting>(&message)) ++claim->call;
  }
  return bytes;
}

// Member 1 says something without pause in group 1; member 0 has another group meanwhile. Catches a
// keeper that reads from the member that sends most, until the others take it for dead.
TEST(ControlAttackTest, AFloodEndsItsOwnGroupAlone) {
  constexpr size_t kMessageBytes = kControlMessageBytes + ControlSocket::kCheckBytes;
  size_t said = 0;
  std::atomic<bool> is_flooding = false, is_over = false;
  std::thread flood;
  RelayedSessions sessions(3, {}, [&](RelayedLink& link, bool to_connector, RelayedBytes& bytes) {
    if (link.purpose != LinkPurpose::kControl || to_connector) return;
    if (flood.joinable()) return bytes.clear();
    said += bytes.size();
    if (!is_flooding || said % kMessageBytes != 0) return;
    flood = std::thread([&, send = link.send] {
      for (size_t sent = said / kMessageBytes; !is_over; sent += 500)
        send(false, Sealed(control::Have(), sent, 500));
    });
  });
  sessions->Create(1, {0, 1, 2}, 0, {.algorithm = "chain"});
  ASSERT_TRUE(sessions->Wait(1, Members(3), [](const GroupLog& log) { return log.opened == 1; }));
  sessions->Create(2, {0, 2}, 0, {.algorithm = "chain"});
  ASSERT_TRUE(sessions->Wait(2, {0, 2}, [](const GroupLog& log) { return log.opened == 1; }));
  is_flooding = true;
  EXPECT_TRUE(sessions->Wait(1, {0, 2}, [](const GroupLog& log) { return !log.failures.empty(); }));
  EXPECT_THAT(sessions->LogOf(0, 1).failures.front(), HasSubstr("messages without pause"));
  EXPECT_EQ(sessions->LogOf(0, 1).failed_member, 1u);
  test::ExpectDelivery(*sessions, 2, {0, 2}, 0, {Bytes(100, 1)});
  is_over = true;
  if (flood.joinable()) flood.join();
}

/// Somebody makes answers, or questions to member 1, of the messages of the type `lost` between it
/// and the leader. How the group ends at member 0, or at member 1 where it is the leader's word.
std::string EndWithout(size_t lost, bool to_connector) {
  constexpr size_t kSize = kControlMessageBytes + ControlSocket::kCheckBytes;
  SessionOptions options;
  options.connect_max = std::chrono::milliseconds(700);
  options.failure_max = std::chrono::milliseconds(500);
  RelayedBytes pending;
  size_t passed = 0;
  const auto lose = [&](RelayedLink& link, bool is_to_connector, RelayedBytes& bytes) {
    if (link.purpose != LinkPurpose::kControl || is_to_connector != to_connector) return;
    pending.insert(pending.end(), bytes.begin(), bytes.end());
    bytes.clear();
    for (; pending.size() >= kSize; ++passed) {
      RelayedBytes one(pending.begin(), pending.begin() + kSize);
      pending.erase(pending.begin(), pending.begin() + kSize);
      if (static_cast<size_t>(one.front()) == lost)
        one = to_connector ? Sealed(control::Query(), passed, 1)
                           : Sealed(control::Progress(), passed, 1);
      bytes.insert(bytes.end(), one.begin(), one.end());
    }
  };
  RelayedSessions sessions(3, options, lose);
  sessions->Create(1, {0, 1, 2}, 0, {.algorithm = "chain"});
  const uint32_t seen_by = to_connector ? 1 : 0;
  EXPECT_TRUE(
      sessions->Wait(1, {seen_by}, [](const GroupLog& log) { return !log.failures.empty(); }));
  const GroupLog log = sessions->LogOf(seen_by, 1);
  return log.failures.empty() ? "" : log.failures.front();
}

// A member that answers every question, and never says that it has its connections, holds up nobody
// for longer than it may take to connect; nor does a leader that never says that all have theirs.
TEST(ControlAttackTest, WhoNeverJoinsEndsTheGroup) {
  const size_t joined = ControlMessage(control::Joined()).index();
  EXPECT_THAT(
      EndWithout(joined, /*to_connector=*/false),
      AllOf(StartsWith("member 1 "), HasSubstr("has not connected to all others for 1200")));
  EXPECT_THAT(EndWithout(joined, /*to_connector=*/true),
              AllOf(StartsWith("member 0 "), HasSubstr("has not said for 2400 ms that all are")));
}

// Sixteen bytes are missing: what follows is no message.
TEST(ControlAttackTest, AShiftedStreamIsNoMessage) {
  std::atomic<bool> is_shifting = false;
  RelayedSessions sessions(2, {}, [&](RelayedLink& link, bool to_connector, RelayedBytes& bytes) {
    if (link.purpose != LinkPurpose::kControl || to_connector || !is_shifting) return;
    if (bytes.size() > 16 && is_shifting.exchange(false))
      bytes.erase(bytes.begin(), bytes.begin() + 16);
  });
  sessions->Create(1, {0, 1}, 0, {.algorithm = "chain"});
  ASSERT_TRUE(sessions->Wait(1, Members(2), [](const GroupLog& log) { return log.opened == 1; }));
  is_shifting = true;
  ASSERT_TRUE(sessions->Wait(1, {0}, [](const GroupLog& log) { return !log.failures.empty(); }));
  EXPECT_THAT(sessions->LogOf(0, 1).failures.front(), HasSubstr("nonsense"));
}

/// What ends a group of 0, 1 at 1 or, if `is_of_leader` is false, at 0, when the other one says
/// `lie` so many times once it is open.
std::string EndBy(const ControlMessage& lie, size_t count, bool is_of_leader) {
  constexpr size_t kMessageBytes = kControlMessageBytes + ControlSocket::kCheckBytes;
  size_t said = 0;
  std::atomic<bool> is_lying = false;
  RelayedSessions sessions(2, {}, [&](RelayedLink& link, bool to_connector, RelayedBytes& bytes) {
    if (link.purpose != LinkPurpose::kControl || to_connector != is_of_leader) return;
    said += bytes.size();
    if (said % kMessageBytes != 0 || !is_lying.exchange(false)) return;
    const RelayedBytes lies = Sealed(lie, said / kMessageBytes, count);
    bytes.insert(bytes.end(), lies.begin(), lies.end());
  });
  sessions->Create(1, {0, 1}, 0, {.algorithm = "chain"});
  EXPECT_TRUE(sessions->Wait(1, Members(2), [](const GroupLog& log) { return log.opened == 1; }));
  is_lying = true;
  const uint32_t hearer = is_of_leader ? 1 : 0;
  EXPECT_TRUE(
      sessions->Wait(1, {hearer}, [](const GroupLog& log) { return !log.failures.empty(); }));
  const auto failures = sessions->LogOf(hearer, 1).failures;
  return failures.empty() ? "" : failures.front();
}

// The root announces what only members with NICs are told of, without end. Catches memory that
// grows with it.
TEST(ControlAttackTest, AnnouncementsOutOfTurnEndTheGroup) {
  EXPECT_THAT(EndBy(control::Next{1}, 100, true),
              AnyOf(HasSubstr("announces a message out of turn"),
                    HasSubstr("messages announced without end")));
}

// Catches a member that takes a group for closed that it has not closed.
TEST(ControlAttackTest, AReleaseOutOfTurnEndsTheGroup) {
  EXPECT_THAT(EndBy(control::Release(), 1, true), HasSubstr("\"release\" out of turn"));
}

// Catches claims that are taken for news, are told to everybody, or are kept, however many come.
TEST(ControlAttackTest, ClaimsWithoutEndEndTheGroup) {
  const control::Waiting claim = {.call = 1};
  EXPECT_THAT(EndBy(claim, 3000, true), HasSubstr("messages without pause"));
  EXPECT_THAT(EndBy(claim, 3000, false), HasSubstr("messages without pause"));
}

}  // namespace
}  // namespace prepost::control_attack_test
