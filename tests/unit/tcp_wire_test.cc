// SPDX-License-Identifier: Apache-2.0
#include "prepost/runtime/tcp_wire.h"

#include <gtest/gtest.h>

#include <array>

namespace prepost {
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

}  // namespace
}  // namespace prepost
