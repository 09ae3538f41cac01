// SPDX-License-Identifier: Apache-2.0
#include "runtime/group/control_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <vector>

namespace prepost::control_socket_test {
namespace {

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

// Nobody reads meanwhile: catches a full connection that counts as gone, and a message that takes
// the place of one about something else.
TEST_F(ControlSocketTest, TheLatestOfEachTypeAndGateArrivesHoweverMuchIsSaid) {
  constexpr uint64_t kCount = 50'000;
  constexpr auto kOther = Gate::kMoved;
  for (uint64_t i = 1; i <= kCount; ++i) {
    near_->QueueLatest(control::Arrived{.gate = Gate::kBarrier, .number = i});
    near_->QueueLatest(control::Have{2 * i});
    near_->QueueLatest(control::Arrived{.gate = kOther, .number = 3 * i});
    near_->QueueLatest(control::Passed{.gate = kOther, .number = 4 * i});
    near_->QueueLatest(control::Passed{.gate = Gate::kBarrier, .number = 5 * i});
  }
  EXPECT_TRUE(near_->has_unsent());
  EXPECT_FALSE(near_->closed());
  near_->Queue(control::Done{7});
  std::array<uint64_t, 5> numbers = {};
  const auto note = [&numbers](size_t which, uint64_t number) {
    EXPECT_GT(number, numbers[which]);
    numbers[which] = number;
  };
  const std::vector<ControlMessage> messages = ReadAll();
  for (const ControlMessage& message : messages) {
    if (const auto* have = std::get_if<control::Have>(&message)) {
      note(1, have->messages);
    } else if (const auto* arrived = std::get_if<control::Arrived>(&message)) {
      note(arrived->gate == kOther ? 2 : 0, arrived->number);
    } else if (const auto* passed = std::get_if<control::Passed>(&message)) {
      note(passed->gate == kOther ? 3 : 4, passed->number);
    }
  }
  for (uint64_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(numbers[i], (i + 1) * kCount) << i;
  ASSERT_FALSE(messages.empty());
  EXPECT_TRUE(std::holds_alternative<control::Done>(messages.back()));
  EXPECT_FALSE(near_->has_unsent());
}

TEST_F(ControlSocketTest, WhatIsQueuedArrivesInOrderAndIsBounded) {
  uint64_t queued = 0;
  while (!near_->has_unsent()) near_->Queue(control::Next{queued++});
  for (int i = 0; i < 10; ++i) near_->Queue(control::Next{queued++});
  const std::vector<ControlMessage> messages = ReadAll();
  ASSERT_EQ(messages.size(), queued);
  for (uint64_t i = 0; i < queued; ++i) EXPECT_EQ(std::get<control::Next>(messages[i]).bytes, i);
  for (size_t i = 0; i < queued + 2 * ControlSocket::kUnsentMax; ++i) near_->Queue(control::Next());
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
  near_->Send(control::Done{7});
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
    EXPECT_TRUE(pair->second.closed());
    pair->second.Queue(control::Joined());  // it can still say what is wrong
    EXPECT_TRUE(pair->first.Receive().has_value());
  }
}

// Catches a message that is not the next one, of which it takes a part or from which it goes on;
// and an end that, once something is wrong with what it hears, cannot say so.
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
    near.Queue(control::Have{7});
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
    near.Queue(control::Done{8});
    EXPECT_FALSE(far.Receive().has_value());
    EXPECT_FALSE(far.Receive().has_value());
    EXPECT_FALSE(far.is_authentic());
    EXPECT_TRUE(far.closed());
    far.Queue(control::Done{9});
    const std::optional<ControlMessage> heard = near.Receive();
    ASSERT_TRUE(heard.has_value());
    EXPECT_EQ(std::get<control::Done>(*heard).barriers, 9u);
    EXPECT_TRUE(near.is_authentic());
  }
}

}  // namespace
}  // namespace prepost::control_socket_test
