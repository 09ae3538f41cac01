// SPDX-License-Identifier: Apache-2.0
//
// Our tables of byte offsets, opcodes and flags against mlx5dv.h, and our golden bytes against
// those that its inline functions make. Compiled where libmlx5 is found; elsewhere it is one
// skipped test.
#include <gtest/gtest.h>

#ifdef PREPOST_HAVE_MLX5DV
#include <infiniband/mlx5dv.h>

#include <cstddef>

#include "backends/nic/program/encode.h"
#include "backends/nic/wqe.h"
#include "tests/support/golden_wqes.h"

namespace prepost::nic::mlx5dv_layout_test {
namespace {

static_assert(sizeof(mlx5_wqe_ctrl_seg) == kSegmentBytes);
static_assert(offsetof(mlx5_wqe_ctrl_seg, opmod_idx_opcode) == control::kOpMod);
static_assert(offsetof(mlx5_wqe_ctrl_seg, qpn_ds) == control::kQpn);
static_assert(offsetof(mlx5_wqe_ctrl_seg, fm_ce_se) == control::kFlags);
static_assert(offsetof(mlx5_wqe_ctrl_seg, imm) == control::kImmediate);
static_assert(sizeof(mlx5_wqe_data_seg) == kSegmentBytes);
static_assert(offsetof(mlx5_wqe_data_seg, byte_count) == data::kByteCount);
static_assert(offsetof(mlx5_wqe_data_seg, lkey) == data::kLkey);
static_assert(offsetof(mlx5_wqe_data_seg, addr) == data::kAddress);
static_assert(sizeof(mlx5_wqe_raddr_seg) == kSegmentBytes);
static_assert(offsetof(mlx5_wqe_raddr_seg, raddr) == remote::kAddress);
static_assert(offsetof(mlx5_wqe_raddr_seg, rkey) == remote::kRkey);
static_assert(sizeof(mlx5_cqe64) == kCqeBytes);
static_assert(offsetof(mlx5_cqe64, imm_inval_pkey) == cqe::kImmediate);
static_assert(offsetof(mlx5_cqe64, byte_cnt) == cqe::kByteCount);
static_assert(offsetof(mlx5_cqe64, sop_drop_qpn) == cqe::kOpcodeQpn);
static_assert(offsetof(mlx5_cqe64, wqe_counter) == cqe::kWqeCounter);
static_assert(offsetof(mlx5_cqe64, op_own) == cqe::kOpcodeOwner);
static_assert(sizeof(mlx5_err_cqe) == kCqeBytes);
static_assert(offsetof(mlx5_err_cqe, vendor_err_synd) == cqe::kVendorSyndrome);
static_assert(offsetof(mlx5_err_cqe, syndrome) == cqe::kSyndrome);
static_assert(offsetof(mlx5_err_cqe, s_wqe_opcode_qpn) == cqe::kOpcodeQpn);
static_assert(offsetof(mlx5_err_cqe, wqe_counter) == cqe::kWqeCounter);
static_assert(offsetof(mlx5_err_cqe, op_own) == cqe::kOpcodeOwner);

static_assert(MLX5_OPCODE_NOP == static_cast<int>(Opcode::kNop));
static_assert(MLX5_OPCODE_SEND == static_cast<int>(Opcode::kSend));
static_assert(MLX5_OPCODE_SEND_IMM == static_cast<int>(Opcode::kSendImm));
static_assert(MLX5_OPCODE_RDMA_WRITE == static_cast<int>(Opcode::kRdmaWrite));
static_assert(MLX5_OPCODE_RDMA_WRITE_IMM == static_cast<int>(Opcode::kRdmaWriteImm));
static_assert(MLX5_OPCODE_RDMA_READ == static_cast<int>(Opcode::kRdmaRead));
static_assert(MLX5_CQE_REQ == static_cast<int>(CqeOpcode::kRequester));
static_assert(MLX5_CQE_RESP_WR_IMM == static_cast<int>(CqeOpcode::kResponderWriteImm));
static_assert(MLX5_CQE_RESP_SEND == static_cast<int>(CqeOpcode::kResponderSend));
static_assert(MLX5_CQE_RESP_SEND_IMM == static_cast<int>(CqeOpcode::kResponderSendImm));
static_assert(MLX5_CQE_REQ_ERR == static_cast<int>(CqeOpcode::kRequesterError));
static_assert(MLX5_CQE_RESP_ERR == static_cast<int>(CqeOpcode::kResponderError));
static_assert(MLX5_CQE_INVALID == static_cast<int>(CqeOpcode::kInvalid));
static_assert(MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR == static_cast<int>(Syndrome::kLocalLength));
static_assert(MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR == static_cast<int>(Syndrome::kLocalQpOperation));
static_assert(MLX5_CQE_SYNDROME_LOCAL_PROT_ERR == static_cast<int>(Syndrome::kLocalProtection));
static_assert(MLX5_CQE_SYNDROME_WR_FLUSH_ERR == static_cast<int>(Syndrome::kFlushed));
static_assert(MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR ==
              static_cast<int>(Syndrome::kRemoteInvalidRequest));
static_assert(MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR == static_cast<int>(Syndrome::kRemoteAccess));
static_assert(MLX5_CQE_SYNDROME_REMOTE_OP_ERR == static_cast<int>(Syndrome::kRemoteOperation));
static_assert(MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR ==
              static_cast<int>(Syndrome::kTransportRetryExceeded));
static_assert(MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR == static_cast<int>(Syndrome::kRnrRetryExceeded));
static_assert(MLX5_RCV_DBR == kReceiveRecord && MLX5_SND_DBR == kSendRecord);
static_assert(MLX5_INVALID_LKEY == kInvalidLkey);
static_assert(MLX5_INLINE_SEG == kInlineFlag);
static_assert(MLX5_WQE_CTRL_CQ_UPDATE == static_cast<int>(CompletionMode::kAlways) << 2);
static_assert(MLX5_WQE_CTRL_FENCE == kFence);
static_assert(MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE == kFenceInitiatorSmall);

/// One WQE as rdma-core's functions make it.
class Mlx5Wqe {
 public:
  Mlx5Wqe& Control(uint16_t index, Opcode opcode, uint32_t qpn, uint8_t segments, uint8_t flags,
                   uint32_t immediate) {
    mlx5dv_set_ctrl_seg(At<mlx5_wqe_ctrl_seg>(), index, static_cast<uint8_t>(opcode), 0, qpn, flags,
                        segments, 0, htobe32(immediate));
    return *this;
  }
  /// The coordination segment is not in mlx5dv.h; its two words are where the last two of a data
  /// segment's are.
  Mlx5Wqe& Coordination(uint32_t index, uint32_t number) {
    auto* words = At<mlx5_wqe_data_seg>();
    words->addr = htobe64(uint64_t{index} << 32 | number);
    return *this;
  }
  Mlx5Wqe& Remote(uint64_t address, uint32_t rkey) {
    auto* segment = At<mlx5_wqe_raddr_seg>();
    segment->raddr = htobe64(address);
    segment->rkey = htobe32(rkey);
    return *this;
  }
  Mlx5Wqe& Data(uint32_t bytes, uint32_t lkey, uint64_t address) {
    mlx5dv_set_data_seg(At<mlx5_wqe_data_seg>(), bytes, lkey, address);
    return *this;
  }
  std::vector<std::byte> bytes() const { return {bytes_, bytes_ + used_}; }

 private:
  template <typename T>
  T* At() {
    auto* segment = reinterpret_cast<T*>(bytes_ + used_);
    used_ += kSegmentBytes;
    return segment;
  }
  alignas(kWqebbBytes) std::byte bytes_[kWqebbBytes] = {};
  size_t used_ = 0;
};

TEST(Mlx5dvLayoutTest, GoldenBytesAreThoseOfRdmaCore) {
  constexpr uint8_t kUpdate = MLX5_WQE_CTRL_CQ_UPDATE;
  constexpr uint64_t kAddress = 0x7f0000001000;
  const std::vector<std::vector<std::byte>> theirs = {
      Mlx5Wqe().Control(0x10, Opcode::kWait, 0x123, 2, 0, 0).Coordination(3, 0xa5).bytes(),
      Mlx5Wqe().Control(0x10, Opcode::kWait, 0x123, 2, kUpdate, 0).Coordination(3, 0xa5).bytes(),
      Mlx5Wqe().Control(0x11, Opcode::kSendEnable, 0x123, 2, 0, 0).Coordination(7, 0x456).bytes(),
      Mlx5Wqe().Control(0x12, Opcode::kRecvEnable, 0x123, 2, 0, 0).Coordination(4, 0x456).bytes(),
      Mlx5Wqe()
          .Control(0, Opcode::kSendImm, 0x456, 2, kUpdate, 0xcafe)
          .Data(0x1000, 0x1234, kAddress)
          .bytes(),
      Mlx5Wqe()
          .Control(1, Opcode::kRdmaWriteImm, 0x456, 3, 0, 1)
          .Remote(0x7f0000002000, 0x5678)
          .Data(0x1000, 0x1234, kAddress)
          .bytes(),
      Mlx5Wqe().Control(2, Opcode::kNop, 0x456, 1, 0, 0).bytes(),
      Mlx5Wqe().Data(0x1000, 0x1234, kAddress).Data(0, MLX5_INVALID_LKEY, 0).bytes(),
  };
  const std::vector<test::GoldenWqe> ours = test::GoldenWqes();
  ASSERT_EQ(theirs.size(), ours.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(test::HexWords(theirs[i]), test::HexWords(ours[i].encoded)) << ours[i].name;
  }
}

}  // namespace
}  // namespace prepost::nic::mlx5dv_layout_test

#else

TEST(Mlx5dvLayoutTest, GoldenBytesAreThoseOfRdmaCore) {
  GTEST_SKIP() << "mlx5dv.h was not found when this was built";
}

#endif
