// SPDX-License-Identifier: Apache-2.0
//
// The mlx5 device over the stand-in: the exact bytes of its commands, the life of its objects,
// and that nothing is left after a failure of any call. Its queues are in mlx5_queues_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "backends/mlx5/survey.h"
#include "tests/support/fake_library.h"
#include "tests/support/mlx5_fixture.h"
#include "tests/support/test_queue.h"

namespace prepost::mlx5::mlx5_device_test {
namespace {

using test::Connect;
using test::TestQueue;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// The golden bytes: fields as the manuals have them, computed from the bit offsets by hand. In the
// stand-in, protection domain 0x21, doorbell page 0x22, umems from 0x24 and event queue 7.

TEST_F(Mlx5DeviceTest, CreateCqCommand) {
  Make();
  ASSERT_TRUE(
      devices_[0]->CreateCq({.entries = 64, .ignore_overrun = true, .producer_base = 5}).ok());
  EXPECT_THAT(Command(0), ElementsAre("000 04000000",    // opcode
                                      "010 02020000",    // dbr_umem_valid, oi
                                      "014 00000024",    // dbr_umem_id
                                      "01c 06000022",    // log_cq_size, uar_page
                                      "024 00000007",    // c_eqn
                                      "038 00000005",    // consumer_counter
                                      "03c 00000005",    // producer_counter
                                      "04c 00001000",    // dbr_addr: behind the ring
                                      "058 00000024",    // cq_umem_id
                                      "05c 80000000"));  // cq_umem_valid
}

TEST_F(Mlx5DeviceTest, CreateQpCommand) {
  Make();
  const auto cq = devices_[0]->CreateCq({.entries = 1});
  ASSERT_TRUE(cq.ok());
  ASSERT_EQ(cq->number, 0x400u);
  ASSERT_TRUE(devices_[0]
                  ->CreateQp({.send_cq = cq->number,
                              .recv_cq = cq->number,
                              .sq_wqebbs = 16,
                              .sq_base = 0xfff0,
                              .rq_wqes = 8,
                              .rq_stride = 32,
                              .cd_master = true,
                              .managed_send = true,
                              .managed_recv = true})
                  .ok());
  EXPECT_THAT(Command(1), ElementsAre("000 05000000",    // opcode
                                      "018 00001800",    // pm_state: migrated
                                      "01c 00000021",    // pd
                                      "020 00192000",    // log_rq_size 3, stride 1, log_sq_size 4
                                      "024 00000022",    // uar_page
                                      "028 00ffffff",    // user_index
                                      "094 00000400",    // cqn_snd
                                      "0a8 00000007",    // cd_slave_receive, _send, cd_master
                                      "0b4 00000400",    // cqn_rcv
                                      "0bc 00000500",    // dbr_addr: behind both rings
                                      "0cc fff0fff0",    // hw_, sw_sq_wqebb_counter
                                      "0e8 10000000",    // dbr_umem_valid
                                      "0fc 00000026",    // dbr_umem_id
                                      "108 00000026",    // wq_umem_id
                                      "10c 80000000"));  // wq_umem_valid
}

// No receive queue: rq_type 3, no size; nothing that was not asked for.
TEST_F(Mlx5DeviceTest, CreateQpCommandWithoutReceiveQueue) {
  Make();
  const auto cq = devices_[0]->CreateCq({.entries = 1});
  ASSERT_TRUE(cq.ok());
  ASSERT_TRUE(devices_[0]->CreateQp({.send_cq = cq->number, .recv_cq = cq->number}).ok());
  EXPECT_THAT(Command(1),
              ElementsAre("000 05000000", "018 00001800", "01c 00000021", "024 00000022",
                          "028 00ffffff", "094 00000400", "0b4 00000400", "0bc 00000040",
                          "0c4 03000000",  // rq_type
                          "0e8 10000000", "0fc 00000026", "108 00000026", "10c 80000000"));
}

class Mlx5ConnectTest : public Mlx5DeviceTest {
 protected:
  /// A QP of node 0, connected to one of node 1, or to itself.
  void MakeConnected(StandInOptions options, bool is_loopback, uint8_t rnr_retry = 7,
                     std::chrono::microseconds round_trip = {}) {
    Make(options);
    near_ = std::make_unique<TestQueue>(*devices_[0], nic::QpConfig{.rnr_retry = rnr_retry});
    far_ = std::make_unique<TestQueue>(*devices_[1], nic::QpConfig{});
    ASSERT_EQ(near_->qp().number, 0x1000u);
    notes_.commands.clear();
    nic::QpAddress remote = (is_loopback ? near_ : far_)->address();
    remote.round_trip = round_trip;
    ASSERT_TRUE(devices_[0]->Connect(near_->qp().number, remote).ok());
    ASSERT_THAT(notes_.commands, SizeIs(3));
  }

  std::unique_ptr<TestQueue> near_;
  std::unique_ptr<TestQueue> far_;
};

TEST_F(Mlx5ConnectTest, InfiniBandCommands) {
  MakeConnected({}, /*is_loopback=*/false, /*rnr_retry=*/3);
  EXPECT_THAT(Command(0), ElementsAre("000 05020000", "008 00001000",
                                      "018 00001800",    // pm_state
                                      "054 00010000",    // vhca_port_num
                                      "0a8 0000c000"));  // rre, rwe
  EXPECT_THAT(Command(1), ElementsAre("000 05030000", "008 00001000",
                                      "020 be000000",    // mtu 4096, log_msg_max 30
                                      "02c 00001000",    // remote_qpn
                                      "034 00000002",    // rlid
                                      "054 00010000",    // vhca_port_num
                                      "0ac 01000000"));  // min_rnr_nak
  EXPECT_THAT(Command(2), ElementsAre("000 05040000", "008 00001000",
                                      "038 70000000",    // ack_timeout 14
                                      "088 00076000"));  // retry_count 7, rnr_retry 3
}

// Catches a NIC that gives up a peer whose acknowledgements take longer than it waits.
TEST_F(Mlx5ConnectTest, TimeoutsFollowTheRoundTrip) {
  MakeConnected({}, /*is_loopback=*/false, /*rnr_retry=*/7, std::chrono::milliseconds(60));
  EXPECT_THAT(Command(2), testing::Contains("038 80000000"));  // ack_timeout 16: 268 ms
}

TEST_F(Mlx5ConnectTest, RoceCommands) {
  MakeConnected({.is_ethernet = true}, /*is_loopback=*/false);
  EXPECT_THAT(Command(1),
              ElementsAre("000 05030000", "008 00001000", "020 be000000", "02c 00001000",
                          "038 00030040",  // src_addr_index: the global one; hop_limit
                          "040 fd500000",  // rgid
                          "04c 00000001",
                          "050 0000e620",    // udp_sport
                          "054 00010250",    // vhca_port_num, rmac_47_32
                          "058 00000001",    // rmac_31_0
                          "0ac 01000000"));  // min_rnr_nak
}

TEST_F(Mlx5ConnectTest, LoopbackIsForcedOnEthernet) {
  MakeConnected({.is_ethernet = true}, /*is_loopback=*/true);
  EXPECT_THAT(Command(1),
              ElementsAre("000 05030000", "008 00001000", "020 be000000", "02c 00001000",
                          "030 80000000",  // fl, and no address
                          "054 00010000", "0ac 01000000"));
}

// The capability that allows to force it is one of RoCE. On InfiniBand a port reaches its own LID.
TEST_F(Mlx5ConnectTest, LoopbackOnInfiniBandIsByLid) {
  MakeConnected({}, /*is_loopback=*/true);
  EXPECT_THAT(Command(1),
              ElementsAre("000 05030000", "008 00001000", "020 be000000", "02c 00001000",
                          "034 00000001",  // rlid: its own
                          "054 00010000", "0ac 01000000"));
}

// Without the capability the QP's path leads to its own port like any other.
TEST_F(Mlx5ConnectTest, LoopbackWithoutTheCapability) {
  MakeConnected({.is_ethernet = true, .force_loopback = false}, /*is_loopback=*/true);
  EXPECT_THAT(Command(1), testing::Not(testing::Contains("030 80000000")));
  near_->Nop();
  near_->Ring();
  fabric_->RunUntilIdle();
  EXPECT_THAT(near_->Sent(), SizeIs(1));
}

TEST_F(Mlx5ConnectTest, OtherKindsOfAddressesAreRefused) {
  Make();
  near_ = std::make_unique<TestQueue>(*devices_[0], nic::QpConfig{});
  const uint32_t qpn = near_->qp().number;
  EXPECT_EQ(devices_[0]->Connect(qpn, {fabric_->device(NodeId(1)).port_address(), qpn}).message(),
            "the address is not that of an mlx5 device on the same kind of link");
  auto roce = Open(1, {.is_ethernet = true});
  ASSERT_TRUE(roce.ok());
  far_ = std::make_unique<TestQueue>(*devices_[0], nic::QpConfig{});
  EXPECT_EQ(devices_[0]->Connect(far_->qp().number, {(*roce)->port_address(), qpn}).message(),
            "the address is not that of an mlx5 device on the same kind of link");
}

TEST_F(Mlx5ConnectTest, SmallerMtuOfBothPortsIsTaken) {
  Make();
  auto other = Open(1, {.mtu = 3});
  ASSERT_TRUE(other.ok());
  near_ = std::make_unique<TestQueue>(*devices_[0], nic::QpConfig{});
  far_ = std::make_unique<TestQueue>(**other, nic::QpConfig{});
  notes_.commands.clear();
  ASSERT_TRUE(devices_[0]->Connect(near_->qp().number, far_->address()).ok());
  EXPECT_THAT(Command(1), testing::Contains("020 7e000000"));  // mtu 1024, log_msg_max 30
  far_.reset();
}

// What is missing is named, before anything is made.
TEST_F(Mlx5DeviceTest, MissingThingsAreNamed) {
  EXPECT_EQ(OpenError({.cross_channel = false}),
            "the device lacks capability cd (cross-channel: WAIT and SEND_EN)");
  EXPECT_EQ(OpenError({.cq_ignore_overrun = false}),
            "the device lacks capability cq_oi (CQs that ignore overrun)");
  EXPECT_EQ(OpenError({.is_active = false}), "port 1 is not active");
  EXPECT_EQ(OpenError({.needs_grh = true}),
            "port 1 cannot be reached by its LID alone, as with virtual functions");
  EXPECT_EQ(OpenError({}, {.port = 2}), "cannot query port 2: Invalid argument");
  EXPECT_EQ(OpenError({.is_ethernet = true}, {.gid_index = 0}),
            "GID 0 of port 1 is not one of RoCE v2");
  EXPECT_EQ(OpenError({.is_ethernet = true}, {.gid_index = 2}),
            "GID 2 of port 1 is not one of RoCE v2");
  EXPECT_EQ(OpenError({.is_ethernet = true}, {.gid_index = 9}),
            "cannot query GID 9: Invalid argument");
  EXPECT_THAT(misuses(), IsEmpty());
}

TEST_F(Mlx5DeviceTest, SizesAreThoseOfTheDevice) {
  Make({.log_max_qp_sz = 4, .log_max_cq_sz = 5});
  nic::Device& device = *devices_[0];
  EXPECT_EQ(device.CreateCq({.entries = 64}).status().message(),
            "64 entries of a CQ: the device takes 32");
  EXPECT_EQ(device.CreateCq({.entries = 3}).status().code(), StatusCode::kRejected);
  const auto cq = device.CreateCq({.entries = 32});
  ASSERT_TRUE(cq.ok());
  const uint32_t cqn = cq->number;
  const auto error = [&](nic::QpConfig config) {
    config.send_cq = config.recv_cq = cqn;
    return device.CreateQp(config).status().message();
  };
  EXPECT_EQ(error({.sq_wqebbs = 32}), "32 entries of a send queue: the device takes 16");
  EXPECT_EQ(error({.rq_wqes = 32}), "32 entries of a receive queue: the device takes 16");
  EXPECT_EQ(error({.rnr_retry = 8}), "RNR retry 8 is above 7");
  EXPECT_EQ(device.CreateQp({.send_cq = cqn, .recv_cq = 0xbad}).status().message(),
            "CQ 0xbad does not exist");
}

// Hardware expects the send ring behind the receive ring, at a whole basic block.
TEST_F(Mlx5DeviceTest, SmallReceiveQueuesAreRoundedUp) {
  Make();
  const auto cq = devices_[0]->CreateCq({.entries = 1});
  ASSERT_TRUE(cq.ok());
  const auto qp = devices_[0]->CreateQp(
      {.send_cq = cq->number, .recv_cq = cq->number, .sq_wqebbs = 2, .rq_wqes = 1});
  ASSERT_TRUE(qp.ok()) << qp.status().ToString();
  EXPECT_EQ(qp->rq.size(), nic::kWqebbBytes);
  EXPECT_EQ(qp->sq.data(), qp->rq.data() + qp->rq.size());
}

TEST_F(Mlx5DeviceTest, DoorbellPageWithoutBlueFlameWillDo) {
  const auto device = Open(0, {.has_blue_flame = false});
  EXPECT_TRUE(device.ok()) << device.status().ToString();
}

/// Everything that a device can be asked to make; the first error.
Status MakeEverything(nic::Device& device, std::span<std::byte> memory) {
  PREPOST_RETURN_IF_ERROR(device.RegisterMemory(memory, {.local_write = true}).status());
  const auto cq = device.CreateCq({.entries = 4});
  if (!cq.ok()) return cq.status();
  const auto qp =
      device.CreateQp({.send_cq = cq->number, .recv_cq = cq->number, .cd_master = true});
  if (!qp.ok()) return qp.status();
  PREPOST_RETURN_IF_ERROR(device.Connect(qp->number, {device.port_address(), qp->number}));
  PREPOST_RETURN_IF_ERROR(device.RequestEvent(cq->number));
  PREPOST_RETURN_IF_ERROR(device.QueryQp(qp->number).status());
  PREPOST_RETURN_IF_ERROR(device.QueryCq(cq->number).status());
  return device.MoveToError(qp->number);
}

// Whichever call fails, the error says which, and nothing is left: the stand-in reports what is.
TEST_F(Mlx5DeviceTest, FailureOfAnyCallLeavesNothingBehind) {
  std::vector<std::byte> memory(100);
  for (const bool is_ethernet : {false, true}) {
    const StandInOptions options{.is_ethernet = is_ethernet, .force_loopback = false};
    uint64_t failures = 0;
    for (uint64_t fail_at = 1;; ++fail_at) {
      notes_ = {.fail_at = fail_at};
      Status status;
      {
        auto device = Open(0, options);
        status = device.ok() ? MakeEverything(**device, memory) : device.status();
      }
      EXPECT_THAT(misuses(), IsEmpty()) << "call " << fail_at;
      if (notes_.calls < fail_at) {  // all have failed once
        EXPECT_TRUE(status.ok()) << status.ToString();
        break;
      }
      failures += status.ok() ? 0u : 1u;
      if (status.ok()) continue;
      EXPECT_EQ(status.code(), StatusCode::kEnvironment);
      EXPECT_THAT(status.message(), HasSubstr("Cannot allocate memory")) << "call " << fail_at;
    }
    // A doorbell page of the one kind has a substitute, and a QP that cannot be reset is destroyed.
    EXPECT_EQ(failures + 2, notes_.calls);
    EXPECT_GE(failures, 15u);
  }
}

// What was made before a failure still works; what the failed call had made is gone at once.
TEST_F(Mlx5DeviceTest, DeviceGoesOnAfterAFailure) {
  Make();
  for (uint64_t more = 1; more <= 4; ++more) {  // the umem, the command, two subscriptions
    notes_.fail_at = notes_.calls + more;
    EXPECT_FALSE(devices_[0]->CreateCq({.entries = 4}).ok());
    EXPECT_EQ(notes_.umems, 0u);
  }
  const auto cq = devices_[0]->CreateCq({.entries = 4});
  ASSERT_TRUE(cq.ok());
  for (uint64_t more = 1; more <= 5; ++more) {  // the same, and three
    notes_.fail_at = notes_.calls + more;
    EXPECT_FALSE(devices_[0]->CreateQp({.send_cq = cq->number, .recv_cq = cq->number}).ok());
    EXPECT_EQ(notes_.umems, 1u);
  }
  TestQueue queue(*devices_[0], {.sq_wqebbs = 4});
  Connect(*devices_[0], queue, *devices_[0], queue);
  queue.Nop();
  queue.Ring();
  fabric_->RunUntilIdle();
  EXPECT_THAT(queue.Sent(), SizeIs(1));
}

TEST_F(Mlx5DeviceTest, FirmwareErrorsAreInWords) {
  Make();
  const auto cq = devices_[0]->CreateCq({.entries = 1});
  ASSERT_TRUE(cq.ok());
  const auto qp = devices_[0]->CreateQp({.send_cq = cq->number, .recv_cq = cq->number});
  ASSERT_TRUE(qp.ok());
  const nic::QpAddress self{devices_[0]->port_address(), qp->number};
  ASSERT_TRUE(devices_[0]->Connect(qp->number, self).ok());
  const Status status = devices_[0]->Connect(qp->number, self);
  EXPECT_EQ(status.code(), StatusCode::kEnvironment);
  EXPECT_EQ(status.message(),
            "RST2INIT of QP 0x1000: refused by the firmware: bad resource state (0x9), syndrome "
            "0x505001");
}

TEST_F(Mlx5DeviceTest, SurveyTellsWhatIsMissing) {
  test::FakeLibrary library(
      {{.name = "mlx5_0"},
       {.name = "mlx5_1", .options = {.cross_channel = false}},
       {.name = "mlx5_2", .refusal = "cannot open device mlx5_2 with DEVX: no"},
       {.name = "rxe0", .is_mlx5 = false}});
  const auto found = Survey(library);
  ASSERT_TRUE(found.ok());
  ASSERT_THAT(*found, SizeIs(4));
  EXPECT_TRUE((*found)[0].can_offload);
  EXPECT_EQ((*found)[0].why, "cross-channel; queues of up to 32768 entries, CQs of up to 4194304");
  EXPECT_FALSE((*found)[1].can_offload);
  EXPECT_THAT((*found)[1].why, HasSubstr("lacks capability cd"));
  EXPECT_EQ((*found)[2].why, "cannot open device mlx5_2 with DEVX: no");
  EXPECT_EQ((*found)[3].why, "not an mlx5 device");
  EXPECT_THAT(library.fabric().engine().misuses(), IsEmpty());
}

}  // namespace
}  // namespace prepost::mlx5::mlx5_device_test
