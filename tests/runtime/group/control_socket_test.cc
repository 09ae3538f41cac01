// SPDX-License-Identifier: Apache-2.0
#include "runtime/group/control_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <vector>

namespace prepost::control_socket_test {
namespace {

using Kind = ControlMessage::Kind;

class ControlSocketTest : public testing::Test {
 protected:
  ControlSocketTest() {
    auto pair = ControlSocket::MakePair();
    EXPECT_TRUE(pair.ok());
    near_.emplace(std::move(pair->first));
    far_.emplace(std::move(pair->second));
  }

  /// Until no more comes.
  std::vector<ControlMessage> ReadAll() {
    std::vector<ControlMessage> messages;
    for (;;) {
      near_->Flush();
      std::optional<ControlMessage> message = far_->Receive();
      if (!message) return messages;
      messages.push_back(*std::move(message));
    }
  }

  std::optional<ControlSocket> near_, far_;
};

// Nobody reads meanwhile: catches a full connection that counts as gone.
TEST_F(ControlSocketTest, TheLatestOfEachKindArrivesHoweverMuchIsSaid) {
  constexpr uint64_t kCount = 100'000;
  for (uint64_t i = 1; i <= kCount; ++i) {
    near_->QueueLatest({.kind = Kind::kArrived, .progress = i});
    near_->QueueLatest({.kind = Kind::kHave, .progress = 2 * i});
  }
  EXPECT_TRUE(near_->has_unsent());
  EXPECT_FALSE(near_->closed());
  near_->Queue({.kind = Kind::kDone, .progress = 7});
  uint64_t arrived = 0, had = 0;
  const std::vector<ControlMessage> messages = ReadAll();
  for (const ControlMessage& message : messages) {
    uint64_t& last = message.kind == Kind::kHave ? had : arrived;
    if (message.kind == Kind::kDone) continue;
    EXPECT_GT(message.progress, last);
    last = message.progress;
  }
  EXPECT_EQ(arrived, kCount);
  EXPECT_EQ(had, 2 * kCount);
  ASSERT_FALSE(messages.empty());
  EXPECT_EQ(messages.back().kind, Kind::kDone);
  EXPECT_FALSE(near_->has_unsent());
}

TEST_F(ControlSocketTest, WhatIsQueuedArrivesInOrderAndIsBounded) {
  uint64_t queued = 0;
  while (!near_->has_unsent()) near_->Queue({.kind = Kind::kNext, .progress = queued++});
  for (int i = 0; i < 10; ++i) near_->Queue({.kind = Kind::kNext, .progress = queued++});
  const std::vector<ControlMessage> messages = ReadAll();
  ASSERT_EQ(messages.size(), queued);
  for (uint64_t i = 0; i < queued; ++i) EXPECT_EQ(messages[i].progress, i);
  for (size_t i = 0; i < queued + 2 * ControlSocket::kUnsentMax; ++i)
    near_->Queue({.kind = Kind::kNext});
  EXPECT_TRUE(near_->closed());
  EXPECT_FALSE(near_->has_unsent());
}

/// What `near` has said, as it comes.
std::vector<std::byte> BytesOf(const ControlSocket& far) {
  std::vector<std::byte> bytes(1 << 16);
  const ssize_t got = recv(far.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return bytes;
}

// Catches a stream that is read from elsewhere than a message's begin, most of whose bytes are
// zeros, which is a message, too; and a message that comes again.
TEST_F(ControlSocketTest, WhatIsShiftedLostOrRepeatedIsNoMessage) {
  near_->Send({.kind = Kind::kDone, .progress = 7});
  const std::vector<std::byte> one = BytesOf(*far_);
  ASSERT_EQ(one.size(), kControlMessageBytes + ControlSocket::kCheckBytes);
  std::vector<std::byte> twice = one;
  twice.insert(twice.end(), one.begin(), one.end());
  std::vector<std::byte> shifted(twice.begin() + 16, twice.end());
  struct Case {
    const char* name;
    const std::vector<std::byte>& bytes;
    size_t messages;
  };
  for (const Case& it : {Case{"repeated", twice, 1}, Case{"shifted", shifted, 0}}) {
    SCOPED_TRACE(it.name);
    auto pair = ControlSocket::MakePair();
    ASSERT_TRUE(pair.ok());
    ASSERT_EQ(send(pair->first.fd(), it.bytes.data(), it.bytes.size(), 0),
              static_cast<ssize_t>(it.bytes.size()));
    for (size_t i = 0; i < it.messages; ++i) EXPECT_TRUE(pair->second.Receive().has_value());
    EXPECT_FALSE(pair->second.Receive().has_value());
    EXPECT_FALSE(pair->second.nonsense().empty());
  }
}

// Catches a message that is not the next one, of which it takes a part or from which it goes on; and an
// end that, once something is wrong with what it hears, cannot say so.
TEST(SealedControlSocketTest, HearsNoMoreAndStillSpeaks) {
  const GroupKey key = GroupKey::FromSecret("a secret of 20 bytes", "").value();
  for (const bool is_repeated : {false, true}) {
    auto pair = ControlSocket::MakePair();
    ASSERT_TRUE(pair.ok());
    const auto seal = [&key](bool is_connector) {
      return std::make_unique<LinkSeal>(key, SealCipher::kChaCha20Poly1305, is_connector);
    };
    ControlSocket near(pair->first.TakeFile(), seal(true));
    ControlSocket far(pair->second.TakeFile(), seal(false));
    const int near_fd = near.fd();
    near.Queue({.kind = Kind::kHave, .progress = 7});
    std::vector<std::byte> one = BytesOf(far);
    ASSERT_EQ(one.size(), kControlMessageBytes + ControlSocket::kCheckBytes);
    const auto say = [&] {
      ASSERT_EQ(send(near_fd, one.data(), one.size(), 0), static_cast<ssize_t>(one.size()));
    };
    if (is_repeated) {
      say();
      ASSERT_TRUE(far.Receive().has_value());
    } else {
      one[600] ^= std::byte{1};
    }
    say();
    near.Queue({.kind = Kind::kDone, .progress = 8});
    EXPECT_FALSE(far.Receive().has_value());
    EXPECT_FALSE(far.Receive().has_value());
    EXPECT_FALSE(far.is_authentic());
    EXPECT_TRUE(far.closed());
    far.Queue({.kind = Kind::kDone, .progress = 9});
    const std::optional<ControlMessage> heard = near.Receive();
    ASSERT_TRUE(heard.has_value());
    EXPECT_EQ(heard->progress, 9u);
    EXPECT_TRUE(near.is_authentic());
  }
}

}  // namespace
}  // namespace prepost::control_socket_test
