// SPDX-License-Identifier: Apache-2.0
//
// CqeReader: the host's view of a completion queue: reads entry after entry by the ownership rule;
// and the check of what a receive got.
#ifndef PREPOST_BACKENDS_NIC_HOST_CQE_READER_H_
#define PREPOST_BACKENDS_NIC_HOST_CQE_READER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "backends/nic/device.h"
#include "backends/nic/program/queue_program.h"
#include "backends/nic/wqe.h"
#include "ir/plan.h"

namespace prepost::nic {

struct Cqe {
  CqeOpcode opcode = CqeOpcode::kInvalid;
  Syndrome syndrome = Syndrome::kNone;  ///< error CQEs
  uint32_t immediate = 0;
  uint32_t byte_count = 0;
  uint32_t qpn = 0;
  uint16_t wqe_counter = 0;

  bool is_error() const {
    return opcode == CqeOpcode::kRequesterError || opcode == CqeOpcode::kResponderError;
  }
};

/// Reads the CQEs of one CQ in order. The NIC may be writing meanwhile.
class CqeReader {
 public:
  /// A reader of no CQ: only to be assigned to.
  CqeReader() = default;
  explicit CqeReader(const Cq& cq)
      : ring_(cq.ring.data()),
        entries_(static_cast<uint32_t>(cq.ring.size() / kCqeBytes)),
        next_(cq.producer_base),
        doorbell_record_(cq.doorbell_record),
        cqes_read_(cq.cqes_read) {}

  /// The next CQE if the NIC has written it. Consume() reports it to the NIC.
  std::optional<Cqe> Next();
  /// Stores the consumer index, so that a CQ without ignore_overrun gets room.
  void Consume();

 private:
  std::byte* EntryAt() const { return ring_ + size_t{next_ & (entries_ - 1)} * kCqeBytes; }
  static uint8_t OwnerAt(std::byte* entry) {
    auto& owner = *reinterpret_cast<uint8_t*>(entry + cqe::kOpcodeOwner);
    return std::atomic_ref(owner).load(std::memory_order_acquire);
  }
  /// An entry is the host's when it was written (opcode) in this lap of the ring (owner bit =
  /// parity of the lap).
  bool IsOurs(uint8_t opcode_owner) const {
    const bool lap = (next_ & entries_) != 0;
    return static_cast<CqeOpcode>(opcode_owner >> 4) != CqeOpcode::kInvalid &&
           (opcode_owner & 1) == lap;
  }

  std::byte* ring_ = nullptr;
  uint32_t entries_ = 0;
  uint32_t next_ = 0;
  uint32_t* doorbell_record_ = nullptr;
  uint64_t* cqes_read_ = nullptr;
};

inline std::optional<Cqe> CqeReader::Next() {
  const std::byte* const at = EntryAt();
  const uint8_t opcode_owner = OwnerAt(EntryAt());
  if (!IsOurs(opcode_owner)) return std::nullopt;
  next_ = (next_ + 1) & kCqIndexMask;
  ++*cqes_read_;
  Cqe cqe{.opcode = static_cast<CqeOpcode>(opcode_owner >> 4),
          .immediate = LoadBigEndian<uint32_t>(at + cqe::kImmediate),
          .byte_count = LoadBigEndian<uint32_t>(at + cqe::kByteCount),
          .qpn = LoadBigEndian<uint32_t>(at + cqe::kOpcodeQpn) & kNumberMask,
          .wqe_counter = LoadBigEndian<uint16_t>(at + cqe::kWqeCounter)};
  if (cqe.is_error()) {
    cqe.syndrome = static_cast<Syndrome>(LoadBigEndian<uint8_t>(at + cqe::kSyndrome));
  }
  return cqe;
}

inline void CqeReader::Consume() {
  std::atomic_ref(doorbell_record_[kConsumerRecord])
      .store(BigEndian(next_), std::memory_order_release);
}

/// A message as the plan has it.
struct ExpectedReceive {
  uint32_t block = kNoBlock;  ///< kNoBlock: a credit
  uint32_t bytes = 0;
  uint8_t epoch = 0;
};
/// Whether the CQE of a receive that is no error is that of what was expected.
inline bool IsRight(const Cqe& cqe, const ExpectedReceive& expected) {
  if (expected.block == kNoBlock) {
    return cqe.opcode == CqeOpcode::kResponderSend && cqe.byte_count == 0;
  }
  return cqe.opcode == CqeOpcode::kResponderSendImm && cqe.byte_count == expected.bytes &&
         cqe.immediate == BlockImmediate(expected.epoch, expected.block);
}

/// What is wrong with it, or "".
std::string WrongReceive(const Cqe& cqe, const ExpectedReceive& expected);

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_HOST_CQE_READER_H_
