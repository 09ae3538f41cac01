// SPDX-License-Identifier: Apache-2.0
//
// Decode: reads WQEs back from ring memory, as a NIC does. It shares the field tables of wqe.h with
// the encoder and no code, so that each can be used to check the other. The emulated NIC and the
// listing read bytes only through it.
#ifndef PREPOST_BACKENDS_NIC_PROGRAM_DECODE_H_
#define PREPOST_BACKENDS_NIC_PROGRAM_DECODE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/nic/wqe.h"

namespace prepost::nic {

/// A stretch of memory that a data segment names.
struct DataPiece {
  uint32_t bytes = 0;
  uint32_t lkey = 0;
  uint64_t address = 0;

  friend bool operator==(const DataPiece&, const DataPiece&) = default;
};

/// A send WQE as read. Only the members of its opcode mean something. Opcodes that wqe.h does not
/// know are kept as numbers: a ring can hold anything.
struct SendWqe {
  uint8_t op_mod = 0;
  uint16_t wqe_index = 0;
  Opcode opcode = Opcode::kNop;
  uint32_t qpn = 0;
  uint8_t segments = 0;  ///< 0 when the entry was never written
  CompletionMode completion = CompletionMode::kOnError;
  uint8_t fence = 0;
  uint32_t immediate = 0;
  uint32_t index = 0;           ///< WAIT, SEND_EN, RECV_EN
  uint32_t number = 0;          ///< WAIT: CQN; SEND_EN, RECV_EN: QPN
  uint64_t remote_address = 0;  ///< RDMA and atomics, as `rkey`
  uint32_t rkey = 0;
  uint64_t add = 0;  ///< ATOMIC_FA
  std::vector<DataPiece> data;

  bool signaled() const { return static_cast<uint8_t>(completion) >= 2; }
  /// Basic blocks that the WQE takes, at least 1.
  uint16_t wqebbs() const { return static_cast<uint16_t>(segments <= 4 ? 1 : (segments + 3) / 4); }
  uint64_t payload_bytes() const;
  /// Number of segments that the opcode needs before its data: control, coordination, remote
  /// address, atomic.
  static uint8_t HeadSegments(Opcode opcode);
};

/// Reads the WQE at basic block `index` (mod the ring's size, a power of two of WQEBBs) of a send
/// queue. Segments may wrap the ring's end. `*out` is reused, so that reading allocates nothing in
/// the long run.
void DecodeSend(std::span<const std::byte> ring, uint16_t index, SendWqe* out);

/// Reads the receive WQE at `slot`, of `stride` bytes, up to the segment that ends it.
void DecodeReceive(std::span<const std::byte> ring, size_t slot, size_t stride,
                   std::vector<DataPiece>* out);

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_PROGRAM_DECODE_H_
