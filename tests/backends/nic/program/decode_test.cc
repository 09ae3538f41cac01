// SPDX-License-Identifier: Apache-2.0
//
// The decoder, from literal bytes and not from the encoder: fields, WQEs that wrap the ring's end,
// receive lists.
#include "backends/nic/program/decode.h"

#include <gtest/gtest.h>

#include <sstream>

namespace prepost::nic::decode_test {
namespace {

/// Bytes of hex words, padded with zeros to `size`.
std::vector<std::byte> FromHex(const std::string& words, size_t size) {
  std::vector<std::byte> bytes;
  std::istringstream in(words);
  for (std::string word; in >> word;) {
    for (size_t i = 0; i < 8; i += 2) {
      bytes.push_back(static_cast<std::byte>(std::stoul(word.substr(i, 2), nullptr, 16)));
    }
  }
  bytes.resize(size);
  return bytes;
}

TEST(DecodeTest, Wait) {
  SendWqe wqe;
  DecodeSend(FromHex("0000100f 00012302 00000008 00000000 00000000 00000000 00000003 000000a5", 64),
             16, &wqe);
  EXPECT_EQ(wqe.opcode, Opcode::kWait);
  EXPECT_EQ(wqe.wqe_index, 0x10);
  EXPECT_EQ(wqe.qpn, 0x123u);
  EXPECT_EQ(wqe.segments, 2);
  EXPECT_EQ(wqe.wqebbs(), 1);
  EXPECT_TRUE(wqe.signaled());
  EXPECT_EQ(wqe.index, 3u);
  EXPECT_EQ(wqe.number, 0xa5u);
  EXPECT_TRUE(wqe.data.empty());
}

TEST(DecodeTest, WriteWithImmediateAndFence) {
  SendWqe wqe;
  DecodeSend(FromHex("00000109 00045603 00000080 00000001 00007f00 00002000 00005678 00000000 "
                     "00001000 00001234 00007f00 00001000",
                     128),
             0, &wqe);
  EXPECT_EQ(wqe.opcode, Opcode::kRdmaWriteImm);
  EXPECT_EQ(wqe.fence, kFence);
  EXPECT_FALSE(wqe.signaled());
  EXPECT_EQ(wqe.immediate, 1u);
  EXPECT_EQ(wqe.remote_address, 0x7f0000002000u);
  EXPECT_EQ(wqe.rkey, 0x5678u);
  EXPECT_EQ(wqe.data, (std::vector<DataPiece>{{0x1000, 0x1234, 0x7f0000001000}}));
  EXPECT_EQ(wqe.payload_bytes(), 0x1000u);
}

TEST(DecodeTest, SegmentsWrapTheRingsEnd) {
  std::vector<std::byte> ring(128);
  const std::vector<std::byte> head = FromHex("0000030a 00045605 00000000 00000000", 16);
  std::copy(head.begin(), head.end(), ring.begin() + 64);  // index 3 in a ring of 2
  ring[64 + 16 + 3] = std::byte{1};                        // first data segment: 1 byte
  ring[3] = std::byte{4};                                  // its fourth wraps to the start: 4 bytes
  SendWqe wqe;
  DecodeSend(ring, 3, &wqe);
  ASSERT_EQ(wqe.data.size(), 4u);
  EXPECT_EQ(wqe.data[0].bytes, 1u);
  EXPECT_EQ(wqe.data[3].bytes, 4u);
  EXPECT_EQ(wqe.wqebbs(), 2);
}

TEST(DecodeTest, UnwrittenEntryHasNoSegments) {
  SendWqe wqe;
  DecodeSend(std::vector<std::byte>(64), 0, &wqe);
  EXPECT_EQ(wqe.segments, 0);
  EXPECT_EQ(wqe.wqebbs(), 1);
}

TEST(DecodeTest, ReceiveListEndsAtTheInvalidKey) {
  const std::vector<std::byte> ring =
      FromHex("00001000 00001234 00007f00 00001000 00000000 00000100 00000000 00000000", 64);
  std::vector<DataPiece> pieces;
  DecodeReceive(ring, 0, 32, &pieces);
  EXPECT_EQ(pieces, (std::vector<DataPiece>{{0x1000, 0x1234, 0x7f0000001000}}));
  DecodeReceive(ring, 0, 16, &pieces);
  EXPECT_EQ(pieces.size(), 1u);
  DecodeReceive(ring, 1, 16, &pieces);
  EXPECT_TRUE(pieces.empty());
}

}  // namespace
}  // namespace prepost::nic::decode_test
