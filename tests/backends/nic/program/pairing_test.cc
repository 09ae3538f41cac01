// SPDX-License-Identifier: Apache-2.0
#include "backends/nic/program/pairing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <tuple>
#include <utility>
#include <vector>

namespace prepost::nic::pairing_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Connects only, and remembers what. Fails at `failing_qpn`.
class ConnectingDevice : public Device {
 public:
  Status Connect(uint32_t qpn, QpAddress remote) override {
    if (qpn == failing_qpn) return {StatusCode::kEnvironment, "no route"};
    connected.emplace_back(qpn, std::to_integer<uint32_t>(remote.port.bytes[0]), remote.qpn);
    return {};
  }
  PortAddress port_address() const override {
    PortAddress address;
    address.bytes[0] = node;
    return address;
  }
  Result<Cq> CreateCq(const CqConfig&) override { return Rejected("unused"); }
  Result<Qp> CreateQp(const QpConfig&) override { return Rejected("unused"); }
  Result<uint32_t> RegisterMemory(std::span<const std::byte>, Access) override {
    return Rejected("unused");
  }
  Status DeregisterMemory(uint32_t) override { return {}; }
  void RingDoorbell(uint64_t) override {}
  Status MoveToError(uint32_t) override { return {}; }
  Result<QpCounters> QueryQp(uint32_t) override { return Rejected("unused"); }
  Result<CqCounters> QueryCq(uint32_t) override { return Rejected("unused"); }
  Status RequestEvent(uint32_t) override { return {}; }
  Result<int> EventFile() override { return -1; }
  uint64_t AckEvents() override { return 0; }
  void CountWakeup() override {}
  DeviceCounters counters() const override { return {}; }

  std::vector<std::tuple<uint32_t, uint32_t, uint32_t>> connected;  ///< qpn, node, its qpn
  uint32_t failing_qpn = 0;
  std::byte node{0};
};

auto Fields(const Pair& pair) {
  return std::tuple(pair.peer.value, pair.lane, pair.sends, pair.receives);
}
using PairFields = std::tuple<uint32_t, Lane, uint32_t, uint32_t>;

// Node 1 hears from node 0 and sends on to node 2 and, on two lanes, to and from it. Catches one QP
// per direction, lanes that share a QP, pairs in the order of their ops, and sends counted as
// receives.
TEST(PairingTest, OneQpPerPeerAndLaneInBothDirections) {
  PlanBuilder builder({.nodes = 3, .payload = *MakePayload(2000, 1000)});
  const ChannelId from_0 = builder.AddChannel({NodeId(0), NodeId(1), Lane::kBlocks});
  const ChannelId to_2 = builder.AddChannel({NodeId(1), NodeId(2), Lane::kBlocks});
  const ChannelId credits_of_2 = builder.AddChannel({NodeId(2), NodeId(1), Lane::kCredits});
  const ChannelId from_2 = builder.AddChannel({NodeId(2), NodeId(1), Lane::kBlocks});
  builder.BeginProgram(NodeId(1));
  builder.AddOp({.channel = credits_of_2, .kind = OpKind::kRecv});
  builder.AddOp({.channel = to_2, .block = 0, .kind = OpKind::kSend});
  builder.AddOp({.channel = from_0, .block = 0, .kind = OpKind::kRecv});
  builder.AddOp({.channel = to_2, .block = 1, .kind = OpKind::kSend});
  builder.AddOp({.channel = from_2, .block = 1, .kind = OpKind::kRecv});
  builder.BeginProgram(NodeId(0));
  const Plan plan = std::move(builder).Build();

  const Pairing pairing = PairUp(plan, plan.programs()[0]);
  std::vector<PairFields> pairs;
  for (const Pair& pair : pairing.pairs) pairs.push_back(Fields(pair));
  ASSERT_LT(Lane::kBlocks, Lane::kCredits);
  EXPECT_THAT(pairs,
              ElementsAre(PairFields{0, Lane::kBlocks, 0, 1}, PairFields{2, Lane::kBlocks, 2, 1},
                          PairFields{2, Lane::kCredits, 0, 1}));
  EXPECT_THAT(pairing.of_ops, ElementsAre(2, 1, 0, 1, 1));

  const Pairing none = PairUp(plan, plan.programs()[1]);
  EXPECT_THAT(none.pairs, IsEmpty());
  EXPECT_THAT(none.of_ops, IsEmpty());
}

class ConnectAllTest : public ::testing::Test {
 protected:
  ConnectAllTest() {
    for (size_t i = 0; i < devices_.size(); ++i) devices_[i].node = static_cast<std::byte>(i);
  }

  /// Nodes 0 and 1 have QPs to each other on both lanes, node 2 one to node 0.
  std::array<ConnectingDevice, 3> devices_;
  std::vector<OpenNode> nodes_ = {
      {NodeId(0),
       &devices_[0],
       {{NodeId(1), Lane::kBlocks, 10},
        {NodeId(1), Lane::kCredits, 11},
        {NodeId(2), Lane::kBlocks, 12}}},
      {NodeId(1), &devices_[1], {{NodeId(0), Lane::kBlocks, 20}, {NodeId(0), Lane::kCredits, 21}}},
      {NodeId(2), &devices_[2], {{NodeId(0), Lane::kBlocks, 30}}}};
};

// Catches QPs connected across lanes, to the wrong node, from one side only, or on another's
// device.
TEST_F(ConnectAllTest, ConnectsEachQpToItsCounterpart) {
  const Status status = ConnectAll(nodes_);
  ASSERT_TRUE(status.ok()) << status.ToString();
  using Connection = std::tuple<uint32_t, uint32_t, uint32_t>;
  EXPECT_THAT(devices_[0].connected,
              ElementsAre(Connection{10, 1, 20}, Connection{11, 1, 21}, Connection{12, 2, 30}));
  EXPECT_THAT(devices_[1].connected, ElementsAre(Connection{20, 0, 10}, Connection{21, 0, 11}));
  EXPECT_THAT(devices_[2].connected, ElementsAre(Connection{30, 0, 12}));
}

// Catches a search that takes the nearest QP: on another lane, or behind the last.
TEST_F(ConnectAllTest, AQpWithoutCounterpartIsRejected) {
  std::vector<OpenNode> others = nodes_;
  others[1].qps.erase(others[1].qps.begin());
  const Status other_lane = ConnectAll(others);
  EXPECT_EQ(other_lane.code(), StatusCode::kRejected);
  EXPECT_THAT(other_lane.message(), HasSubstr("node 1 has no QP to node 0 on lane 0"));
  nodes_[1].qps.pop_back();  // what lies behind the last would fit
  EXPECT_THAT(ConnectAll(nodes_).message(), HasSubstr("node 1 has no QP to node 0 on lane 1"));
}

// Catches a failure of the device that is passed over.
TEST_F(ConnectAllTest, AFailureOfTheDeviceIsReturned) {
  devices_[1].failing_qpn = 21;
  const Status status = ConnectAll(nodes_);
  EXPECT_EQ(status.code(), StatusCode::kEnvironment);
  EXPECT_EQ(status.message(), "no route");
}

}  // namespace
}  // namespace prepost::nic::pairing_test
