// SPDX-License-Identifier: Apache-2.0
//
// Groups that seal their connections, and somebody between two members who reads what they say, and
// changes, doubles, leaves out or swaps records of it, on any of their connections and either way.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "prepost/prepost.h"
#include "runtime/base/little_endian.h"
#include "runtime/group/control_socket.h"
#include "runtime/transport/sealing/sealed_stream.h"
#include "tests/support/relayed_sessions.h"

namespace prepost::sealed_attack_test {
namespace {

using test::Bytes;
using test::GroupLog;
using test::Members;
using test::RelayedBytes;
using test::RelayedLink;
using test::RelayedSessions;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kBlock = 65536;

GroupOptions Sealed() { return {.algorithm = "chain", .block_bytes = kBlock, .seal = true}; }

enum class Damage { kFlip, kDouble, kDrop, kSwap };
constexpr const char* kDamageNames[] = {"flip", "double", "drop", "swap"};
struct Place {
  const char* name;
  LinkPurpose purpose;
  Lane lane;
  bool to_connector;  ///< member 1
  uint32_t root = 0;  ///< its chain's second member is the other one of the two
};

/// Cuts what passes into records, and damages one of those that come once it is told to.
class Attacker {
 public:
  Attacker(Place place, Damage damage) : place_(place), damage_(damage) {}

  void Begin() { is_waiting_ = true; }
  bool has_struck() const { return has_struck_; }

  void Pass(const RelayedLink& link, bool to_connector, RelayedBytes& bytes) {
    if (link.purpose != place_.purpose || to_connector != place_.to_connector) return;
    if (link.purpose == LinkPurpose::kData && link.lane != place_.lane) return;
    pending_.insert(pending_.end(), bytes.begin(), bytes.end());
    bytes.clear();
    for (size_t size; (size = RecordBytes()) > 0 && size <= pending_.size();) {
      RelayedBytes record(pending_.begin(), pending_.begin() + ptrdiff_t(size));
      pending_.erase(pending_.begin(), pending_.begin() + ptrdiff_t(size));
      Strike(record, bytes);
    }
  }

 private:
  /// Of the next one; 0: that is not known yet.
  size_t RecordBytes() const {
    if (place_.purpose == LinkPurpose::kControl)
      return kControlMessageBytes + ControlSocket::kCheckBytes;
    if (pending_.size() < SealedStream::kLengthBytes) return 0;
    return ByteReader(pending_).Get<uint32_t>() + SealedStream::kOverheadBytes;
  }

  void Strike(RelayedBytes& record, RelayedBytes& out) {
    const auto pass = [&out](const RelayedBytes& it) {
      out.insert(out.end(), it.begin(), it.end());
    };
    if (!held_.empty()) {
      pass(record);
      return pass(std::exchange(held_, {}));
    }
    if (!is_waiting_.exchange(false)) return pass(record);
    has_struck_ = true;
    switch (damage_) {
      case Damage::kFlip:
        record[record.size() / 2] ^= std::byte{1};
        return pass(record);
      case Damage::kDouble:
        pass(record);
        return pass(record);
      case Damage::kDrop:
        return;
      case Damage::kSwap:
        held_ = record;
    }
  }

  const Place place_;
  const Damage damage_;
  RelayedBytes pending_;
  RelayedBytes held_;
  std::atomic<bool> is_waiting_ = false, has_struck_ = false;
};

class SealedAttackTest : public testing::TestWithParam<std::tuple<Place, Damage>> {};
INSTANTIATE_TEST_SUITE_P(
    Ways, SealedAttackTest,
    testing::Combine(
        testing::Values(Place{"control_to_leader", LinkPurpose::kControl, Lane::kBlocks, false},
                        Place{"control_to_member", LinkPurpose::kControl, Lane::kBlocks, true},
                        Place{"blocks", LinkPurpose::kData, Lane::kBlocks, true},
                        Place{"notes", LinkPurpose::kData, Lane::kCredits, false},
                        Place{"blocks_to_listener", LinkPurpose::kData, Lane::kBlocks, false, 1},
                        Place{"credits", LinkPurpose::kData, Lane::kCredits, true, 1},
                        Place{"eager", LinkPurpose::kEager, Lane::kBlocks, true}),
        testing::Values(Damage::kFlip, Damage::kDouble, Damage::kDrop, Damage::kSwap)),
    [](const auto& it) {
      return fmt::format("{}_{}", std::get<0>(it.param).name,
                         kDamageNames[static_cast<size_t>(std::get<1>(it.param))]);
    });

// One cause, the same at all members, that names both ends; and no message that was touched counts
// as received. Catches records that are taken by their contents alone, a member that is only
// "gone", and one whose own words do not get through any more.
TEST_P(SealedAttackTest, EndsTheGroupWithOneCause) {
  const auto& [place, damage] = GetParam();
  Attacker attacker(place, damage);
  RelayedSessions sessions(3, {}, [&](RelayedLink& link, bool to_connector, RelayedBytes& bytes) {
    attacker.Pass(link, to_connector, bytes);
  });
  const std::vector<uint32_t> members = Members(place.root == 0 ? 3 : 2);
  const bool is_eager = place.purpose == LinkPurpose::kEager;
  sessions->Create(1, members, place.root, is_eager ? GroupOptions{.seal = true} : Sealed());
  const std::vector<std::byte> message = Bytes(is_eager ? 1000 : 3 << 20, 1);
  test::ExpectDelivery(*sessions, 1, members, place.root, {message});
  attacker.Begin();
  for (int i = 0; i < 3; ++i) {
    if (!(*sessions)[place.root].Send(1, message.data(), message.size()).ok()) break;
  }
  ASSERT_TRUE(
      sessions->Wait(1, members, [](const GroupLog& log) { return !log.failures.empty(); }));
  EXPECT_TRUE(attacker.has_struck());
  const uint32_t victim = place.to_connector ? 1 : 0;
  const std::string cause = fmt::format(
      "a record over the connection of member {} to member {} is not authentic: it was changed, "
      "lost "
      "or repeated on the way",
      victim, 1 - victim);
  for (const uint32_t member : members) {
    const GroupLog log = sessions->LogOf(member, 1);
    ASSERT_EQ(log.failures.size(), 1u);
    EXPECT_THAT(log.failures.front(), HasSubstr(cause)) << "at member " << member;
    EXPECT_EQ(log.failed_member, victim) << "at member " << member;
    for (const std::vector<std::byte>& received : log.messages) EXPECT_TRUE(received == message);
  }
}

/// Whether `words` pass between members 0 and 1, in a group with `options`, of a message that has
/// them `times` times, and of why member 1 ends the group.
bool IsRead(const std::string& words, const GroupOptions& options, int times = 10'000) {
  std::mutex mutex;
  std::string passed;
  RelayedSessions sessions(2, {.local_copies = false},
                           [&](RelayedLink&, bool, RelayedBytes& bytes) {
                             const std::lock_guard lock(mutex);
                             for (const std::byte byte : bytes) passed += static_cast<char>(byte);
                           });
  sessions->Create(1, Members(2), 0, options);
  std::vector<std::byte> message;
  for (int i = 0; i < times; ++i) {
    for (const char letter : words) message.push_back(static_cast<std::byte>(letter));
  }
  test::ExpectDelivery(*sessions, 1, Members(2), 0, {message});
  EXPECT_TRUE((*sessions)[1].AbortGroup(1, words).ok());
  EXPECT_TRUE(
      sessions->Wait(1, Members(2), [](const GroupLog& log) { return !log.failures.empty(); }));
  EXPECT_THAT(sessions->LogOf(0, 1).failures.front(), HasSubstr(words));
  const std::lock_guard lock(mutex);
  EXPECT_GT(passed.size(), message.size());
  return passed.find(words) != std::string::npos;
}

// Catches connections of a sealed group on which something goes in the open.
TEST(SealedReadingTest, NothingIsReadOnTheWay) {
  EXPECT_FALSE(IsRead("what nobody else is to read", Sealed()));
  EXPECT_TRUE(IsRead("what nobody else is to read", {.algorithm = "chain"}));
  EXPECT_FALSE(IsRead("what nobody else is to read", {.seal = true}, 10)) << "a short message";
  EXPECT_TRUE(IsRead("what nobody else is to read", {}, 10));
}

// What sealing is for: without it a changed byte of a message is received as it is.
TEST(SealedReadingTest, WithoutASealAChangedByteIsReceived) {
  std::atomic<bool> is_changing = true;
  RelayedSessions sessions(
      2, {.local_copies = false}, [&](RelayedLink& link, bool to_connector, RelayedBytes& bytes) {
        const bool is_of_blocks = link.purpose == LinkPurpose::kData && link.lane == Lane::kBlocks;
        if (is_of_blocks && to_connector && bytes.size() > 4096 && is_changing.exchange(false))
          bytes[bytes.size() - 1] ^= std::byte{1};
      });
  sessions->Create(1, Members(2), 0, {.algorithm = "chain", .block_bytes = kBlock});
  const std::vector<std::byte> message = Bytes(kBlock, 1);
  ASSERT_TRUE((*sessions)[0].Send(1, message.data(), message.size()).ok());
  ASSERT_TRUE(
      sessions->Wait(1, Members(2), [](const GroupLog& log) { return log.completed.size() == 1; }));
  EXPECT_FALSE(is_changing);
  EXPECT_NE(sessions->LogOf(1, 1).messages.front(), message);
}

// Catches a group of which some connections are sealed, and an error that does not say at whom it
// lies.
TEST(SealedTermsTest, OneThatSealsAndOneThatDoesNotAreNoGroup) {
  for (const uint32_t sealing : {0u, 1u}) {
    SCOPED_TRACE(sealing);
    test::Sessions sessions(3);
    const std::vector<uint32_t> members = Members(3);
    for (const uint32_t member : members) {
      GroupOptions options = Sealed();
      options.seal = (sealing == 0) == (member != 1);
      ASSERT_TRUE(
          sessions[member].CreateGroup(1, members, 0, options, sessions.Callbacks(member, 1)).ok());
    }
    ASSERT_TRUE(
        sessions.Wait(1, members, [](const GroupLog& log) { return !log.failures.empty(); }));
    for (const uint32_t member : members) {
      EXPECT_THAT(
          sessions.LogOf(member, 1).failures.front(),
          AllOf(testing::ContainsRegex(fmt::format("member {}.* seals its connections", sealing)),
                testing::ContainsRegex(fmt::format("member {}.* does not", 1 - sealing))))
          << "at member " << member;
    }
    // And they may agree the next time.
    sessions.Create(2, members, 0, Sealed());
    test::ExpectDelivery(sessions, 2, members, 0, {Bytes(100, 1)});
  }
}

TEST(SealedTermsTest, ADeviceIsNotSealed) {
  test::Sessions sessions(1);
  GroupOptions options = Sealed();
  options.device = "emulated";
  const Status status = sessions[0].CreateGroup(1, {0}, 0, options, sessions.Callbacks(0, 1));
  EXPECT_EQ(status.code(), StatusCode::kUsage);
  EXPECT_THAT(status.message(),
              HasSubstr("device emulated the NIC itself moves, which seals nothing"));
}

}  // namespace
}  // namespace prepost::sealed_attack_test
