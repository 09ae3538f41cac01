// SPDX-License-Identifier: Apache-2.0
//
// What the stand-in refuses of a QP's life: its steps, their order and paths, and memory that its
// WQEs may not use. Each case starts from commands that are right and spoils one thing.
#include <cerrno>

#include "tests/support/stand_in_fixture.h"

namespace prepost::mlx5::mlx5_stand_in_qp_test {
namespace {

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
// Keys that a QP's WQEs may not use.
TEST_F(StandInQpTest, MemoryOfAnotherProtectionDomain) {
  ProtectionDomain other;
  ASSERT_EQ(verbs().AllocPd(&other), 0);
  MemoryRegion region;
  ExpectError(verbs().RegisterMemory(other, {memory_.get(), 10}, {}, &region), EINVAL,
              "a QP is of another protection domain");
  ASSERT_EQ(verbs().RegisterMemory(pd_, {memory_.get(), 10}, {}, &region), 0);
  prm::ObjectCommand in = QpCommand(/*cqn=*/0);  // memory is checked first
  Set(in, Qpc(prm::qpc::kPd), other.number);
  ExpectRefused(Create(), in, kBadParameter, "memory is registered for another");
  EXPECT_EQ(verbs().DeregisterMemory(region), 0);
  EXPECT_EQ(verbs().FreePd(other), 0);
}

}  // namespace
}  // namespace prepost::mlx5::mlx5_stand_in_qp_test
