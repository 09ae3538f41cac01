// SPDX-License-Identifier: Apache-2.0
//
// The encoder's bytes, literally: made once with mlx5dv_set_ctrl_seg and mlx5dv_set_data_seg of
// rdma-core 44. A field at the wrong offset, in the wrong byte order, or a forgotten relocation
// shows here.
#include "backends/nic/program/encode.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "backends/nic/program/lower.h"
#include "tests/support/golden_wqes.h"

namespace prepost::nic::encode_test {
namespace {

TEST(EncodeTest, GoldenBytes) {
  for (const test::GoldenWqe& golden : test::GoldenWqes()) {
    EXPECT_EQ(test::HexWords(golden.encoded), golden.words) << golden.name;
  }
}

NodeProgram OneQueue(std::vector<SendEntry> sends, std::vector<ReceiveEntry> receives) {
  NodeProgram program;
  program.cqs.resize(2);
  QueuePair& qp = program.qps.emplace_back();
  qp.sends = std::move(sends);
  qp.receives = std::move(receives);
  return program;
}

std::vector<std::string> Relocations(const QueueImage& image) {
  std::vector<std::string> names;
  for (const Relocation& it : image.relocations) {
    names.push_back(fmt::format("{} {} {}", it.offset, Name(it.kind), it.target));
  }
  return names;
}

TEST(EncodeTest, WaitIsOneBlockWithItsRelocations) {
  const auto images = Encode(OneQueue(
      {{.opcode = Opcode::kNop}, {.opcode = Opcode::kWait, .cq = CqId(1), .cqe_index = 3}}, {}));
  const QueueImage& sq = images[0].sq;
  ASSERT_EQ(sq.bytes.size(), 2 * kWqebbBytes);
  EXPECT_EQ(test::HexWords(std::vector(sq.bytes.begin() + 64, sq.bytes.begin() + 96)),
            "0000010f 00000002 00000000 00000000 00000000 00000000 00000003 00000000");
  EXPECT_EQ(Relocations(sq), (std::vector<std::string>{"1 wqe_index 0", "4 qpn 0", "65 wqe_index 0",
                                                       "68 qpn 0", "88 wait_index 1", "92 cqn 1"}));
}

TEST(EncodeTest, BlockCarriesItsNumberAndPlace) {
  const auto images = Encode(OneQueue({{.opcode = Opcode::kSendImm,
                                        .signaled = true,
                                        .block = 5,
                                        .offset = 0x5000,
                                        .bytes = 0x1000}},
                                      {{.block = 5, .offset = 0x5000, .bytes = 0x1000}}));
  EXPECT_EQ(
      test::HexWords(std::vector(images[0].sq.bytes.begin(), images[0].sq.bytes.begin() + 32)),
      "0000000b 00000002 00000008 00000005 00001000 00000000 00000000 00005000");
  EXPECT_EQ(Relocations(images[0].sq),
            (std::vector<std::string>{"1 wqe_index 0", "4 qpn 0", "12 epoch 0", "20 lkey 0",
                                      "24 address 0"}));
  EXPECT_EQ(test::HexWords(images[0].rq.bytes), "00001000 00000000 00000000 00005000");
  EXPECT_EQ(Relocations(images[0].rq), (std::vector<std::string>{"4 lkey 0", "8 address 0"}));
}

// A data segment of byte count 0 would mean 2 GiB.
TEST(EncodeTest, EmptyPayloadHasNoDataSegment) {
  const auto images =
      Encode(OneQueue({{.opcode = Opcode::kSend}, {.opcode = Opcode::kSendImm, .block = 0}}, {{}}));
  const std::vector<std::byte>& sq = images[0].sq.bytes;
  EXPECT_EQ(sq[control::kSegments], std::byte{1});
  EXPECT_EQ(sq[kWqebbBytes + control::kSegments], std::byte{1});
  EXPECT_EQ(test::HexWords(images[0].rq.bytes), "00000000 00000100 00000000 00000000");
  EXPECT_TRUE(images[0].rq.relocations.empty());
}

}  // namespace
}  // namespace prepost::nic::encode_test
