// SPDX-License-Identifier: Apache-2.0
//
// Control connections on which a member, or an attacker between two members, sends what it likes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
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
using ::testing::AnyOf;
using ::testing::HasSubstr;

/// Messages as a member sends them that has said `said` before.
RelayedBytes Sealed(const ControlMessage& message, size_t said, size_t count) {
  auto pair = ControlSocket::MakePair();
  RelayedBytes bytes;
  for (size_t i = 0; i < said + count; ++i) {
    pair->first.Send(message);
    RelayedBytes one(kControlMessageBytes + ControlSocket::kCheckBytes);
    EXPECT_EQ(recv(pair->second.fd(), one.data(), one.size(), MSG_WAITALL),
              static_cast<ssize_t>(one.size()));
    if (i >= said) bytes.insert(bytes.end(), one.begin(), one.end());
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
        send(false, Sealed({.kind = ControlMessage::Kind::kHave}, sent, 500));
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

// The root announces what only members with NICs are told of, without end. Catches memory that
// grows with it.
TEST(ControlAttackTest, AnnouncementsOutOfTurnEndTheGroup) {
  constexpr size_t kMessageBytes = kControlMessageBytes + ControlSocket::kCheckBytes;
  size_t said = 0;
  std::atomic<bool> is_lying = false;
  RelayedSessions sessions(2, {}, [&](RelayedLink& link, bool to_connector, RelayedBytes& bytes) {
    if (link.purpose != LinkPurpose::kControl || !to_connector) return;
    said += bytes.size();
    if (said % kMessageBytes != 0 || !is_lying.exchange(false)) return;
    const RelayedBytes lies =
        Sealed({.kind = ControlMessage::Kind::kNext, .progress = 1}, said / kMessageBytes, 100);
    bytes.insert(bytes.end(), lies.begin(), lies.end());
  });
  sessions->Create(1, {0, 1}, 0, {.algorithm = "chain"});
  ASSERT_TRUE(sessions->Wait(1, Members(2), [](const GroupLog& log) { return log.opened == 1; }));
  is_lying = true;
  ASSERT_TRUE(sessions->Wait(1, {1}, [](const GroupLog& log) { return !log.failures.empty(); }));
  EXPECT_THAT(sessions->LogOf(1, 1).failures.front(), AnyOf(HasSubstr("announces a message out of turn"),
                    HasSubstr("messages announced without end")));
}

}  // namespace
}  // namespace prepost::control_attack_test
