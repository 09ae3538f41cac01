// SPDX-License-Identifier: Apache-2.0
//
// Where the fields of firmware commands are, against the bit offsets that rdma-core's private
// mlx5_ifc.h and DPDK's mlx5_prm.h have, and how they are read and written. A field that is one bit
// off would make hardware create something else.
#include <gtest/gtest.h>

#include "backends/mlx5/prm.h"

namespace prepost::mlx5::prm::mlx5_prm_test {
namespace {

static_assert(in::kOpcode == Field{0x0, 16});
static_assert(in::kUid == Field{0x10, 16});
static_assert(in::kOpMod == Field{0x30, 16});
static_assert(in::kNumber == Field{0x48, 24});
static_assert(out::kStatus == Field{0x0, 8});
static_assert(out::kSyndrome == Field{0x20, 32});
static_assert(out::kNumber == Field{0x48, 24});
static_assert(ads::kFl == Field{0x0, 1});
static_assert(ads::kPkeyIndex == Field{0x10, 16});
static_assert(ads::kGrh == Field{0x28, 1});
static_assert(ads::kMlid == Field{0x29, 7});
static_assert(ads::kRlid == Field{0x30, 16});
static_assert(ads::kAckTimeout == Field{0x40, 5});
static_assert(ads::kSrcAddrIndex == Field{0x48, 8});
static_assert(ads::kStatRate == Field{0x54, 4});
static_assert(ads::kHopLimit == Field{0x58, 8});
static_assert(ads::kTclass == Field{0x64, 8});
static_assert(ads::kFlowLabel == Field{0x6c, 20});
static_assert(ads::kRgidHigh == Field{0x80, 64});
static_assert(ads::kRgidLow == Field{0xc0, 64});
static_assert(ads::kUdpSport == Field{0x110, 16});
static_assert(ads::kEthPrio == Field{0x121, 3});
static_assert(ads::kSl == Field{0x124, 4});
static_assert(ads::kVhcaPortNum == Field{0x128, 8});
static_assert(ads::kRmacHigh == Field{0x130, 16});
static_assert(ads::kRmacLow == Field{0x140, 32});
static_assert(qpc::kState == Field{0x0, 4});
static_assert(qpc::kSt == Field{0x8, 8});
static_assert(qpc::kPmState == Field{0x13, 2});
static_assert(qpc::kPd == Field{0x28, 24});
static_assert(qpc::kMtu == Field{0x40, 3});
static_assert(qpc::kLogMsgMax == Field{0x43, 5});
static_assert(qpc::kLogRqSize == Field{0x49, 4});
static_assert(qpc::kLogRqStride == Field{0x4d, 3});
static_assert(qpc::kNoSq == Field{0x50, 1});
static_assert(qpc::kLogSqSize == Field{0x51, 4});
static_assert(qpc::kTsFormat == Field{0x58, 2});
static_assert(qpc::kUarPage == Field{0x68, 24});
static_assert(qpc::kUserIndex == Field{0x88, 24});
static_assert(qpc::kLogPageSize == Field{0xa3, 5});
static_assert(qpc::kRemoteQpn == Field{0xa8, 24});
static_assert(qpc::kPrimaryPath == Field{0xc0, 352});
static_assert(qpc::kLogAckReqFreq == Field{0x380, 4});
static_assert(qpc::kLogSraMax == Field{0x388, 3});
static_assert(qpc::kRetryCount == Field{0x38d, 3});
static_assert(qpc::kRnrRetry == Field{0x390, 3});
static_assert(qpc::kNextSendPsn == Field{0x3c8, 24});
static_assert(qpc::kCqnSend == Field{0x3e8, 24});
static_assert(qpc::kLogRraMax == Field{0x488, 3});
static_assert(qpc::kAtomicMode == Field{0x48c, 4});
static_assert(qpc::kRre == Field{0x490, 1});
static_assert(qpc::kRwe == Field{0x491, 1});
static_assert(qpc::kRae == Field{0x492, 1});
static_assert(qpc::kPageOffset == Field{0x494, 6});
static_assert(qpc::kCdSlaveReceive == Field{0x49d, 1});
static_assert(qpc::kCdSlaveSend == Field{0x49e, 1});
static_assert(qpc::kCdMaster == Field{0x49f, 1});
static_assert(qpc::kMinRnrNak == Field{0x4a3, 5});
static_assert(qpc::kNextRcvPsn == Field{0x4a8, 24});
static_assert(qpc::kCqnReceive == Field{0x4e8, 24});
static_assert(qpc::kDbrAddr == Field{0x500, 64});
static_assert(qpc::kRqType == Field{0x565, 3});
static_assert(qpc::kSrqn == Field{0x568, 24});
static_assert(qpc::kHwSqWqebbCounter == Field{0x5a0, 16});
static_assert(qpc::kSwSqWqebbCounter == Field{0x5b0, 16});
static_assert(qpc::kHwRqCounter == Field{0x5c0, 32});
static_assert(qpc::kSwRqCounter == Field{0x5e0, 32});
static_assert(qpc::kCsReq == Field{0x630, 8});
static_assert(qpc::kCsRes == Field{0x638, 8});
static_assert(qpc::kDbrUmemValid == Field{0x683, 1});
static_assert(qpc::kDbrUmemId == Field{0x720, 32});
static_assert(qp_command::kOptParamMask == Field{0x80, 32});
static_assert(qp_command::kQpc == Field{0xc0, 1856});
static_assert(qp_command::kWqUmemOffset == Field{0x800, 64});
static_assert(qp_command::kWqUmemId == Field{0x840, 32});
static_assert(qp_command::kWqUmemValid == Field{0x860, 1});
static_assert(cqc::kStatus == Field{0x0, 4});
static_assert(cqc::kDbrUmemValid == Field{0x6, 1});
static_assert(cqc::kCqeSize == Field{0x8, 3});
static_assert(cqc::kCc == Field{0xb, 1});
static_assert(cqc::kOi == Field{0xe, 1});
static_assert(cqc::kCqeCompEn == Field{0x11, 1});
static_assert(cqc::kSt == Field{0x14, 4});
static_assert(cqc::kDbrUmemId == Field{0x20, 32});
static_assert(cqc::kLogCqSize == Field{0x63, 5});
static_assert(cqc::kUarPage == Field{0x68, 24});
static_assert(cqc::kEqn == Field{0xb8, 8});
static_assert(cqc::kLogPageSize == Field{0xc3, 5});
static_assert(cqc::kConsumerCounter == Field{0x148, 24});
static_assert(cqc::kProducerCounter == Field{0x168, 24});
static_assert(cqc::kDbrAddr == Field{0x1c0, 64});
static_assert(cq_command::kCqc == Field{0x80, 512});
static_assert(cq_command::kCqUmemOffset == Field{0x280, 64});
static_assert(cq_command::kCqUmemId == Field{0x2c0, 32});
static_assert(cq_command::kCqUmemValid == Field{0x2e0, 1});
static_assert(hca_cap::kLogMaxQpSz == Field{0x88, 8});
static_assert(hca_cap::kLogMaxCqSz == Field{0xc8, 8});
static_assert(hca_cap::kCqeVersion == Field{0x1fc, 4});
static_assert(hca_cap::kRoce == Field{0x21d, 1});
static_assert(hca_cap::kCqOi == Field{0x220, 1});
static_assert(hca_cap::kCd == Field{0x22c, 1});
static_assert(hca_cap::kWqeIndexIgnore == Field{0x99, 1});
static_assert(hca_cap::kLogMaxStaticSqWq == Field{0x133, 5});
static_assert(hca_cap::kWaitOnData == Field{0x68b, 1});
static_assert(hca_cap::kWaitOnTime == Field{0x68c, 1});
static_assert(sqc::kCdMaster == Field{0x1, 1});
static_assert(sqc::kNonWire == Field{0xf, 1});
static_assert(sqc::kStaticSqWq == Field{0x10, 1});
static_assert(wq::kCdSlave == Field{0x7, 1});
static_assert(roce_cap::kFlRcQpWhenRoceEnabled == Field{0x6, 1});
static_assert(roce_cap::kQpTsFormat == Field{0x1e, 2});
static_assert(query_hca_cap_out::kCapability == Field{0x80, 32768});

static_assert(kPath == Field{0xc0 + 0xc0, 352});
static_assert(In(kQpc, qpc::kCdMaster) == Field{0x55f, 1});
static_assert(In(kCqc, cqc::kOi) == Field{0x8e, 1});

// Catches a shift from the wrong end of the word, and a field that spills into its neighbours.
TEST(Mlx5PrmTest, FieldsAreMostSignificantBitFirst) {
  Header mailbox = {};
  Set(mailbox, Bits(0x04, 31, 31), 1);
  EXPECT_EQ(mailbox[4], std::byte{0x80});
  Set(mailbox, Bits(0x04, 15, 4), 0xabc);
  EXPECT_EQ(mailbox[6], std::byte{0xab});
  EXPECT_EQ(mailbox[7], std::byte{0xc0});
  Set(mailbox, Bits(0x04, 15, 4), 0x001);
  EXPECT_EQ(mailbox[4], std::byte{0x80});
  EXPECT_EQ(mailbox[6], std::byte{0x00});
  EXPECT_EQ(mailbox[7], std::byte{0x10});
  EXPECT_EQ(Get(mailbox, Bits(0x04, 31, 0)), 0x80000010u);
}

TEST(Mlx5PrmTest, WideFieldsAreBigEndian) {
  Header mailbox = {};
  Set(mailbox, Bytes(0x08, 8), 0x0102030405060708);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(mailbox[8 + i], static_cast<std::byte>(i + 1)) << i;
  EXPECT_EQ(Get(mailbox, Bytes(0x08, 8)), 0x0102030405060708u);
  EXPECT_EQ(Get(mailbox, Bytes(0x00, 8)), 0u);
}

TEST(Mlx5PrmDeathTest, ValuesThatDoNotFitAreOurMistake) {
  Header mailbox = {};
  EXPECT_DEATH(Set(mailbox, Bits(0x00, 2, 0), 8), "");
  EXPECT_DEATH(Set(mailbox, Bits(0x10, 7, 0), 1), "");
}

}  // namespace
}  // namespace prepost::mlx5::prm::mlx5_prm_test
