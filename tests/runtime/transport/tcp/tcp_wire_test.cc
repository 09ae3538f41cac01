// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp_wire.h"

#include <gtest/gtest.h>

#include <array>

namespace prepost::tcp_wire_test {
namespace {

// Pins the bytes: two versions of the program may talk to each other one day.
TEST(TcpWireTest, RecordIsSixteenLittleEndianBytes) {
  const Record record = {.channel = ChannelId(0x01020304), .block = 5, .bytes = 0x0102030405060708};
  std::array<std::byte, kRecordBytes> bytes;
  EncodeRecord(record, bytes);
  const unsigned char expected[] = {4, 3, 2, 1, 5, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1};
  for (size_t i = 0; i < kRecordBytes; ++i) EXPECT_EQ(std::to_integer<int>(bytes[i]), expected[i]);
  EXPECT_EQ(DecodeRecord(bytes), record);
}

// Catches errors that name a channel by its number on the wire, and an end that is taken for the
// other one.
TEST(TcpWireTest, RecordsAreDescribedByTheirRoute) {
  for (const Channel& channel :
       {Channel{.from = NodeId(3), .to = NodeId(1), .lane = Lane::kCredits},
        Channel{.from = NodeId(1), .to = NodeId(3), .lane = Lane::kBlocks}}) {
    EXPECT_EQ(ChannelOfWire(WireChannel(channel), NodeId(1), NodeId(3)), channel);
    EXPECT_EQ(ChannelOfWire(WireChannel(channel), NodeId(3), NodeId(1)), channel);
  }
  EXPECT_EQ(Describe({.channel = ChannelId(1), .block = 7, .bytes = 10}, NodeId(1), NodeId(3)),
            "3>1 lane 0, block 7, 10 bytes");
  EXPECT_EQ(Describe({.channel = ChannelId(2), .block = kNoBlock}, NodeId(1), NodeId(3)),
            "1>3 lane 1, credit, 0 bytes");
  EXPECT_EQ(ChannelOfWire(ChannelId(4), NodeId(1), NodeId(3)), std::nullopt);
  EXPECT_EQ(Describe({.channel = ChannelId(5), .block = 7, .bytes = 10}, NodeId(1), NodeId(3)),
            "unknown channel 5, block 7, 10 bytes");
}

}  // namespace
}  // namespace prepost::tcp_wire_test
