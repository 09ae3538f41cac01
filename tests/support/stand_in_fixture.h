// SPDX-License-Identifier: Apache-2.0
//
// StandInTest: a stand-in for an mlx5 device with memory, and commands that are right, of which
// tests spoil one thing.
#ifndef PREPOST_TESTS_SUPPORT_STAND_IN_FIXTURE_H_
#define PREPOST_TESTS_SUPPORT_STAND_IN_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/emulated/fabric.h"
#include "backends/mlx5/stand_in/stand_in.h"
#include "backends/nic/wqe.h"

namespace prepost::mlx5 {

// What all of its tests speak of.
using prm::Command;
using prm::Field;
using prm::Set;
using testing::ElementsAre;
using testing::HasSubstr;

inline constexpr size_t kPage = 4096;
inline constexpr size_t kUmemBytes = 4 * kPage;

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
    prm::Set(in, prm::in::kOpcode, static_cast<uint16_t>(prm::Command::kCreateCq));
    prm::Set(in, prm::In(prm::kCqc, prm::cqc::kOi), 1);
    prm::Set(in, prm::In(prm::kCqc, prm::cqc::kLogCqSize), 2);
    prm::Set(in, prm::In(prm::kCqc, prm::cqc::kUarPage), uar_.page_id);
    prm::Set(in, prm::In(prm::kCqc, prm::cqc::kEqn), eqn_);
    prm::Set(in, prm::In(prm::kCqc, prm::cqc::kDbrUmemId), umem_.id);
    prm::Set(in, prm::In(prm::kCqc, prm::cqc::kDbrUmemValid), 1);
    prm::Set(in, prm::cq_command::kCqUmemValid, 1);
    prm::Set(in, prm::In(prm::kCqc, prm::cqc::kDbrAddr), 3 * kPage);
    prm::Set(in, prm::cq_command::kCqUmemId, umem_.id);
    return in;
  }
  /// A QP of 4 WQEBBs and 4 receives: rings on page 1, doorbell record on page 3.
  prm::ObjectCommand QpCommand(uint32_t cqn) const {
    prm::ObjectCommand in = {};
    prm::Set(in, prm::in::kOpcode, static_cast<uint16_t>(prm::Command::kCreateQp));
    const auto set = [&in](prm::Field field, uint64_t value) {
      prm::Set(in, prm::In(prm::kQpc, field), value);
    };
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
    prm::Set(in, prm::qp_command::kWqUmemValid, 1);
    set(prm::qpc::kDbrAddr, 3 * kPage + 64);
    prm::Set(in, prm::qp_command::kWqUmemOffset, kPage);
    prm::Set(in, prm::qp_command::kWqUmemId, umem_.id);
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
    EXPECT_THAT(stand_in_->last_refusal(), testing::HasSubstr(why));
  }
  /// The kernel refuses.
  void ExpectError(int returned, int error, const std::string& why) {
    EXPECT_EQ(returned, error) << why;
    EXPECT_THAT(stand_in_->last_refusal(), testing::HasSubstr(why));
  }
  void ExpectCqRefused(prm::Field field, uint64_t value, prm::Status status,
                       const std::string& why) {
    prm::ObjectCommand in = CqCommand();
    prm::Set(in, field, value);
    ExpectRefused(Create(), in, status, why);
  }
  void ExpectQpRefused(prm::Field field, uint64_t value, prm::Status status,
                       const std::string& why) {
    if (cqn_ == 0) cqn_ = MakeCq();
    prm::ObjectCommand in = QpCommand(cqn_);
    prm::Set(in, field, value);
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

inline constexpr auto kBadParameter = prm::Status::kBadParameter;
inline constexpr auto kBadResource = prm::Status::kBadResource;

inline prm::Field Cqc(prm::Field field) { return prm::In(prm::kCqc, field); }
inline prm::Field Qpc(prm::Field field) { return prm::In(prm::kQpc, field); }
inline prm::Field Path(prm::Field field) { return prm::In(prm::kPath, field); }

}  // namespace prepost::mlx5

#endif  // PREPOST_TESTS_SUPPORT_STAND_IN_FIXTURE_H_
