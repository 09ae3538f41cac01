// SPDX-License-Identifier: Apache-2.0
//
// What WAIT, SEND_EN and RECV_EN do, device by device: the behaviours that the cross-channel tests
// of libibverbs expect of hardware, written once against nic::Device. Here is what all of them
// start from; the devices are registered in devices_test.cc.
#ifndef PREPOST_TESTS_CONFORMANCE_CROSS_CHANNEL_H_
#define PREPOST_TESTS_CONFORMANCE_CROSS_CHANNEL_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/test_queue.h"

namespace prepost::test {

using nic::Cqe;

struct Registration {
  std::string name;
  std::function<std::unique_ptr<DeviceUnderTest>()> make;
  std::string missing = {};  ///< without `make`: why it cannot be tested here

  friend void PrintTo(const Registration& it, std::ostream* out) { *out << it.name; }
};

/// A master with WAITs and enables (loopback on node 0) and a data QP from node 0 to node 1.
class CrossChannelTest : public testing::TestWithParam<Registration> {
 protected:
  void SetUp() override {
    if (!GetParam().make) GTEST_SKIP() << GetParam().missing;
    tested_ = GetParam().make();
    ASSERT_NE(tested_, nullptr);
  }

  void Make(nic::QpConfig sender, nic::QpConfig receiver, nic::CqConfig cq = {.entries = 64}) {
    nic::Device& near = tested_->device(0);
    nic::Device& far = tested_->device(1);
    master_ = std::make_unique<TestQueue>(near, nic::QpConfig{.sq_wqebbs = 64, .cd_master = true});
    far_master_ =
        std::make_unique<TestQueue>(far, nic::QpConfig{.sq_wqebbs = 64, .cd_master = true});
    sender_ = std::make_unique<TestQueue>(near, sender, cq, cq);
    receiver_ = std::make_unique<TestQueue>(far, receiver, cq, cq);
    Connect(near, *master_, near, *master_);
    Connect(far, *far_master_, far, *far_master_);
    Connect(near, *sender_, far, *receiver_);
  }
  void MakePlain(nic::CqConfig cq = {.entries = 64}) {
    Make({.sq_wqebbs = 64, .cd_master = true}, {.sq_wqebbs = 1, .rq_wqes = 64}, cq);
  }
  void MakeManagedSend() {
    Make({.sq_wqebbs = 64, .cd_master = true, .managed_send = true},
         {.sq_wqebbs = 1, .rq_wqes = 64});
  }
  void MakeManagedRecv() {
    Make({.sq_wqebbs = 64},
         {.sq_wqebbs = 64, .rq_wqes = 64, .cd_master = true, .managed_recv = true});
  }

  void Send(int count) {
    for (int i = 0; i < count; ++i) sender_->Send();
  }
  void Receive(int count) {
    for (int i = 0; i < count; ++i) receiver_->Receive();
  }
  void Settle() { tested_->Settle(); }
  void ExpectTransfers(size_t count) {
    Settle();
    EXPECT_EQ(sender_->Sent().size(), count);
    EXPECT_EQ(receiver_->Received().size(), count);
  }

  /// One CQE, of an error: the WQE was refused.
  void ExpectRefused(TestQueue& queue) {
    queue.Ring();
    Settle();
    const std::vector<Cqe> cqes = queue.Sent();
    ASSERT_EQ(cqes.size(), 1u);
    EXPECT_TRUE(cqes[0].is_error());
  }
  static void ExpectFlushed(const std::vector<Cqe>& cqes, size_t count) {
    ASSERT_EQ(cqes.size(), count);
    for (const Cqe& cqe : cqes) EXPECT_EQ(cqe.syndrome, nic::Syndrome::kFlushed);
  }

  std::unique_ptr<DeviceUnderTest> tested_;
  std::unique_ptr<TestQueue> master_;
  std::unique_ptr<TestQueue> far_master_;
  std::unique_ptr<TestQueue> sender_;
  std::unique_ptr<TestQueue> receiver_;
};

}  // namespace prepost::test

#endif  // PREPOST_TESTS_CONFORMANCE_CROSS_CHANNEL_H_
