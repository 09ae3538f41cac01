// SPDX-License-Identifier: Apache-2.0
//
// Encode: the entries of queue programs as the bytes that the NIC reads (wqe.h), with a relocation
// wherever a byte depends on something that is known only when objects exist: their numbers, memory
// keys, addresses, counters, the epoch. What is not relocated is final. The segment writers below
// are also what golden-byte tests call.
#ifndef PREPOST_BACKENDS_NIC_PROGRAM_ENCODE_H_
#define PREPOST_BACKENDS_NIC_PROGRAM_ENCODE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/nic/program/queue_program.h"
#include "backends/nic/wqe.h"

namespace prepost::nic {

struct ControlSegment {
  uint8_t op_mod = 0;
  uint16_t wqe_index = 0;
  Opcode opcode = Opcode::kNop;
  uint32_t qpn = 0;
  uint8_t segments = 1;
  CompletionMode completion = CompletionMode::kOnError;
  uint8_t fence = kFenceNone;
  uint32_t immediate = 0;
};
struct CoordinationSegment {
  uint32_t index = 0;
  uint32_t number = 0;
};
struct DataSegment {
  uint32_t byte_count = 0;
  uint32_t lkey = 0;
  uint64_t address = 0;

  friend bool operator==(const DataSegment&, const DataSegment&) = default;
};
struct RemoteSegment {
  uint64_t address = 0;
  uint32_t rkey = 0;
};
struct AtomicSegment {
  uint64_t add = 0;
};

// Each writes kSegmentBytes at `at`.
void EncodeSegment(const ControlSegment& segment, std::byte* at);
void EncodeSegment(const CoordinationSegment& segment, std::byte* at);
void EncodeSegment(const DataSegment& segment, std::byte* at);
void EncodeSegment(const RemoteSegment& segment, std::byte* at);
void EncodeSegment(const AtomicSegment& segment, std::byte* at);

/// What the linker does at `offset`; `target` is a CqId or QpId where the table says so.
enum class RelocationKind : uint8_t {
  kWqeIndex,    ///< 16 bits += the send queue's index at the start of the run (QP)
  kQpn,         ///< 24 bits = number of the QP
  kCqn,         ///< 32 bits = number of the CQ
  kWaitIndex,   ///< 32 bits += the CQ's producer counter at the start of the run, mod 2^24 (CQ)
  kLkey,        ///< 32 bits = key of the message buffer
  kAddress,     ///< 64 bits += address of the message buffer
  kEpoch,       ///< 8 bits = epoch
  kEnableQpn,   ///< 32 bits = number of the QP that SEND_EN enables (QP)
  kEnableIndex  ///< 32 bits += that QP's send queue's index at the start, mod 2^16 (QP)
};
const char* Name(RelocationKind kind);

struct Relocation {
  uint32_t offset = 0;  ///< in bytes, from the queue's first
  RelocationKind kind = RelocationKind::kWqeIndex;
  uint32_t target = 0;

  friend bool operator==(const Relocation&, const Relocation&) = default;
};

/// One ring's content, from its first entry; relocations are sorted by offset.
struct QueueImage {
  std::vector<std::byte> bytes;
  std::vector<Relocation> relocations;
};

struct QueuePairImage {
  QueueImage sq;
  QueueImage rq;
};

/// By QpId. Deterministic.
std::vector<QueuePairImage> Encode(const NodeProgram& program);

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_PROGRAM_ENCODE_H_
