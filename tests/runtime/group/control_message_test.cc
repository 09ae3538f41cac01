// SPDX-License-Identifier: Apache-2.0
#include "runtime/group/control_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/support/random.h"

namespace prepost::control_message_test {
namespace {

using Bytes = std::array<std::byte, kControlMessageBytes>;
using Kind = ControlMessage::Kind;

Bytes Encode(const ControlMessage& message) {
  Bytes bytes;
  bytes.fill(std::byte{0xee});  // so that a byte that is not written is seen
  EncodeControlMessage(message, bytes);
  return bytes;
}

ControlMessage Full() {
  ControlMessage message = {.kind = Kind::kFailed,
                            .lost_peer = true,
                            .code = StatusCode::kEnvironment,
                            .interval_ms = 1,
                            .start_ns = 2,
                            .progress = 0x0102030405060708,
                            .report = {.host_posts = 3,
                                       .host_posts_during = 4,
                                       .host_event_requests_during = 11,
                                       .host_wakeups = 5,
                                       .host_completions = 6,
                                       .retries = 7,
                                       .rearms = 12,
                                       .rearms_max = 13,
                                       .cpu_ns = 8,
                                       .bytes_received = 9,
                                       .elapsed_ns = 10},
                            .sum = {.bytes = {std::byte{14}}},
                            .proof = {std::byte{15}}};
  message.sum.bytes.back() = message.proof.back() = std::byte{16};
  message.SetText("disk full");
  return message;
}

// Catches fields that are left out, swapped, or written in the machine's order.
TEST(ControlMessageTest, HasTheDocumentedBytes) {
  const Bytes bytes = Encode(Full());
  EXPECT_EQ(bytes[0], std::byte{9});
  EXPECT_EQ(bytes[1], std::byte{1});
  EXPECT_EQ(bytes[2], std::byte{3});
  EXPECT_EQ(bytes[4], std::byte{1});
  EXPECT_EQ(bytes[8], std::byte{2});
  EXPECT_EQ(bytes[16], std::byte{8});
  EXPECT_EQ(bytes[23], std::byte{1});
  for (size_t i = 0; i < 11; ++i) EXPECT_EQ(bytes[24 + 8 * i], std::byte(3 + i)) << i;
  EXPECT_EQ(bytes[112], std::byte{14});
  EXPECT_EQ(bytes[143], std::byte{16});
  EXPECT_EQ(bytes[144], std::byte{15});
  EXPECT_EQ(bytes[175], std::byte{16});
  EXPECT_EQ(bytes[176], std::byte{9});
  EXPECT_EQ(bytes[178], std::byte{'d'});
  EXPECT_EQ(bytes[687], std::byte{0});
}

TEST(ControlMessageTest, ComesBackAsItWas) {
  const Result<ControlMessage> read = DecodeControlMessage(Encode(Full()));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->text, "disk full");
  EXPECT_EQ(Encode(*read), Encode(Full()));
}

TEST(ControlMessageTest, CutsLongTextsAndHidesControlCharacters) {
  ControlMessage message;
  message.SetText(std::string(1000, 'x'));
  EXPECT_EQ(DecodeControlMessage(Encode(message))->text.size(), kControlTextBytes);
  message.SetText(
      "a\nb\x1b[31m\xc2\x9b"
      "31m\x9b");  // the last two are the same in other bytes
  EXPECT_EQ(message.text, "a?b?[31m??31m?");
}

// Catches a field that is taken as it comes.
TEST(ControlMessageTest, RefusesWhatNobodySends) {
  struct Damage {
    size_t offset;
    uint8_t value;
    const char* error;
  };
  for (const Damage& damage :
       {Damage{0, 26, "kind is 26"}, Damage{1, 2, "lost_peer is 2"}, Damage{2, 4, "code is 4"},
        Damage{2, 0, "code is 0"}, Damage{3, 1, "byte 3 is 1"},
        Damage{177, 3, "bytes of text is 777"}, Damage{179, 27, "a character of the text is 27"},
        Damage{179, 0x9b, "a character of the text is 155"},
        Damage{7, 1, "interval_ms is 16777217"}, Damage{687, 5, "a byte behind the text is 5"}}) {
    Bytes bytes = Encode(Full());
    bytes[damage.offset] = std::byte{damage.value};
    EXPECT_EQ(DecodeControlMessage(bytes).status().message(), damage.error);
  }
}

// What is taken is what encoding gives back: catches bytes that are read and mean nothing.
TEST(ControlMessageTest, AnyBytesAreRefusedOrMeanOneThing) {
  test::Random random(test::TestSeed());
  for (int i = 0; i < 20000; ++i) {
    Bytes bytes = Encode(Full());
    for (uint64_t changes = 1 + random.Below(4); changes > 0; --changes) {
      bytes[random.Below(i % 2 == 0 ? 120 : bytes.size())] =
          static_cast<std::byte>(random.Below(256));
    }
    const Result<ControlMessage> read = DecodeControlMessage(bytes);
    if (read.ok()) {
      ASSERT_EQ(Encode(*read), bytes);
    }
  }
}

}  // namespace
}  // namespace prepost::control_message_test
