// SPDX-License-Identifier: Apache-2.0
#include "prepost/backends/nic/cqe_reader.h"

#include <fmt/format.h>

#include <atomic>

#include "prepost/backends/nic/queue_program.h"
#include "prepost/ir/count.h"

namespace prepost::nic {

std::optional<Cqe> CqeReader::Next() {
  const uint32_t entries = static_cast<uint32_t>(cq_.ring.size() / kCqeBytes);
  std::byte* at = cq_.ring.data() + size_t{next_ & (entries - 1)} * kCqeBytes;
  // An entry is the host's when it was written (opcode) in this lap of the ring (owner bit = parity
  // of the lap).
  auto& owner = *reinterpret_cast<uint8_t*>(at + cqe::kOpcodeOwner);
  const uint8_t opcode_owner = std::atomic_ref(owner).load(std::memory_order_acquire);
  const auto opcode = static_cast<CqeOpcode>(opcode_owner >> 4);
  const bool lap = (next_ & entries) != 0;
  if (opcode == CqeOpcode::kInvalid || (opcode_owner & 1) != lap) return std::nullopt;
  next_ = (next_ + 1) & kCqIndexMask;
  ++*cq_.cqes_read;
  Cqe cqe{.opcode = opcode,
          .immediate = LoadBigEndian<uint32_t>(at + cqe::kImmediate),
          .byte_count = LoadBigEndian<uint32_t>(at + cqe::kByteCount),
          .qpn = LoadBigEndian<uint32_t>(at + cqe::kOpcodeQpn) & kNumberMask,
          .wqe_counter = LoadBigEndian<uint16_t>(at + cqe::kWqeCounter)};
  if (cqe.is_error()) {
    cqe.syndrome = static_cast<Syndrome>(LoadBigEndian<uint8_t>(at + cqe::kSyndrome));
  }
  return cqe;
}

void CqeReader::Consume() {
  std::atomic_ref(cq_.doorbell_record[kConsumerRecord])
      .store(BigEndian(next_), std::memory_order_release);
}

std::string WrongReceive(const Cqe& cqe, const ExpectedReceive& expected) {
  if (expected.block == kNoBlock) {
    if (cqe.opcode == CqeOpcode::kResponderSend && cqe.byte_count == 0) return "";
    return fmt::format("a credit of 0 bytes was expected, {} came", Count(cqe.byte_count, "byte"));
  }
  const uint32_t immediate = BlockImmediate(expected.epoch, expected.block);
  if (cqe.opcode != CqeOpcode::kResponderSendImm || cqe.immediate != immediate) {
    return fmt::format("block {} of epoch {} was expected, block {} of epoch {} came",
                       expected.block, expected.epoch, cqe.immediate & 0xffffff,
                       cqe.immediate >> 24);
  }
  if (cqe.byte_count != expected.bytes) {
    return fmt::format("block {} has {}, {} came", expected.block, Count(expected.bytes, "byte"),
                       cqe.byte_count);
  }
  return "";
}

}  // namespace prepost::nic
