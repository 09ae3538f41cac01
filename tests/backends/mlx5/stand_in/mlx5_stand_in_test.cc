// SPDX-License-Identifier: Apache-2.0
//
// What the stand-in refuses, one case per kind: each starts from commands that are right and spoils
// one thing. A check that is missing would let a device pass here whose commands hardware refuses.
// The steps of a QP's life are in mlx5_stand_in_qp_test.cc.
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "tests/support/stand_in_fixture.h"

namespace prepost::mlx5::mlx5_stand_in_test {
namespace {

using testing::IsEmpty;

TEST_F(StandInTest, UnknownOpcode) {
  prm::ObjectCommand in = CqCommand();
  Set(in, prm::in::kOpcode, 0x7ff);
  ExpectRefused(Create(), in, prm::Status::kBadOperation, "opcode 0x7ff is not known");
}

TEST_F(StandInTest, CommandByTheWrongCall) {
  prm::Header out = {};
  ExpectError(verbs().GeneralCommand(CqCommand(), out), EINVAL, "CREATE_CQ does not go by this");
  const uint32_t qpn = MakeQp();
  prm::Header in = {};
  Set(in, prm::in::kOpcode, static_cast<uint16_t>(Command::k2Err));
  Set(in, prm::in::kNumber, qpn + 1);
  ExpectError(verbs().ModifyObject(qp_, in, out), EINVAL, "for another object");
  Set(in, prm::in::kNumber, qpn);
  ExpectError(verbs().ModifyObject(cq_, in, out), EINVAL, "for another object");
  prm::ObjectCommand answer = {};
  Set(in, prm::in::kOpcode, static_cast<uint16_t>(Command::kQueryQp));
  ExpectError(verbs().QueryObject(cq_, in, answer), EINVAL, "for another object");
}

TEST_F(StandInTest, MailboxesOfTheWrongSize) {
  const prm::ObjectCommand in = CqCommand();
  ExpectRefused(Create(), Input(in).first(268), prm::Status::kBadInputLength,
                "CREATE_CQ has 268 bytes, expected 272");
  std::array<std::byte, 12> tiny = {};
  Object made;
  ExpectError(verbs().CreateObject(in, tiny, &made), EINVAL, "shorter than its header");
  prm::Header query = {};
  Set(query, prm::in::kOpcode, static_cast<uint16_t>(Command::kQueryHcaCap));
  Set(query, prm::in::kOpMod, prm::kGeneralCaps);
  ExpectRefused([&](Input i, Output o) { return verbs().GeneralCommand(i, o); }, query,
                prm::Status::kBadOutputLength, "QUERY_HCA_CAP has 4112 bytes");
}

// Reserved bits, the fields of other commands, and what the kernel fills in.
TEST_F(StandInTest, BitsThatACommandDoesNotTake) {
  const auto refused = [&](Field field) {
    ExpectCqRefused(field, 1, kBadParameter, "which CREATE_CQ does not take");
  };
  refused(prm::in::kUid);
  refused(Field{0x61, 1});
  refused(Cqc(prm::cqc::kCqeCompEn));
  refused(Cqc(prm::cqc::kStatus));
  refused(Field{0x87f, 1});  // the last bit
  EXPECT_EQ(stand_in_->last_refusal(), "bit 0x87f is set, which CREATE_CQ does not take");
}

// A field that another command of the QP takes is ignored by hardware here.
TEST_F(StandInTest, FieldsOfAnotherStep) {
  const uint32_t qpn = MakeQp();
  prm::ObjectCommand in = {};
  Set(in, prm::in::kOpcode, static_cast<uint16_t>(Command::kRst2Init));
  Set(in, prm::in::kNumber, qpn);
  Set(in, Qpc(prm::qpc::kCdMaster), 1);
  ExpectRefused(Modify(), in, kBadParameter, "which RST2INIT does not take");
}

TEST_F(StandInTest, UnknownCapabilities) {
  prm::Header in = {};
  Set(in, prm::in::kOpcode, static_cast<uint16_t>(Command::kQueryHcaCap));
  Set(in, prm::in::kOpMod, prm::kGeneralCaps | 0x20);
  prm::QueryHcaCapOut out = {};
  EXPECT_EQ(verbs().GeneralCommand(in, out), EREMOTEIO);
  EXPECT_THAT(stand_in_->last_refusal(), HasSubstr("capabilities 0x21 are not known"));
}

TEST_F(StandInTest, CqThatIsWrong) {
  using namespace prm::cqc;
  ExpectCqRefused(Cqc(kLogCqSize), 23, kBadParameter, "log_cq_size is above the device's");
  ExpectCqRefused(Cqc(kUarPage), 0x999, kBadResource, "doorbell page 0x999 does not exist");
  ExpectCqRefused(Cqc(kEqn), eqn_ + 1, kBadParameter, "event queue does not exist");
  ExpectCqRefused(Cqc(kCqeSize), 1, kBadParameter, "CQEs of 128 bytes");
  ExpectCqRefused(Cqc(kDbrUmemValid), 0, kBadParameter, "umem of the CQ is not said");
  ExpectCqRefused(prm::cq_command::kCqUmemValid, 0, kBadParameter, "umem of the CQ is not said");
  ExpectCqRefused(Cqc(kLogPageSize), 1, kBadParameter, "pages above 4096");
}

TEST_F(StandInTest, MemoryThatIsWrong) {
  using namespace prm::cqc;
  const Field offset = prm::cq_command::kCqUmemOffset;
  ExpectCqRefused(prm::cq_command::kCqUmemId, 0x999, kBadResource,
                  "CQ ring: umem 0x999 does not exist");
  ExpectCqRefused(offset, 64, kBadParameter, "offset 0x40 is not a multiple of 4096");
  ExpectCqRefused(offset, kUmemBytes, kBadParameter, "are not in a umem of 16384");
  ExpectCqRefused(offset, ~uint64_t{kPage - 1}, kBadParameter, "are not in a umem of 16384");
  ExpectCqRefused(Cqc(kLogCqSize), 9, kBadParameter, "32768 bytes at 0x0 are not in a umem");
  ExpectCqRefused(Cqc(kDbrUmemId), 0x999, kBadResource, "doorbell record: umem 0x999");
  ExpectCqRefused(Cqc(kDbrAddr), 3 * kPage + 4, kBadParameter, "is not a multiple of 8");
  ExpectCqRefused(Cqc(kDbrAddr), kUmemBytes, kBadParameter, "doorbell record: 8 bytes at 0x4000");
  ExpectCqRefused(Cqc(kDbrAddr), 64, kBadParameter, "lie in memory of a queue");
  ExpectCqRefused(Cqc(kConsumerCounter), 1, kBadParameter, "another consumer counter");
  memory_.get()[2 * nic::kCqeBytes + nic::cqe::kOpcodeOwner] = std::byte{0};
  ExpectRefused(Create(), CqCommand(), kBadParameter, "CQ entry 2 is not invalid");
}

TEST_F(StandInTest, QpThatIsWrong) {
  using namespace prm::qpc;
  ExpectQpRefused(Qpc(kSt), 3, kBadParameter, "only RC");
  ExpectQpRefused(Qpc(kPmState), 0, kBadParameter, "pm_state is not migrated");
  ExpectQpRefused(Qpc(kNoSq), 1, kBadParameter, "without send queue");
  ExpectQpRefused(Qpc(kLogPageSize), 1, kBadParameter, "pages above 4096");
  ExpectQpRefused(Qpc(kCsRes), 0x11, kBadParameter, "payload in CQEs");
  ExpectQpRefused(Qpc(kDbrUmemValid), 0, kBadParameter, "umem of the QP is not said");
  ExpectQpRefused(prm::qp_command::kWqUmemValid, 0, kBadParameter, "umem of the QP is not said");
  ExpectQpRefused(Qpc(kTsFormat), 1, kBadParameter, "ts_format");
  ExpectQpRefused(Qpc(kUserIndex), 0, kBadParameter, "user index");
  ExpectQpRefused(Qpc(kPd), 0x999, kBadResource, "protection domain does not exist");
  ExpectQpRefused(Qpc(kUarPage), 0x999, kBadResource, "doorbell page 0x999 does not exist");
  ExpectQpRefused(Qpc(kCqnReceive), 0x999, kBadResource, "CQ 0x999 does not exist");
  ExpectQpRefused(Qpc(kRqType), 1, kBadParameter, "type of receive queue");
  ExpectQpRefused(Qpc(kRqType), 3, kBadParameter, "no receive queue has a size");
  ExpectQpRefused(Qpc(kLogRqSize), 1, kBadParameter, "smaller than a basic block");
  ExpectQpRefused(Qpc(kHwSqWqebbCounter), 1, kBadParameter, "counters differ");
  ExpectQpRefused(Qpc(kLogSqSize), 15, kBadParameter, "QP rings: 2097216 bytes at 0x1000");
  ExpectQpRefused(Qpc(kDbrAddr), 3 * kPage + 1, kBadParameter, "QP doorbell record: offset");
  ExpectQpRefused(prm::qp_command::kWqUmemId, 0x999, kBadResource, "QP rings: umem 0x999");
  ExpectQpRefused(prm::qp_command::kWqUmemOffset, 0, kBadParameter, "lie in memory of a queue");
  ExpectQpRefused(Qpc(kDbrAddr), 3 * kPage, kBadParameter, "lie in memory of a queue");
}

TEST_F(StandInTest, CqOnAnotherDoorbellPage) {
  ExpectQpRefused(Qpc(prm::qpc::kUarPage), other_uar_.page_id, kBadParameter,
                  "is on another doorbell page");
}

class SmallStandInTest : public StandInTest {
 protected:
  SmallStandInTest()
      : StandInTest({.cross_channel = false,
                     .cq_ignore_overrun = false,
                     .log_max_qp_sz = 2,
                     .is_ethernet = true,
                     .force_loopback = false}) {}
};

TEST_F(SmallStandInTest, WhatTheDeviceCannotDo) {
  ExpectRefused(Create(), CqCommand(), kBadParameter, "oi without capability cq_oi");
  prm::ObjectCommand cq = CqCommand();
  Set(cq, Cqc(prm::cqc::kOi), 0);
  prm::Header out = {};
  ASSERT_EQ(verbs().CreateObject(cq, out, &cq_), 0);
  cqn_ = static_cast<uint32_t>(prm::Get(out, prm::out::kNumber));
  ExpectRefused(Create(), QpCommand(cqn_), kBadParameter, "cd_* without capability cd");
  const auto refused = [&](Field field, const char* why) {
    prm::ObjectCommand qp = QpCommand(cqn_);
    Set(qp, Qpc(prm::qpc::kCdMaster), 0);
    Set(qp, Qpc(field), 3);
    ExpectRefused(Create(), qp, kBadParameter, why);
  };
  refused(prm::qpc::kLogSqSize, "log_sq_size is above the device's");
  refused(prm::qpc::kLogRqSize, "log_rq_size is above the device's");
}

TEST_F(StandInTest, ResourcesInUseStay) {
  MakeQp();
  ExpectError(verbs().FreeUar(uar_), EBUSY, "doorbell page is in use");
  ExpectError(verbs().FreePd(pd_), EBUSY, "protection domain is in use");
  ExpectError(verbs().DeregisterUmem(umem_), EBUSY, "a queue lies in the umem");
  ExpectError(verbs().DestroyObject(cq_), EBUSY, "is in use by QPs");
  EXPECT_EQ(verbs().DestroyObject(qp_), 0);
  EXPECT_EQ(verbs().DestroyObject(cq_), 0);
  ExpectError(verbs().DestroyObject(cq_), EINVAL, "no such object");
  EXPECT_EQ(verbs().DeregisterUmem(umem_), 0);
  EXPECT_EQ(verbs().FreeUar(uar_), 0);
  EXPECT_EQ(verbs().FreePd(pd_), 0);
}

TEST_F(StandInTest, CallsThatAreWrong) {
  std::array<std::byte, 100> memory = {};
  Umem umem;
  ExpectError(verbs().RegisterUmem(memory, &umem), EINVAL, "not whole pages");
  MemoryRegion region;
  ExpectError(verbs().RegisterMemory({}, memory, {}, &region), EINVAL, "protection domain");
  ExpectError(verbs().RegisterMemory(pd_, {}, {}, &region), EINVAL, "empty");
  ExpectError(verbs().RegisterMemory(pd_, memory, {.remote_write = true}, &region), EINVAL,
              "remote write without local write");
  ExpectError(verbs().DeregisterMemory({}), EINVAL, "no such memory region");
  EventChannel channel;
  ASSERT_EQ(verbs().OpenEventChannel(&channel), 0);
  MacAddress mac;
  ExpectError(verbs().ResolveMac(pd_, 1, 3, Gid{}, &mac), EHOSTUNREACH, "nobody has this GID");
}

TEST_F(StandInTest, SubscriptionsThatAreWrong) {
  EventChannel channel;
  ASSERT_EQ(verbs().OpenEventChannel(&channel), 0);
  MakeQp();
  const auto refused = [&](EventChannel on, Object object, prm::EventType type) {
    ExpectError(verbs().Subscribe(on, object, type, 1), EINVAL, "no such channel, or no object");
  };
  refused({}, cq_, prm::EventType::kCompletion);
  refused(channel, {}, prm::EventType::kCompletion);
  refused(channel, qp_, prm::EventType::kCqError);
  refused(channel, cq_, prm::EventType::kQpFatal);
  for (const auto type : {prm::EventType::kCompletion, prm::EventType::kCqError}) {
    EXPECT_EQ(verbs().Subscribe(channel, cq_, type, 1), 0);
    ExpectError(verbs().Subscribe(channel, cq_, type, 1), EEXIST, "are subscribed to");
  }
  uint64_t cookie = 0;
  DeviceEvent event;
  EXPECT_EQ(verbs().TakeEvent(channel, &cookie), EAGAIN);
  EXPECT_EQ(verbs().TakeDeviceEvent(channel, &event), EAGAIN);
  ASSERT_EQ(verbs().CloseEventChannel(channel), 0);
  EXPECT_EQ(verbs().TakeEvent(channel, &cookie), EINVAL);
  EXPECT_EQ(verbs().TakeDeviceEvent(channel, &event), EINVAL);
}

/// The 8 bytes that arm a CQ, with its doorbell record.
class StandInArmTest : public StandInTest {
 protected:
  void Arm(Uar uar, Field field, uint64_t value, bool with_record = true) {
    std::array<std::byte, 8> store = {};
    Set(store, prm::arm::kCqn, cqn_);
    Set(store, field, value);
    auto* record = reinterpret_cast<uint32_t*>(memory_.get() + 3 * kPage);
    if (with_record) std::memcpy(record + prm::kArmRecord, store.data(), sizeof *record);
    verbs().StoreArm(uar, std::bit_cast<uint64_t>(store));
  }
};

TEST_F(StandInArmTest, WrongArmingsAreReported) {
  cqn_ = MakeCq();
  Arm(uar_, prm::arm::kCqn, cqn_);
  Arm(uar_, prm::arm::kSolicitedOnly, 1);  // for errors
  EXPECT_THAT(misuses(), IsEmpty());
  Arm(uar_, prm::arm::kCqn, 0x999);
  Arm(other_uar_, prm::arm::kCqn, cqn_);
  Arm(uar_, prm::arm::kConsumer, 1, /*with_record=*/false);
  Arm(uar_, prm::arm::kSerial, 1);
  EXPECT_THAT(misuses(), ElementsAre(HasSubstr("arming of CQ 0x999: it does not exist"),
                                     HasSubstr("on a page that is not its own"),
                                     HasSubstr("its doorbell record says something else"),
                                     HasSubstr("serial 1 after 0 events")));
}

TEST_F(StandInTest, DoorbellOnAnotherPageIsReportedAndDropped) {
  const uint32_t qpn = MakeQp();
  std::array<std::byte, 8> store = {};
  nic::StoreBigEndian(store.data() + nic::control::kQpn, qpn << 8);
  verbs().StoreDoorbell(other_uar_, std::bit_cast<uint64_t>(store));
  fabric_.RunUntilIdle();
  EXPECT_THAT(misuses(),
              ElementsAre(HasSubstr("doorbell for QP 0x1000 on page 0x22, its is 0x21")));
}

TEST_F(StandInTest, WhatIsLeftIsReported) {
  MakeQp();
  MemoryRegion region;
  ASSERT_EQ(verbs().RegisterMemory(pd_, {memory_.get(), 10}, {}, &region), 0);
  stand_in_.reset();
  EXPECT_THAT(misuses(),
              ElementsAre("node 0: mlx5: closed with objects left: 1 QPs, 1 CQs, 1 umems, 1 memory "
                          "regions, 2 doorbell pages, 1 protection domains"));
}

}  // namespace
}  // namespace prepost::mlx5::mlx5_stand_in_test
