// SPDX-License-Identifier: Apache-2.0
//
// The bytes that an mlx5 NIC reads and writes: send-queue entries (WQEs), receive-queue entries and
// completion-queue entries (CQEs). All fields are big-endian; tables give the byte offsets. The
// encoder writes them, the decoder and the emulated NIC read them; tests compare them with
// mlx5dv.h, which nothing here includes, so that this builds anywhere.
//
// WAIT, SEND_EN and RECV_EN (CORE-Direct) are not in public headers; DPDK's mlx5_prm.h, libmlx5 of
// MLNX_OFED and PCX agree.
#ifndef PREPOST_BACKENDS_NIC_WQE_H_
#define PREPOST_BACKENDS_NIC_WQE_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace prepost::nic {

inline constexpr size_t kWqebbBytes = 64;    ///< basic block: the unit of send-queue indices
inline constexpr size_t kSegmentBytes = 16;  ///< the unit of a WQE's size
inline constexpr size_t kCqeBytes = 64;
/// Our receive WQEs have one data segment and no control segment, so the stride is one segment.
inline constexpr size_t kReceiveStrideBytes = kSegmentBytes;
inline constexpr uint32_t kInvalidLkey = 0x100;  ///< ends the data segments of a receive WQE
/// A flag of a data segment's byte_count: payload follows.
inline constexpr uint32_t kInlineFlag = 0x80000000;

inline constexpr uint32_t kRcMessageBytesMax = 1u << 30;  ///< log_msg_max = 30

/// Indices are modular. A send queue's index has 16 bits and at most 2^15 - 1 lie ahead; a CQ's has
/// 24 and 2^23 - 1.
inline constexpr uint32_t kWqIndexMask = (1u << 16) - 1;
inline constexpr uint32_t kWqIndexAhead = (1u << 15) - 1;
inline constexpr uint32_t kCqIndexMask = (1u << 24) - 1;
inline constexpr uint32_t kCqIndexAhead = (1u << 23) - 1;
inline constexpr uint32_t kNumberMask = (1u << 24) - 1;  ///< QPNs and CQNs

enum class Opcode : uint8_t {
  kNop = 0x00,
  kRdmaWrite = 0x08,
  kRdmaWriteImm = 0x09,
  kSend = 0x0a,
  kSendImm = 0x0b,
  kWait = 0x0f,
  kRdmaRead = 0x10,
  kAtomicFetchAdd = 0x12,
  kRecvEnable = 0x16,
  kSendEnable = 0x17
};
/// With an immediate or not: it goes into the peer's next receive, where that one says.
constexpr bool IsSend(Opcode opcode) {
  return opcode == Opcode::kSend || opcode == Opcode::kSendImm;
}

/// The peer answers with bytes, which a fence can wait for.
constexpr bool ReturnsBytes(Opcode opcode) {
  return opcode == Opcode::kRdmaRead || opcode == Opcode::kAtomicFetchAdd;
}
inline constexpr uint32_t kAtomicBytes = 8;  ///< what an atomic works on, aligned to that

/// When a send WQE makes a CQE: bits [3:2] of the control segment's fm_ce_se.
enum class CompletionMode : uint8_t {
  kOnError = 0,
  kOnFirstError = 1,
  kAlways = 2,
  kAlwaysAndEvent = 3
};

/// Fence, bits [7:5] of fm_ce_se, as a byte: Linux' MLX5_FENCE_MODE_NONE, _INITIATOR_SMALL, _FENCE,
/// _STRONG_ORDERING and _SMALL_AND_FENCE (include/linux/mlx5/qp.h). mlx5dv.h has the second and the
/// last, the latter as MLX5_WQE_CTRL_FENCE.
inline constexpr uint8_t kFenceNone = 0x00;
inline constexpr uint8_t kFenceInitiatorSmall = 0x20;
inline constexpr uint8_t kFenceReads = 0x40;
inline constexpr uint8_t kFenceStrongOrdering = 0x60;
inline constexpr uint8_t kFence = 0x80;
/// All but the first two hold a WQE until earlier READs and atomics of its queue are complete.
constexpr bool HoldsForReads(uint8_t fence) { return fence >= kFenceReads; }

/// Control segment, the first 16 bytes of every send WQE (struct mlx5_wqe_ctrl_seg).
namespace control {
inline constexpr size_t kOpMod = 0;     // 1 byte
inline constexpr size_t kWqeIndex = 1;  // 2 bytes: index of the WQE's first basic block
inline constexpr size_t kOpcode = 3;    // 1 byte
inline constexpr size_t kQpn = 4;       // 3 bytes: the QP that owns the queue
inline constexpr size_t kSegments = 7;  // 1 byte: bits [5:0], size of the WQE in segments
inline constexpr size_t kFlags = 11;    // 1 byte: fence [7:5], completion mode [3:2], solicited [1]
inline constexpr size_t kImmediate = 12;  // 4 bytes
}  // namespace control

/// Second segment of WAIT, SEND_EN and RECV_EN.
namespace coordination {
inline constexpr size_t kIndex = 8;    // 4 bytes: WAIT: CQE waited for; EN: new producer index
inline constexpr size_t kNumber = 12;  // 4 bytes: WAIT: CQN; EN: QPN of the controlled queue
}  // namespace coordination

/// Data segment (struct mlx5_wqe_data_seg). A byte count of 0 would mean 2 GiB: empty payloads have
/// no segment.
namespace data {
inline constexpr size_t kByteCount = 0;  // 4 bytes
inline constexpr size_t kLkey = 4;       // 4 bytes
inline constexpr size_t kAddress = 8;    // 8 bytes
}  // namespace data

/// Remote address segment of RDMA WRITE, READ and atomics (struct mlx5_wqe_raddr_seg).
namespace remote {
inline constexpr size_t kAddress = 0;  // 8 bytes
inline constexpr size_t kRkey = 8;     // 4 bytes
}  // namespace remote

/// Third segment of an atomic (struct mlx5_wqe_atomic_seg). The data segment behind it takes what
/// stood at the remote address before.
namespace atomic {
inline constexpr size_t kAdd = 0;  // 8 bytes
}  // namespace atomic

/// Completion-queue entry (struct mlx5_cqe64; with errors struct mlx5_err_cqe).
namespace cqe {
inline constexpr size_t kImmediate = 36;       // 4 bytes, as sent
inline constexpr size_t kByteCount = 44;       // 4 bytes: received
inline constexpr size_t kVendorSyndrome = 54;  // 1 byte, error CQEs
inline constexpr size_t kSyndrome = 55;        // 1 byte, error CQEs
inline constexpr size_t kOpcodeQpn = 56;    // 4 bytes: [31:24] send opcode (requester), [23:0] QPN
inline constexpr size_t kWqeCounter = 60;   // 2 bytes: index of the completed WQE
inline constexpr size_t kOpcodeOwner = 63;  // 1 byte: [7:4] opcode, [0] owner
inline constexpr uint8_t kInvalid = 0xf0;   // kOpcodeOwner of an entry that was never written
}  // namespace cqe

enum class CqeOpcode : uint8_t {
  kRequester = 0,
  kResponderWriteImm = 1,
  kResponderSend = 2,
  kResponderSendImm = 3,
  kRequesterError = 13,
  kResponderError = 14,
  kInvalid = 15
};

enum class Syndrome : uint8_t {
  kNone = 0x00,
  kLocalLength = 0x01,
  kLocalQpOperation = 0x02,
  kLocalProtection = 0x04,
  kFlushed = 0x05,
  kRemoteInvalidRequest = 0x12,
  kRemoteAccess = 0x13,
  kRemoteOperation = 0x14,
  kTransportRetryExceeded = 0x15,
  kRnrRetryExceeded = 0x16
};

/// Doorbell record of a QP: two 32-bit words; a NIC reads the send word only when the doorbell
/// register is written.
inline constexpr size_t kReceiveRecord = 0;
inline constexpr size_t kSendRecord = 1;
/// Doorbell record of a CQ: the consumer index, 24 bits.
inline constexpr size_t kConsumerRecord = 0;

/// "SEND_IMM", "WAIT", ...; "?" for a value that is none of ours.
const char* Name(Opcode opcode);
/// "flushed", "RNR retry exceeded", ...
const char* Name(Syndrome syndrome);

template <typename T>
constexpr T BigEndian(T value) {
  if constexpr (std::endian::native == std::endian::big || sizeof(T) == 1) return value;
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
}
template <typename T>
T LoadBigEndian(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return BigEndian(value);
}
template <typename T>
void StoreBigEndian(std::byte* at, T value) {
  value = BigEndian(value);
  std::memcpy(at, &value, sizeof value);
}

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_WQE_H_
