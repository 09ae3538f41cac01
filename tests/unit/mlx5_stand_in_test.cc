// SPDX-License-Identifier: Apache-2.0
//
// What the stand-in refuses, one case per kind: each starts from commands that are right and spoils
// one thing. A check that is missing would let a device pass here whose commands hardware refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>

#include "prepost/backends/emulated/fabric.h"
#include "prepost/backends/mlx5/stand_in.h"
#include "prepost/backends/nic/wqe.h"

namespace prepost::mlx5 {
namespace {

using prm::Command;
using prm::Field;
using prm::In;
using prm::Set;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr size_t kPage = 4096;
constexpr size_t kUmemBytes = 4 * kPage;

class StandInTest : public testing::Test {
 protected:
  explicit StandInTest(StandInOptions options = {})
      : is_ethernet_(options.is_ethernet),
        stand_in_(std::make_unique<StandIn>(fabric_.nic(NodeId(0)), options)) {
    EXPECT_EQ(verbs().AllocUar(UarKind::kBlueFlame, &uar_), 0);
    EXPECT_EQ(verbs().AllocUar(UarKind::kNonCached, &other_uar_), 0);
    EXPECT_EQ(verbs().AllocPd(&pd_), 0);
    EXPECT_EQ(verbs().QueryEqn(&eqn_), 0);
    std::ranges::fill(std::span(memory_.get(), 3 * kPage), std::byte{nic::cqe::kInvalid});
    std::ranges::fill(std::span(memory_.get() + 3 * kPage, kPage), std::byte{0});
    EXPECT_EQ(verbs().RegisterUmem({memory_.get(), kUmemBytes}, &umem_), 0);
  }

  Verbs& verbs() { return *stand_in_; }
  const std::vector<std::string>& misuses() const { return fabric_.engine().misuses(); }

  /// A CQ of 4 entries: ring on page 0, doorbell record on page 3.
  prm::ObjectCommand CqCommand() const {
    prm::ObjectCommand in = {};
    Set(in, prm::in::kOpcode, static_cast<uint16_t>(Command::kCreateCq));
    Set(in, In(prm::kCqc, prm::cqc::kOi), 1);
    Set(in, In(prm::kCqc, prm::cqc::kLogCqSize), 2);
    Set(in, In(prm::kCqc, prm::cqc::kUarPage), uar_.page_id);
    Set(in, In(prm::kCqc, prm::cqc::kEqn), eqn_);
    Set(in, In(prm::kCqc, prm::cqc::kDbrUmemId), umem_.id);
    Set(in, In(prm::kCqc, prm::cqc::kDbrUmemValid), 1);
    Set(in, prm::cq_command::kCqUmemValid, 1);
    Set(in, In(prm::kCqc, prm::cqc::kDbrAddr), 3 * kPage);
    Set(in, prm::cq_command::kCqUmemId, umem_.id);
    return in;
  }
  /// A QP of 4 WQEBBs and 4 receives: rings on page 1, doorbell record on page 3.
  prm::ObjectCommand QpCommand(uint32_t cqn) const {
    prm::ObjectCommand in = {};
    Set(in, prm::in::kOpcode, static_cast<uint16_t>(Command::kCreateQp));
    const auto set = [&in](Field field, uint64_t value) { Set(in, In(prm::kQpc, field), value); };
    set(prm::qpc::kPmState, prm::kPmMigrated);
    set(prm::qpc::kPd, pd_.number);
    set(prm::qpc::kUarPage, uar_.page_id);
    set(prm::qpc::kUserIndex, prm::kDefaultUserIndex);
    set(prm::qpc::kCqnSend, cqn);
    set(prm::qpc::kCqnReceive, cqn);
    set(prm::qpc::kLogSqSize, 2);
    set(prm::qpc::kLogRqSize, 2);
    set(prm::qpc::kCdMaster, 1);
    set(prm::qpc::kTsFormat, is_ethernet_ ? 1 : 0);
    set(prm::qpc::kDbrUmemValid, 1);
    set(prm::qpc::kDbrUmemId, umem_.id);
    Set(in, prm::qp_command::kWqUmemValid, 1);
    set(prm::qpc::kDbrAddr, 3 * kPage + 64);
    Set(in, prm::qp_command::kWqUmemOffset, kPage);
    Set(in, prm::qp_command::kWqUmemId, umem_.id);
    return in;
  }
  uint32_t MakeCq() {
    prm::Header out = {};
    EXPECT_EQ(verbs().CreateObject(CqCommand(), out, &cq_), 0) << stand_in_->last_refusal();
    return static_cast<uint32_t>(prm::Get(out, prm::out::kNumber));
  }
  uint32_t MakeQp() {
    prm::Header out = {};
    EXPECT_EQ(verbs().CreateObject(QpCommand(MakeCq()), out, &qp_), 0) << stand_in_->last_refusal();
    return static_cast<uint32_t>(prm::Get(out, prm::out::kNumber));
  }

  using Call = std::function<int(Input, Output)>;
  Call Create() {
    return [this](Input in, Output out) {
      Object made;
      return verbs().CreateObject(in, out, &made);
    };
  }
  Call Modify() {
    return [this](Input in, Output out) { return verbs().ModifyObject(qp_, in, out); };
  }
  /// The firmware refuses with this status; nothing was made.
  void ExpectRefused(const Call& call, Input in, prm::Status status, const std::string& why) {
    prm::Header out = {};
    EXPECT_EQ(call(in, out), EREMOTEIO) << why;
    EXPECT_EQ(prm::Get(out, prm::out::kStatus), static_cast<uint64_t>(status)) << why;
    EXPECT_NE(prm::Get(out, prm::out::kSyndrome), 0u);
    EXPECT_EQ(prm::Get(out, prm::out::kNumber), 0u);
    EXPECT_THAT(stand_in_->last_refusal(), HasSubstr(why));
  }
  /// The kernel refuses.
  void ExpectError(int returned, int error, const std::string& why) {
    EXPECT_EQ(returned, error) << why;
    EXPECT_THAT(stand_in_->last_refusal(), HasSubstr(why));
  }
  void ExpectCqRefused(Field field, uint64_t value, prm::Status status, const std::string& why) {
    prm::ObjectCommand in = CqCommand();
    Set(in, field, value);
    ExpectRefused(Create(), in, status, why);
  }
  void ExpectQpRefused(Field field, uint64_t value, prm::Status status, const std::string& why) {
    if (cqn_ == 0) cqn_ = MakeCq();
    prm::ObjectCommand in = QpCommand(cqn_);
    Set(in, field, value);
    ExpectRefused(Create(), in, status, why);
  }

  struct Free {
    void operator()(std::byte* at) const { std::free(at); }
  };
  emulated::Fabric fabric_{2, {}};
  std::unique_ptr<std::byte, Free> memory_{
      static_cast<std::byte*>(std::aligned_alloc(kPage, kUmemBytes))};
  bool is_ethernet_;
  std::unique_ptr<StandIn> stand_in_;
  Uar uar_;
  Uar other_uar_;
  ProtectionDomain pd_;
  Umem umem_;
  uint32_t eqn_ = 0;
  Object cq_;
  Object qp_;
  uint32_t cqn_ = 0;
};

constexpr auto kBadParameter = prm::Status::kBadParameter;
constexpr auto kBadResource = prm::Status::kBadResource;

Field Cqc(Field field) { return In(prm::kCqc, field); }
Field Qpc(Field field) { return In(prm::kQpc, field); }
Field Path(Field field) { return In(prm::kPath, field); }

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

/// A QP and the right commands of its life, to spoil.
class StandInQpTest : public StandInTest {
 protected:
  explicit StandInQpTest(StandInOptions options = {}) : StandInTest(options), qpn_(MakeQp()) {}

  prm::ObjectCommand Step(Command command) const {
    prm::ObjectCommand in = {};
    Set(in, prm::in::kOpcode, static_cast<uint16_t>(command));
    Set(in, prm::in::kNumber, qpn_);
    return in;
  }
  prm::ObjectCommand Init() const {
    prm::ObjectCommand in = Step(Command::kRst2Init);
    Set(in, Qpc(prm::qpc::kPmState), prm::kPmMigrated);
    Set(in, Path(prm::ads::kVhcaPortNum), 1);
    Set(in, Qpc(prm::qpc::kRre), 1);
    Set(in, Qpc(prm::qpc::kRwe), 1);
    return in;
  }
  prm::ObjectCommand Receive() const {
    prm::ObjectCommand in = Step(Command::kInit2Rtr);
    Set(in, Qpc(prm::qpc::kMtu), 3);
    Set(in, Qpc(prm::qpc::kLogMsgMax), 30);
    Set(in, Qpc(prm::qpc::kRemoteQpn), qpn_);
    Set(in, Qpc(prm::qpc::kMinRnrNak), 1);
    Set(in, Path(prm::ads::kVhcaPortNum), 1);
    Set(in, Path(prm::ads::kRlid), 1);
    return in;
  }
  prm::ObjectCommand Send() const {
    prm::ObjectCommand in = Step(Command::kRtr2Rts);
    Set(in, Path(prm::ads::kAckTimeout), 14);
    Set(in, Qpc(prm::qpc::kRetryCount), 7);
    Set(in, Qpc(prm::qpc::kRnrRetry), 7);
    return in;
  }
  void Do(const prm::ObjectCommand& in) {
    prm::Header out = {};
    EXPECT_EQ(verbs().ModifyObject(qp_, in, out), 0) << stand_in_->last_refusal();
  }
  void DoSmall(Command command) {
    prm::Header in = {};
    Set(in, prm::in::kOpcode, static_cast<uint16_t>(command));
    Set(in, prm::in::kNumber, qpn_);
    prm::Header out = {};
    EXPECT_EQ(verbs().ModifyObject(qp_, in, out), 0) << stand_in_->last_refusal();
  }
  void ExpectStepRefused(prm::ObjectCommand in, Field field, uint64_t value, prm::Status status,
                         const std::string& why) {
    Set(in, field, value);
    ExpectRefused(Modify(), in, status, why);
  }
  prm::QpcState State() {
    prm::Header in = {};
    Set(in, prm::in::kOpcode, static_cast<uint16_t>(Command::kQueryQp));
    Set(in, prm::in::kNumber, qpn_);
    prm::ObjectCommand out = {};
    EXPECT_EQ(verbs().QueryObject(qp_, in, out), 0) << stand_in_->last_refusal();
    return static_cast<prm::QpcState>(prm::Get(out, Qpc(prm::qpc::kState)));
  }

  uint32_t qpn_;
};

TEST_F(StandInQpTest, WholeLife) {
  for (int life = 0; life < 2; ++life) {
    EXPECT_EQ(State(), prm::QpcState::kReset);
    Do(Init());
    EXPECT_EQ(State(), prm::QpcState::kInit);
    Do(Receive());
    EXPECT_EQ(State(), prm::QpcState::kRtr);
    Do(Send());
    EXPECT_EQ(State(), prm::QpcState::kRts);
    DoSmall(Command::k2Err);
    EXPECT_EQ(State(), prm::QpcState::kError);
    DoSmall(Command::k2Rst);
  }
}

TEST_F(StandInQpTest, WrongOrderOfSteps) {
  const auto refused = [&](const prm::ObjectCommand& in, const char* why) {
    ExpectRefused(Modify(), in, prm::Status::kBadResourceState, why);
  };
  refused(Receive(), "INIT2RTR of a QP in state RST");
  refused(Send(), "RTR2RTS of a QP in state RST");
  Do(Init());
  refused(Init(), "RST2INIT of a QP in state INIT");
  refused(Send(), "RTR2RTS of a QP in state INIT");
  Do(Receive());
  refused(Receive(), "INIT2RTR of a QP in state RTR");
  DoSmall(Command::k2Err);
  refused(Send(), "RTR2RTS of a QP in state ERR");
}

TEST_F(StandInQpTest, OptionalParameters) {
  ExpectStepRefused(Init(), prm::qp_command::kOptParamMask, 1, kBadParameter, "opt_param_mask");
}

TEST_F(StandInQpTest, StepsThatAreWrong) {
  using namespace prm::qpc;
  const Field port = Path(prm::ads::kVhcaPortNum);
  ExpectStepRefused(Init(), Qpc(kPmState), 0, kBadParameter, "pm_state");
  ExpectStepRefused(Init(), port, 2, prm::Status::kBadIndex, "port does not exist");
  ExpectStepRefused(Init(), Path(prm::ads::kPkeyIndex), 1, prm::Status::kBadIndex, "partition");
  ExpectStepRefused(Init(), Qpc(kRre), 0, kBadParameter, "rre, rwe");
  ExpectStepRefused(Init(), Qpc(kRwe), 0, kBadParameter, "rre, rwe");
  Do(Init());
  ExpectStepRefused(Receive(), Qpc(kNextRcvPsn), 1, kBadParameter, "next_rcv_psn");
  ExpectStepRefused(Receive(), Qpc(kMtu), 0, kBadParameter, "mtu 0 is not");
  ExpectStepRefused(Receive(), Qpc(kMtu), 6, kBadParameter, "mtu 6 is not");
  ExpectStepRefused(Receive(), Qpc(kLogMsgMax), 31, kBadParameter, "log_msg_max 31");
  ExpectStepRefused(Receive(), Qpc(kMinRnrNak), 0, kBadParameter, "min_rnr_nak 0");
  ExpectStepRefused(Receive(), Qpc(kRemoteQpn), 0x999, kBadParameter, "has no QP 0x999");
  ExpectStepRefused(Receive(), port, 0, prm::Status::kBadIndex, "port does not exist");
  ExpectStepRefused(Receive(), Path(prm::ads::kRlid), 0, kBadParameter, "LID 0x0 is no port's");
  ExpectStepRefused(Receive(), Path(prm::ads::kRlid), 0xc000, kBadParameter, "LID 0xc000");
  ExpectStepRefused(Receive(), Path(prm::ads::kRlid), 3, kBadParameter, "node 2 does not exist");
  ExpectStepRefused(Receive(), Path(prm::ads::kHopLimit), 64, kBadParameter, "Ethernet address");
  ExpectStepRefused(Receive(), Path(prm::ads::kFl), 1, kBadParameter, "fl without capability");
  Do(Receive());
  ExpectStepRefused(Send(), Path(prm::ads::kAckTimeout), 0, kBadParameter, "would wait for ever");
  ExpectStepRefused(Send(), Qpc(kNextSendPsn), 1, kBadParameter, "next_send_psn");
  ExpectStepRefused(Send(), Qpc(kRetryCount), 0, kBadParameter, "at the first lost packet");
}

// A NIC reads the record at its next step: what stands there was posted, whatever it is.
TEST_F(StandInQpTest, DoorbellRecordsOfAnEarlierLife) {
  auto* record = reinterpret_cast<uint32_t*>(memory_.get() + 3 * kPage + 64);
  for (const size_t word : {nic::kReceiveRecord, nic::kSendRecord}) {
    record[word] = nic::BigEndian(uint32_t{1});
    ExpectRefused(Modify(), Init(), kBadParameter, "tells of WQEs that were not posted");
    record[word] = 0;
  }
  Do(Init());
}

// Queues at a WAIT do not drain: whoever destroys them resets them first.
TEST_F(StandInQpTest, QpDestroyedAtWorkIsReported) {
  Do(Init());
  Do(Receive());
  Do(Send());
  EXPECT_EQ(verbs().DestroyObject(qp_), 0);
  EXPECT_THAT(misuses(), ElementsAre(HasSubstr("QP 0x1000 is destroyed in state RTS")));
}

class StandInLoopbackTest : public StandInQpTest {
 protected:
  StandInLoopbackTest() : StandInQpTest({.is_ethernet = true}) {}
};

TEST_F(StandInLoopbackTest, ForcedLoopbackIsToItself) {
  Do(Init());
  prm::ObjectCommand in = Receive();
  Set(in, Path(prm::ads::kFl), 1);
  ExpectRefused(Modify(), in, kBadParameter, "fl with an address");
  Set(in, Path(prm::ads::kRlid), 0);
  ExpectStepRefused(in, Qpc(prm::qpc::kRemoteQpn), qpn_ + 1, kBadParameter, "fl to another QP");
  Do(in);
}

class StandInRoceTest : public StandInQpTest {
 protected:
  explicit StandInRoceTest() : StandInQpTest({.is_ethernet = true, .force_loopback = false}) {}

  prm::ObjectCommand RoceReceive() const {
    prm::ObjectCommand in = Receive();
    Set(in, Path(prm::ads::kRlid), 0);
    Set(in, Path(prm::ads::kSrcAddrIndex), 3);
    Set(in, Path(prm::ads::kHopLimit), 64);
    Set(in, Path(prm::ads::kUdpSport), 0xc000);
    Set(in, Path(prm::ads::kRgidHigh), uint64_t{0xfd50} << 48);
    Set(in, Path(prm::ads::kRmacHigh), 0x0250);
    return in;
  }
};

TEST_F(StandInRoceTest, PathsThatAreWrong) {
  using namespace prm::ads;
  Do(Init());
  const auto refused = [&](Field field, uint64_t value, prm::Status status, const char* why) {
    ExpectStepRefused(RoceReceive(), Path(field), value, status, why);
  };
  refused(kSrcAddrIndex, 0, prm::Status::kBadIndex, "src_addr_index is not one of RoCE v2");
  refused(kUdpSport, 0xbfff, kBadParameter, "udp_sport is below 0xc000");
  refused(kHopLimit, 0, kBadParameter, "hop_limit is 0");
  refused(kRgidHigh, uint64_t{0xfd51} << 48, kBadParameter, "rgid is nobody's");
  refused(kRmacLow, 9, kBadParameter, "rmac is not that of rgid");
  refused(kFl, 1, kBadParameter, "fl without capability");
  refused(kRlid, 1, kBadParameter, "an InfiniBand address");
  Do(RoceReceive());
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

// Keys that a QP's WQEs may not use.
TEST_F(StandInQpTest, MemoryOfAnotherProtectionDomain) {
  ProtectionDomain other;
  ASSERT_EQ(verbs().AllocPd(&other), 0);
  MemoryRegion region;
  ExpectError(verbs().RegisterMemory(other, {memory_.get(), 10}, {}, &region), EINVAL,
              "a QP is of another protection domain");
  ASSERT_EQ(verbs().RegisterMemory(pd_, {memory_.get(), 10}, {}, &region), 0);
  prm::ObjectCommand in = QpCommand(/*cqn=*/0);  // memory is looked at first
  Set(in, Qpc(prm::qpc::kPd), other.number);
  ExpectRefused(Create(), in, kBadParameter, "memory is registered for another");
  EXPECT_EQ(verbs().DeregisterMemory(region), 0);
  EXPECT_EQ(verbs().FreePd(other), 0);
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
}  // namespace prepost::mlx5
