// SPDX-License-Identifier: Apache-2.0
//
// Golden WQEs: entries of every kind with the bytes that mlx5 expects, as 32-bit words in hex.
#ifndef PREPOST_TESTS_SUPPORT_GOLDEN_WQES_H_
#define PREPOST_TESTS_SUPPORT_GOLDEN_WQES_H_

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <vector>

#include "backends/nic/program/encode.h"

namespace prepost::test {

struct GoldenWqe {
  std::string name;
  std::vector<std::byte> encoded;  ///< what our encoder makes
  std::string words;               ///< what is right
};

inline std::string HexWords(const std::vector<std::byte>& bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i != 0 && i % 4 == 0) text += ' ';
    text += fmt::format("{:02x}", std::to_integer<unsigned>(bytes[i]));
  }
  return text;
}

template <typename... Segments>
std::vector<std::byte> EncodeAll(const Segments&... segments) {
  std::vector<std::byte> bytes(sizeof...(segments) * nic::kSegmentBytes);
  size_t at = 0;
  (nic::EncodeSegment(segments, bytes.data() + nic::kSegmentBytes * at++), ...);
  return bytes;
}

inline std::vector<GoldenWqe> GoldenWqes() {
  using nic::ControlSegment;
  using nic::CoordinationSegment;
  using nic::DataSegment;
  using nic::Opcode;
  using nic::RemoteSegment;
  constexpr auto kAlways = nic::CompletionMode::kAlways;
  const DataSegment data{.byte_count = 0x1000, .lkey = 0x1234, .address = 0x7f0000001000};
  return {
      {"WAIT",
       EncodeAll(
           ControlSegment{.wqe_index = 0x10, .opcode = Opcode::kWait, .qpn = 0x123, .segments = 2},
           CoordinationSegment{.index = 3, .number = 0xa5}),
       "0000100f 00012302 00000000 00000000 00000000 00000000 00000003 000000a5"},
      {"WAIT signaled",
       EncodeAll(ControlSegment{.wqe_index = 0x10,
                                .opcode = Opcode::kWait,
                                .qpn = 0x123,
                                .segments = 2,
                                .completion = kAlways},
                 CoordinationSegment{.index = 3, .number = 0xa5}),
       "0000100f 00012302 00000008 00000000 00000000 00000000 00000003 000000a5"},
      {"SEND_EN",
       EncodeAll(
           ControlSegment{
               .wqe_index = 0x11, .opcode = Opcode::kSendEnable, .qpn = 0x123, .segments = 2},
           CoordinationSegment{.index = 7, .number = 0x456}),
       "00001117 00012302 00000000 00000000 00000000 00000000 00000007 00000456"},
      {"RECV_EN",
       EncodeAll(
           ControlSegment{
               .wqe_index = 0x12, .opcode = Opcode::kRecvEnable, .qpn = 0x123, .segments = 2},
           CoordinationSegment{.index = 4, .number = 0x456}),
       "00001216 00012302 00000000 00000000 00000000 00000000 00000004 00000456"},
      {"SEND_IMM signaled",
       EncodeAll(ControlSegment{.wqe_index = 0,
                                .opcode = Opcode::kSendImm,
                                .qpn = 0x456,
                                .segments = 2,
                                .completion = kAlways,
                                .immediate = 0xcafe},
                 data),
       "0000000b 00045602 00000008 0000cafe 00001000 00001234 00007f00 00001000"},
      {"RDMA_WRITE_IMM",
       EncodeAll(ControlSegment{.wqe_index = 1,
                                .opcode = Opcode::kRdmaWriteImm,
                                .qpn = 0x456,
                                .segments = 3,
                                .immediate = 1},
                 RemoteSegment{.address = 0x7f0000002000, .rkey = 0x5678}, data),
       "00000109 00045603 00000000 00000001 00007f00 00002000 00005678 00000000 "
       "00001000 00001234 00007f00 00001000"},
      {"NOP",
       EncodeAll(
           ControlSegment{.wqe_index = 2, .opcode = Opcode::kNop, .qpn = 0x456, .segments = 1}),
       "00000200 00045601 00000000 00000000"},
      {"receive", EncodeAll(data, DataSegment{.lkey = nic::kInvalidLkey}),
       "00001000 00001234 00007f00 00001000 00000000 00000100 00000000 00000000"},
  };
}

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_GOLDEN_WQES_H_
