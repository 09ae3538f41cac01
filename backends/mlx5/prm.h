// SPDX-License-Identifier: Apache-2.0
//
// The commands of mlx5 firmware that we use, as tables of their fields. Mailboxes are big-endian;
// fields are written as manuals write them, as bits of the 32-bit word at a byte offset. What is
// not written is zero. Fields that only tests and the stand-in read are named as well.
//
// Where they come from: the positions that rdma-core's private mlx5_ifc.h and DPDK's mlx5_prm.h
// agree on. tests/backends/mlx5/mlx5_prm_test.cc checks every one against its bit offset there.
#ifndef PREPOST_BACKENDS_MLX5_PRM_H_
#define PREPOST_BACKENDS_MLX5_PRM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace prepost::mlx5::prm {

/// The pages in which memory is registered (umem).
inline constexpr size_t kPageBytes = 4096;
/// The longest message of an RC queue pair, as a power of two: 1 GiB.
inline constexpr uint8_t kLogMessageMax = 30;
/// UDP source ports of RoCE v2 begin here.
inline constexpr uint32_t kUdpPortFirst = 0xc000;

/// Bits of a structure, counted from its start, most significant first.
struct Field {
  uint32_t offset = 0;
  uint32_t width = 0;

  friend constexpr bool operator==(const Field&, const Field&) = default;
};
/// Bits `high` to `low` of the word at `byte`.
constexpr Field Bits(uint32_t byte, uint32_t high, uint32_t low) {
  return {byte * 8 + 31 - high, high - low + 1};
}
/// `bytes` bytes at `byte`.
constexpr Field Bytes(uint32_t byte, uint32_t bytes) { return {byte * 8, bytes * 8}; }
/// A field of a structure that lies inside another.
constexpr Field In(Field structure, Field field) {
  return {structure.offset + field.offset, field.width};
}

/// At most 64 bits, within one or two words. The mailbox must be that long.
uint64_t Get(std::span<const std::byte> mailbox, Field field);
/// `value` must fit.
void Set(std::span<std::byte> mailbox, Field field, uint64_t value);

// Sizes in bytes.
inline constexpr size_t kHeaderBytes = 16;  ///< inputs and outputs with nothing but a header
inline constexpr size_t kObjectCommandBytes =
    272;  ///< CREATE_x, changes of a QP, answers to QUERY_x
inline constexpr size_t kQueryHcaCapOutBytes = 16 + 4096;

using Header = std::array<std::byte, kHeaderBytes>;
using ObjectCommand = std::array<std::byte, kObjectCommandBytes>;
using QueryHcaCapOut = std::array<std::byte, kQueryHcaCapOutBytes>;

enum class Command : uint16_t {
  kQueryHcaCap = 0x100,
  kCreateCq = 0x400,
  kQueryCq = 0x402,
  kCreateQp = 0x500,
  kRst2Init = 0x502,
  kInit2Rtr = 0x503,
  kRtr2Rts = 0x504,
  k2Err = 0x507,
  k2Rst = 0x50a,
  kQueryQp = 0x50b
};
/// "CREATE_QP", "RST2INIT", ...; "?" for others.
const char* Name(Command command);

/// The status in an output, which drivers call MLX5_CMD_STAT_*.
enum class Status : uint8_t {
  kOk = 0x0,
  kInternalError = 0x1,
  kBadOperation = 0x2,
  kBadParameter = 0x3,
  kBadSystemState = 0x4,
  kBadResource = 0x5,
  kResourceBusy = 0x6,
  kLimit = 0x8,
  kBadResourceState = 0x9,
  kBadIndex = 0xa,
  kNoResources = 0xf,
  kBadInputLength = 0x50,
  kBadOutputLength = 0x51
};
/// "bad parameter", ...; "?" for others.
const char* Name(Status status);

/// Events of a CQ or QP, that one subscribes to: MLX5_EVENT_TYPE_* of the kernel's mlx5/device.h.
enum class EventType : uint16_t {
  kCompletion = 0x00,  ///< of a CQ that was armed
  kCqError = 0x04,     ///< IBV_EVENT_CQ_ERR
  kQpFatal = 0x05,     ///< WQ_CATAS_ERROR, IBV_EVENT_QP_FATAL
  kQpRequest = 0x10,   ///< WQ_INVAL_REQ_ERROR, IBV_EVENT_QP_REQ_ERR
  kQpAccess = 0x11     ///< WQ_ACCESS_ERROR, IBV_EVENT_QP_ACCESS_ERR
};

/// qpc::kState.
enum class QpcState : uint8_t { kReset = 0, kInit = 1, kRtr = 2, kRts = 3, kError = 6 };
/// qpc::kRqType.
enum class RqType : uint8_t { kRegular = 0, kNone = 3 };
/// cqc::kStatus.
enum class CqcStatus : uint8_t { kOk = 0, kOverflow = 9, kWriteFailure = 10 };

// op_mod of QUERY_HCA_CAP: type << 1 | 1 for the values in force.
inline constexpr uint16_t kGeneralCaps = 0 << 1 | 1;
inline constexpr uint16_t kRoceCaps = 4 << 1 | 1;

inline constexpr uint8_t kPmMigrated = 3;                ///< qpc::kPmState
inline constexpr uint8_t kAtomicModeInfiniBand = 1;      ///< qpc::kAtomicMode: 8 bytes
inline constexpr uint32_t kDefaultUserIndex = 0xffffff;  ///< with cqe_version 1

// The doorbell page (UAR), and the word that arms a CQ there and, the upper half, in its doorbell
// record.
inline constexpr size_t kArmOffset = 0x20;
inline constexpr size_t kArmRecord = 1;  ///< of a CQ's doorbell record
namespace arm {
inline constexpr Field kSerial = Bits(0x00, 29, 28);  // counts the events that have come
inline constexpr Field kSolicitedOnly = Bits(0x00, 24, 24);
inline constexpr Field kConsumer = Bits(0x00, 23, 0);
inline constexpr Field kCqn = Bits(0x04, 23, 0);
}  // namespace arm

/// Every command's input begins so; commands about an object carry its number.
namespace in {
inline constexpr Field kOpcode = Bits(0x00, 31, 16);
inline constexpr Field kUid = Bits(0x00, 15, 0);  // filled in by the kernel
inline constexpr Field kOpMod = Bits(0x04, 15, 0);
inline constexpr Field kNumber = Bits(0x08, 23, 0);  // QPN or CQN
}  // namespace in

/// Every command's output begins so; commands that make an object return its number.
namespace out {
inline constexpr Field kStatus = Bits(0x00, 31, 24);  // enum Status
inline constexpr Field kSyndrome = Bits(0x04, 31, 0);
inline constexpr Field kNumber = Bits(0x08, 23, 0);  // QPN or CQN
}  // namespace out

/// Address path (struct ads), part of a QPC.
namespace ads {
inline constexpr Field kFl = Bits(0x00, 31, 31);  // force loopback
inline constexpr Field kPkeyIndex = Bits(0x00, 15, 0);
inline constexpr Field kGrh = Bits(0x04, 23, 23);
inline constexpr Field kMlid = Bits(0x04, 22, 16);
inline constexpr Field kRlid = Bits(0x04, 15, 0);           // InfiniBand: LID of the remote port
inline constexpr Field kAckTimeout = Bits(0x08, 31, 27);    // 4.096 us << n
inline constexpr Field kSrcAddrIndex = Bits(0x08, 23, 16);  // GID index of the local port
inline constexpr Field kStatRate = Bits(0x08, 11, 8);
inline constexpr Field kHopLimit = Bits(0x08, 7, 0);
inline constexpr Field kTclass = Bits(0x0c, 27, 20);
inline constexpr Field kFlowLabel = Bits(0x0c, 19, 0);
inline constexpr Field kRgidHigh = Bytes(0x10, 8);  // GID of the remote port
inline constexpr Field kRgidLow = Bytes(0x18, 8);
inline constexpr Field kUdpSport = Bits(0x20, 15, 0);  // RoCE v2
inline constexpr Field kEthPrio = Bits(0x24, 30, 28);
inline constexpr Field kSl = Bits(0x24, 27, 24);           // service level
inline constexpr Field kVhcaPortNum = Bits(0x24, 23, 16);  // local port, from 1
inline constexpr Field kRmacHigh = Bits(0x24, 15, 0);      // rmac_47_32: RoCE, next hop
inline constexpr Field kRmacLow = Bits(0x28, 31, 0);       // rmac_31_0
}  // namespace ads

/// QP context.
namespace qpc {
inline constexpr Field kState = Bits(0x00, 31, 28);    // enum QpcState
inline constexpr Field kSt = Bits(0x00, 23, 16);       // service type, 0: RC
inline constexpr Field kPmState = Bits(0x00, 12, 11);  // 3: migrated, always
inline constexpr Field kPd = Bits(0x04, 23, 0);
inline constexpr Field kMtu = Bits(0x08, 31, 29);  // 1: 256 bytes ... 5: 4096
inline constexpr Field kLogMsgMax = Bits(0x08, 28, 24);
inline constexpr Field kLogRqSize = Bits(0x08, 22, 19);
inline constexpr Field kLogRqStride = Bits(0x08, 18, 16);  // 16 bytes << n
inline constexpr Field kNoSq = Bits(0x08, 15, 15);
inline constexpr Field kLogSqSize = Bits(0x08, 14, 11);
inline constexpr Field kTsFormat = Bits(0x08, 7, 6);  // of CQEs: 0 free running, 1 default
inline constexpr Field kUarPage = Bits(0x0c, 23, 0);
inline constexpr Field kUserIndex = Bits(0x10, 23, 0);
inline constexpr Field kLogPageSize = Bits(0x14, 28, 24);  // 4096 bytes << n
inline constexpr Field kRemoteQpn = Bits(0x14, 23, 0);
inline constexpr Field kPrimaryPath = Bytes(0x18, 44);  // ads
inline constexpr Field kLogAckReqFreq = Bits(0x70, 31, 28);
inline constexpr Field kLogSraMax = Bits(0x70, 23, 21);   // READs that it may have on the way
inline constexpr Field kRetryCount = Bits(0x70, 18, 16);  // 7: at most
inline constexpr Field kRnrRetry = Bits(0x70, 15, 13);    // 7: forever
inline constexpr Field kNextSendPsn = Bits(0x78, 23, 0);
inline constexpr Field kCqnSend = Bits(0x7c, 23, 0);     // cqn_snd
inline constexpr Field kLogRraMax = Bits(0x90, 23, 21);  // READs that it serves at a time
inline constexpr Field kAtomicMode = Bits(0x90, 19, 16);
inline constexpr Field kRre = Bits(0x90, 15, 15);  // peers may READ
inline constexpr Field kRwe = Bits(0x90, 14, 14);  // peers may WRITE
inline constexpr Field kRae = Bits(0x90, 13, 13);  // peers may have atomics
inline constexpr Field kPageOffset = Bits(0x90, 11, 6);
inline constexpr Field kCdSlaveReceive = Bits(0x90, 2, 2);  // executes what RECV_EN enables
inline constexpr Field kCdSlaveSend = Bits(0x90, 1, 1);     // executes what SEND_EN enables
inline constexpr Field kCdMaster = Bits(0x90, 0, 0);        // may hold WAIT, SEND_EN, RECV_EN
inline constexpr Field kMinRnrNak = Bits(0x94, 28, 24);     // code of the time between RNR retries
inline constexpr Field kNextRcvPsn = Bits(0x94, 23, 0);
inline constexpr Field kCqnReceive = Bits(0x9c, 23, 0);  // cqn_rcv
inline constexpr Field kDbrAddr = Bytes(0xa0, 8);        // offset in the umem
inline constexpr Field kRqType = Bits(0xac, 26, 24);     // enum RqType
inline constexpr Field kSrqn = Bits(0xac, 23, 0);
inline constexpr Field kHwSqWqebbCounter = Bits(0xb4, 31, 16);
inline constexpr Field kSwSqWqebbCounter = Bits(0xb4, 15, 0);
inline constexpr Field kHwRqCounter = Bits(0xb8, 31, 0);
inline constexpr Field kSwRqCounter = Bits(0xbc, 31, 0);
inline constexpr Field kCsReq = Bits(0xc4, 15, 8);  // scatter to CQE; 0: off
inline constexpr Field kCsRes = Bits(0xc4, 7, 0);
inline constexpr Field kDbrUmemValid = Bits(0xd0, 28, 28);
inline constexpr Field kDbrUmemId = Bits(0xe4, 31, 0);
}  // namespace qpc

/// CREATE_QP and the commands that change its state (all of the same size). QUERY_QP answers in the
/// same form.
namespace qp_command {
inline constexpr Field kOptParamMask = Bits(0x10, 31, 0);
inline constexpr Field kQpc = Bytes(0x18, 232);
inline constexpr Field kWqUmemOffset = Bytes(0x100, 8);  // CREATE_QP only, as the following
inline constexpr Field kWqUmemId = Bits(0x108, 31, 0);
inline constexpr Field kWqUmemValid = Bits(0x10c, 31, 31);
}  // namespace qp_command

/// CQ context.
namespace cqc {
inline constexpr Field kStatus = Bits(0x00, 31, 28);  // enum CqcStatus
inline constexpr Field kDbrUmemValid = Bits(0x00, 25, 25);
inline constexpr Field kCqeSize = Bits(0x00, 23, 21);    // cqe_sz, 0: 64 bytes
inline constexpr Field kCc = Bits(0x00, 20, 20);         // collapsed: every CQE goes to entry 0
inline constexpr Field kOi = Bits(0x00, 17, 17);         // ignore overrun
inline constexpr Field kCqeCompEn = Bits(0x00, 14, 14);  // compressed CQEs; 0: off
inline constexpr Field kSt = Bits(0x00, 11, 8);
inline constexpr Field kDbrUmemId = Bits(0x04, 31, 0);
inline constexpr Field kLogCqSize = Bits(0x0c, 28, 24);
inline constexpr Field kUarPage = Bits(0x0c, 23, 0);
inline constexpr Field kEqn = Bits(0x14, 7, 0);            // c_eqn
inline constexpr Field kLogPageSize = Bits(0x18, 28, 24);  // 4096 bytes << n
inline constexpr Field kConsumerCounter = Bits(0x28, 23, 0);
inline constexpr Field kProducerCounter = Bits(0x2c, 23, 0);
inline constexpr Field kDbrAddr = Bytes(0x38, 8);  // offset in the umem
}  // namespace cqc

/// CREATE_CQ; QUERY_CQ answers in the same form.
namespace cq_command {
inline constexpr Field kCqc = Bytes(0x10, 64);
inline constexpr Field kCqUmemOffset = Bytes(0x50, 8);  // CREATE_CQ only, as the following
inline constexpr Field kCqUmemId = Bits(0x58, 31, 0);
inline constexpr Field kCqUmemValid = Bits(0x5c, 31, 31);
}  // namespace cq_command

/// General capabilities (struct cmd_hca_cap), at `query_hca_cap_out::kCapability`.
namespace hca_cap {
inline constexpr Field kLogMaxQpSz = Bits(0x10, 23, 16);
inline constexpr Field kLogMaxCqSz = Bits(0x18, 23, 16);
inline constexpr Field kWqeIndexIgnore = Bits(0x10, 6, 6);
inline constexpr Field kLogMaxStaticSqWq = Bits(0x24, 12, 8);
inline constexpr Field kCqeVersion = Bits(0x3c, 3, 0);
inline constexpr Field kRoce = Bits(0x40, 2, 2);    // has RoCE capabilities to ask for
inline constexpr Field kCqOi = Bits(0x44, 31, 31);  // CQs may ignore overrun
inline constexpr Field kCd = Bits(0x44, 19, 19);    // cross-channel: WAIT, SEND_EN, RECV_EN
inline constexpr Field kWaitOnData = Bits(0xd0, 20, 20);
inline constexpr Field kWaitOnTime = Bits(0xd0, 19, 19);
}  // namespace hca_cap

/// A send queue without a QP (struct sqc), and its ring (struct wq). None is made: cross-channel
/// bits of RC QPs are the QP's.
namespace sqc {
inline constexpr Field kCdMaster = Bits(0x0, 30, 30);
inline constexpr Field kNonWire = Bits(0x0, 16, 16);
inline constexpr Field kStaticSqWq = Bits(0x0, 15, 15);
}  // namespace sqc
namespace wq {
inline constexpr Field kCdSlave = Bits(0x0, 24, 24);
}  // namespace wq

/// RoCE capabilities (struct roce_cap).
namespace roce_cap {
inline constexpr Field kFlRcQpWhenRoceEnabled = Bits(0x00, 25, 25);  // RC QPs may force loopback
inline constexpr Field kQpTsFormat =
    Bits(0x00, 1, 0);  // formats of time stamps; 0: free running only
}  // namespace roce_cap

/// QUERY_HCA_CAP.
namespace query_hca_cap_out {
inline constexpr Field kCapability = Bytes(0x10, 4096);
}  // namespace query_hca_cap_out
inline constexpr Field kQpc = qp_command::kQpc;
inline constexpr Field kPath = In(kQpc, qpc::kPrimaryPath);
inline constexpr Field kCqc = cq_command::kCqc;

}  // namespace prepost::mlx5::prm

#endif  // PREPOST_BACKENDS_MLX5_PRM_H_
