// SPDX-License-Identifier: Apache-2.0
#include "runtime/group/control_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>
#include <vector>

#include "runtime/group/control_socket.h"
#include "tests/support/golden.h"
#include "tests/support/random.h"

namespace prepost::control_message_test {
namespace {

using Bytes = std::array<std::byte, kControlMessageBytes>;
using ::testing::Each;

Bytes Encode(const ControlMessage& message) {
  Bytes bytes;
  bytes.fill(std::byte{0xee});  // so that a byte that is not written is seen
  EncodeControlMessage(message, bytes);
  return bytes;
}

/// Bytes that count up from `first`.
std::array<std::byte, 32> Counted(uint8_t first) {
  std::array<std::byte, 32> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(first + i);
  return bytes;
}

constexpr NodeReport kReport = {.host_posts = 3,
                                .host_posts_during = 4,
                                .host_event_requests_during = 11,
                                .host_wakeups = 5,
                                .host_completions = 6,
                                .retries = 7,
                                .rearms = 12,
                                .rearms_max = 13,
                                .cpu_ns = 8,
                                .bytes_received = 9,
                                .elapsed_ns = 10};

/// One of each type, in their order, in which no field has the value that it has by itself.
const std::vector<ControlMessage>& Examples() {
  static const std::vector<ControlMessage> examples = {
      control::Query{.generation = 0x0102030405060708},
      control::Progress{.attention_ms = 1,
                        .steps = 2,
                        .so_far = kReport,
                        .waits_for = std::string(kControlTextBytes, 'w')},
      control::Joined{},
      control::Arrived{.gate = Gate::kArmed, .number = 3},
      control::Passed{.gate = Gate::kMoved, .number = 3, .start_ns = 4},
      control::Stalled{.peer = NodeId(0x01020304)},
      control::Failed{.code = StatusCode::kEnvironment,
                      .kind = FailureKind::kUnreached,
                      .lost_peer = true,
                      .where = NodeId(7),
                      .age_ms = 10,
                      .ended_ms = 11,
                      .cause = "disk full"},
      control::Gone{.nodes = {NodeId(5), NodeId(6)}},
      control::Abort{
          .kind = FailureKind::kGone, .where = NodeId(7), .age_ms = 11, .cause = "node 7 is gone"},
      control::Last{.messages = 5},
      control::Done{.barriers = 6},
      control::Release{.barriers = 6},
      control::Have{.messages = 8},
      control::Waiting{.call = 9, .node = NodeId(2), .what = "allreduce of 8 bytes"},
      control::Device{.place = "10.0.0.1"},
      control::Next{.bytes = 4096},
      control::Report{.report = kReport, .nonce = Counted(14)},
      control::Sum{.nonce = Counted(15)},
      control::Summed{.sum = {Counted(16)}, .proof = Counted(64)},
      control::Commit{.sum = {Counted(16)}, .proof = Counted(65)}};
  return examples;
}

std::string StringOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The seeds of the fuzz targets are what the examples' bytes have to be. Catches a type without an
// example; fields that are left out, swapped, or written in the machine's order; and, as every byte
// of a field is in the seed, one that is read as something else than it was written.
TEST(ControlMessageTest, EachTypeHasItsBytesAndComesBack) {
  ASSERT_EQ(Examples().size(), std::variant_size_v<ControlMessage>);
  for (size_t i = 0; i < Examples().size(); ++i) {
    const ControlMessage& example = Examples()[i];
    SCOPED_TRACE(Name(example));
    ASSERT_EQ(example.index(), i);
    const Bytes bytes = Encode(example);
    test::ExpectGolden(std::string("../fuzz/seeds/control_message/") + Name(example),
                       StringOf(bytes));
    const Result<ControlMessage> read = DecodeControlMessage(bytes);
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_EQ(read->index(), i);
    EXPECT_EQ(Encode(*read), bytes);
  }
}

// The same of a connection: one as it was said, one with a changed byte, and one out of which 16
// bytes behind the first message are taken.
TEST(ControlMessageTest, SeedsOfStreamsHaveEachType) {
  std::string said;
  for (const ControlMessage& example : Examples()) said += StringOf(Encode(example));
  const std::string folder = "../fuzz/seeds/control_stream/";
  using namespace std::string_literals;
  const auto sealed = static_cast<char16_t>(kControlMessageBytes + ControlSocket::kCheckBytes);
  const std::string length = {static_cast<char>(sealed & 0xff), static_cast<char>(sealed >> 8)};
  test::ExpectGolden(folder + "whole", "\0\0\0\0\0"s + said);
  test::ExpectGolden(folder + "changed", "\x08\0\0\0\x01"s + said);
  test::ExpectGolden(folder + "shifted", length + "\x10\0\0"s + said);
}

TEST(ControlMessageTest, HasTheDocumentedBytes) {
  const Bytes progress = Encode(Examples()[1]);
  EXPECT_EQ(progress[0], std::byte{1});
  EXPECT_EQ(progress[1], std::byte{1});
  EXPECT_EQ(progress[9], std::byte{2});
  for (size_t i = 0; i < 11; ++i) EXPECT_EQ(progress[17 + 8 * i], std::byte(3 + i)) << i;
  EXPECT_EQ(progress[105], std::byte{0xfe});
  EXPECT_EQ(progress[106], std::byte{1});
  EXPECT_EQ(progress.back(), std::byte{'w'});
  const Bytes query = Encode(Examples()[0]);
  EXPECT_EQ(query[1], std::byte{8});
  EXPECT_EQ(query[8], std::byte{1});
  EXPECT_THAT(std::span(query).subspan(9), Each(std::byte{0}));
}

TEST(ControlMessageTest, CutsLongTextsAndHidesControlCharacters) {
  EXPECT_EQ(ControlText(std::string(kControlTextBytes, 'x')), std::string(kControlTextBytes, 'x'));
  EXPECT_EQ(ControlText(std::string(1000, 'x')), std::string(kControlTextBytes - 3, 'x') + "...");
  EXPECT_EQ(ControlText("a\nb\x1b[31m\xc2\x9b"
                        "31m\x9b\xc3"),  // the same in other bytes, and a part of a letter
            "a?b?[31m?31m??");
}

// Catches letters of several bytes that are lost, cut in two, or refused by who reads them.
TEST(ControlMessageTest, KeepsLettersWhole) {
  const std::string letters = "k\xc3\xb6nnte \xe2\x82\xac \xf0\x9f\x9a\x80";
  EXPECT_EQ(ControlText(letters), letters);
  for (size_t before = 0; before < 8; ++before) {
    std::string text(before, 'x');
    while (text.size() < 2 * kControlTextBytes) text += "\xe2\x82\xac";
    const std::string cut = ControlText(text);
    EXPECT_GT(cut.size(), kControlTextBytes - 4);
    EXPECT_LE(cut.size(), kControlTextBytes);
    EXPECT_TRUE(cut.ends_with("\xe2\x82\xac..."));
    const auto read = DecodeControlMessage(Encode(control::Failed{.cause = cut}));
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_EQ(std::get<control::Failed>(*read).cause, cut);
  }
}

// A node that is not known is none, and not node 0.
TEST(ControlMessageTest, ANodeMayBeUnknown) {
  for (const std::optional<NodeId> where : {std::optional<NodeId>(), std::optional(NodeId(0))}) {
    const auto read = DecodeControlMessage(Encode(control::Abort{.where = where}));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(std::get<control::Abort>(*read).where, where);
  }
}

TEST(ControlMessageTest, AsManyNodesAsMayBeNamedFit) {
  const std::vector<NodeId> nodes(kControlNodesMax, NodeId(0xffffffff));
  const auto read = DecodeControlMessage(Encode(control::Gone{nodes}));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(std::get<control::Gone>(*read).nodes, nodes);
}

// Catches a field that is taken as it comes.
TEST(ControlMessageTest, RefusesWhatNobodySends) {
  struct Damage {
    ControlMessage message;
    size_t offset;
    uint8_t value;
    const char* error;
  };
  const control::Failed failed = {.cause = "disk full"};
  for (const Damage& damage : {
           Damage{{}, 0, 20, "type is 20"},
           Damage{control::Arrived(), 1, 4, "gate is 4"},
           Damage{control::Passed(), 1, 255, "gate is 255"},
           Damage{failed, 1, 0, "code is 0"},
           Damage{failed, 1, 4, "code is 4"},
           Damage{failed, 2, 4, "kind is 4"},
           Damage{failed, 3, 2, "a flag is 2"},
           Damage{failed, 4, 2, "a flag is 2"},
           Damage{failed, 6, 1, "a node that is not known is 256"},
           Damage{failed, 26, 3, "bytes of text is 777"},
           Damage{failed, 27, 27, "a character of the text is 27"},
           Damage{failed, 28, 0x9b, "a character of the text is 155"},
           Damage{control::Abort{.where = NodeId(1)}, 2, 0, "a node that is not known is 1"},
           Damage{control::Gone(), 1, 151, "number of nodes is 151"},
           Damage{control::Gone(), 3, 1, "a byte behind the message is 1"},
       }) {
    Bytes bytes = Encode(damage.message);
    bytes[damage.offset] = std::byte{damage.value};
    EXPECT_EQ(DecodeControlMessage(bytes).status().message(), damage.error);
  }
}

// Whatever is behind the last field of a type is refused: catches a type that ends too late.
TEST(ControlMessageTest, RefusesBytesBehindEachType) {
  for (const ControlMessage& example : Examples()) {
    SCOPED_TRACE(Name(example));
    Bytes bytes = Encode(example);
    if (std::holds_alternative<control::Progress>(example)) continue;  // the longest
    bytes.back() = std::byte{5};
    EXPECT_EQ(DecodeControlMessage(bytes).status().message(), "a byte behind the message is 5");
  }
}

// What is taken is what encoding gives back: catches bytes that are read and mean nothing.
TEST(ControlMessageTest, AnyBytesAreRefusedOrMeanOneThing) {
  test::Random random(test::TestSeed());
  for (const ControlMessage& example : Examples()) {
    const Bytes whole = Encode(example);
    for (int i = 0; i < 2000; ++i) {
      Bytes bytes = whole;
      for (uint64_t changes = 1 + random.Below(4); changes > 0; --changes) {
        bytes[random.Below(i % 2 == 0 ? 20 : bytes.size())] =
            static_cast<std::byte>(random.Below(256));
      }
      const Result<ControlMessage> read = DecodeControlMessage(bytes);
      if (read.ok()) {
        ASSERT_EQ(Encode(*read), bytes) << Name(example);
      }
    }
  }
}

}  // namespace
}  // namespace prepost::control_message_test
