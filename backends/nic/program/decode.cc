// SPDX-License-Identifier: Apache-2.0
#include "backends/nic/program/decode.h"

#include <algorithm>

namespace prepost::nic {
namespace {

DataPiece ReadPiece(const std::byte* segment) {
  return {.bytes = LoadBigEndian<uint32_t>(segment + data::kByteCount),
          .lkey = LoadBigEndian<uint32_t>(segment + data::kLkey),
          .address = LoadBigEndian<uint64_t>(segment + data::kAddress)};
}

}  // namespace

uint64_t SendWqe::payload_bytes() const {
  uint64_t sum = 0;
  for (const DataPiece& piece : data) sum += piece.bytes;
  return sum;
}

uint8_t SendWqe::HeadSegments(Opcode opcode) {
  switch (opcode) {
    case Opcode::kNop:
    case Opcode::kSend:
    case Opcode::kSendImm:
      return 1;
    case Opcode::kWait:
    case Opcode::kRecvEnable:
    case Opcode::kSendEnable:
    case Opcode::kRdmaWrite:
    case Opcode::kRdmaWriteImm:
    case Opcode::kRdmaRead:
      return 2;
    case Opcode::kAtomicFetchAdd:
      return 3;
  }
  return 1;
}

void DecodeSend(std::span<const std::byte> ring, uint16_t index, SendWqe* out) {
  const size_t ring_segments = ring.size() / kSegmentBytes;
  const size_t first = size_t{index} * (kWqebbBytes / kSegmentBytes);
  const auto segment = [&](size_t i) {
    return ring.data() + ((first + i) & (ring_segments - 1)) * kSegmentBytes;
  };
  const std::byte* ctrl = segment(0);
  const uint32_t qpn_and_segments = LoadBigEndian<uint32_t>(ctrl + control::kQpn);
  const auto flags = LoadBigEndian<uint8_t>(ctrl + control::kFlags);
  out->op_mod = LoadBigEndian<uint8_t>(ctrl + control::kOpMod);
  out->wqe_index = LoadBigEndian<uint16_t>(ctrl + control::kWqeIndex);
  out->opcode = static_cast<Opcode>(LoadBigEndian<uint8_t>(ctrl + control::kOpcode));
  out->qpn = qpn_and_segments >> 8;
  out->segments = qpn_and_segments & 0x3f;
  out->completion = static_cast<CompletionMode>(flags >> 2 & 3);
  out->fence = flags & 0xe0;
  out->immediate = LoadBigEndian<uint32_t>(ctrl + control::kImmediate);
  out->data.clear();

  const uint8_t head = SendWqe::HeadSegments(out->opcode);
  if (head >= 2 && out->segments >= 2) {
    const std::byte* second = segment(1);
    out->index = LoadBigEndian<uint32_t>(second + coordination::kIndex);
    out->number = LoadBigEndian<uint32_t>(second + coordination::kNumber);
    out->remote_address = LoadBigEndian<uint64_t>(second + remote::kAddress);
    out->rkey = LoadBigEndian<uint32_t>(second + remote::kRkey);
  }
  if (head == 3 && out->segments >= 3)
    out->add = LoadBigEndian<uint64_t>(segment(2) + atomic::kAdd);
  for (size_t i = head; i < std::min<size_t>(out->segments, ring_segments); ++i) {
    out->data.push_back(ReadPiece(segment(i)));
  }
}

void DecodeReceive(std::span<const std::byte> ring, size_t slot, size_t stride,
                   std::vector<DataPiece>* out) {
  out->clear();
  for (size_t at = 0; at + kSegmentBytes <= stride; at += kSegmentBytes) {
    const DataPiece piece = ReadPiece(ring.data() + slot * stride + at);
    if (piece.bytes == 0 && piece.lkey == kInvalidLkey) return;
    out->push_back(piece);
  }
}

}  // namespace prepost::nic
