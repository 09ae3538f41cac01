// SPDX-License-Identifier: Apache-2.0
#include "backends/nic/program/encode.h"

#include <algorithm>
#include <type_traits>

namespace prepost::nic {
namespace {

/// Appends WQEs to one queue's image.
class QueueEncoder {
 public:
  QueueEncoder(QpId qp, size_t bytes, size_t relocations) : qp_(qp) {
    image_.bytes.reserve(bytes);
    image_.relocations.reserve(relocations);
  }

  void Add(const SendEntry& entry) {
    const size_t begin = image_.bytes.size();
    image_.bytes.resize(begin + kWqebbBytes);
    ControlSegment ctrl{.wqe_index = static_cast<uint16_t>(begin / kWqebbBytes),
                        .opcode = entry.opcode};
    if (entry.signaled) ctrl.completion = CompletionMode::kAlways;
    const bool coordinates = entry.opcode == Opcode::kWait || entry.opcode == Opcode::kSendEnable;
    const bool has_segment = coordinates || (entry.opcode == Opcode::kSendImm && entry.bytes != 0);
    if (has_segment) ctrl.segments = 2;
    if (entry.opcode == Opcode::kSendImm) ctrl.immediate = BlockImmediate(0, entry.block);
    EncodeSegment(ctrl, image_.bytes.data() + begin);
    Relocate(begin + control::kWqeIndex, RelocationKind::kWqeIndex, qp_.value);
    Relocate(begin + control::kQpn, RelocationKind::kQpn, qp_.value);
    if (entry.opcode == Opcode::kSendImm) {
      Relocate(begin + control::kImmediate, RelocationKind::kEpoch, 0);
    }
    if (!has_segment) return;
    const size_t second = begin + kSegmentBytes;
    if (entry.opcode == Opcode::kWait) {
      EncodeSegment(CoordinationSegment{.index = entry.cqe_index}, image_.bytes.data() + second);
      Relocate(second + coordination::kIndex, RelocationKind::kWaitIndex, entry.cq.value);
      Relocate(second + coordination::kNumber, RelocationKind::kCqn, entry.cq.value);
    } else if (entry.opcode == Opcode::kSendEnable) {
      EncodeSegment(CoordinationSegment{.index = entry.count & kWqIndexMask},
                    image_.bytes.data() + second);
      Relocate(second + coordination::kIndex, RelocationKind::kEnableIndex, entry.qp.value);
      Relocate(second + coordination::kNumber, RelocationKind::kEnableQpn, entry.qp.value);
    } else {
      AddData(second, entry.offset, entry.bytes);
    }
  }

  void Add(const ReceiveEntry& entry) {
    const size_t begin = image_.bytes.size();
    image_.bytes.resize(begin + kReceiveStrideBytes);
    if (entry.bytes != 0) {
      AddData(begin, entry.offset, entry.bytes);
    } else {
      EncodeSegment(DataSegment{.lkey = kInvalidLkey}, image_.bytes.data() + begin);
    }
  }

  QueueImage Take() { return std::move(image_); }

 private:
  void AddData(size_t at, uint64_t offset, uint32_t bytes) {
    EncodeSegment(DataSegment{.byte_count = bytes, .address = offset}, image_.bytes.data() + at);
    Relocate(at + data::kLkey, RelocationKind::kLkey, 0);
    Relocate(at + data::kAddress, RelocationKind::kAddress, 0);
  }

  void Relocate(size_t offset, RelocationKind kind, uint32_t target) {
    image_.relocations.push_back({static_cast<uint32_t>(offset), kind, target});
  }

  QpId qp_;
  QueueImage image_;
};

template <typename Entry>
QueueImage EncodeQueue(QpId qp, const std::vector<Entry>& entries) {
  constexpr bool kIsSend = std::is_same_v<Entry, SendEntry>;
  constexpr size_t kStride = kIsSend ? kWqebbBytes : kReceiveStrideBytes;
  constexpr size_t kRelocations = kIsSend ? 5 : 2;  // an entry has no more
  QueueEncoder encoder(qp, entries.size() * kStride, entries.size() * kRelocations);
  for (const Entry& entry : entries) encoder.Add(entry);
  return encoder.Take();
}

}  // namespace

void EncodeSegment(const ControlSegment& segment, std::byte* at) {
  std::fill_n(at, kSegmentBytes, std::byte{0});
  StoreBigEndian(at + control::kOpMod, segment.op_mod);
  StoreBigEndian(at + control::kWqeIndex, segment.wqe_index);
  StoreBigEndian(at + control::kOpcode, static_cast<uint8_t>(segment.opcode));
  StoreBigEndian(at + control::kQpn, segment.qpn << 8 | segment.segments);
  StoreBigEndian(
      at + control::kFlags,
      static_cast<uint8_t>(segment.fence | static_cast<uint8_t>(segment.completion) << 2));
  StoreBigEndian(at + control::kImmediate, segment.immediate);
}

void EncodeSegment(const CoordinationSegment& segment, std::byte* at) {
  std::fill_n(at, kSegmentBytes, std::byte{0});
  StoreBigEndian(at + coordination::kIndex, segment.index);
  StoreBigEndian(at + coordination::kNumber, segment.number);
}

void EncodeSegment(const DataSegment& segment, std::byte* at) {
  StoreBigEndian(at + data::kByteCount, segment.byte_count);
  StoreBigEndian(at + data::kLkey, segment.lkey);
  StoreBigEndian(at + data::kAddress, segment.address);
}

void EncodeSegment(const RemoteSegment& segment, std::byte* at) {
  std::fill_n(at, kSegmentBytes, std::byte{0});
  StoreBigEndian(at + remote::kAddress, segment.address);
  StoreBigEndian(at + remote::kRkey, segment.rkey);
}

void EncodeSegment(const AtomicSegment& segment, std::byte* at) {
  std::fill_n(at, kSegmentBytes, std::byte{0});
  StoreBigEndian(at + atomic::kAdd, segment.add);
}

const char* Name(RelocationKind kind) {
  switch (kind) {
    case RelocationKind::kWqeIndex:
      return "wqe_index";
    case RelocationKind::kQpn:
      return "qpn";
    case RelocationKind::kCqn:
      return "cqn";
    case RelocationKind::kWaitIndex:
      return "wait_index";
    case RelocationKind::kLkey:
      return "lkey";
    case RelocationKind::kAddress:
      return "address";
    case RelocationKind::kEpoch:
      return "epoch";
    case RelocationKind::kEnableQpn:
      return "enable_qpn";
    case RelocationKind::kEnableIndex:
      return "enable_index";
  }
  PREPOST_CHECK(false);
  return "";
}

std::vector<QueuePairImage> Encode(const NodeProgram& program) {
  std::vector<QueuePairImage> images;
  images.reserve(program.qps.size());
  for (size_t i = 0; i < program.qps.size(); ++i) {
    const QpId id = QpId::FromIndex(i);
    images.push_back({.sq = EncodeQueue(id, program.qps[i].sends),
                      .rq = EncodeQueue(id, program.qps[i].receives)});
  }
  return images;
}

}  // namespace prepost::nic
