// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/compile.h"
#include "runtime/device/peer_exchange.h"

namespace prepost::tcp_links_test {
namespace {

using ::testing::HasSubstr;

std::vector<std::byte> BytesOf(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

bool IsReadable(const PeerLinks& links, NodeId peer) {
  pollfd file = {.fd = links.File(peer), .events = POLLIN, .revents = 0};
  return poll(&file, 1, /*timeout=*/10'000) == 1;
}

/// What the next bytes from `peer` are, or why there are none.
std::string Next(PeerLinks& links, NodeId peer) {
  std::array<std::byte, 64> room;
  EXPECT_TRUE(IsReadable(links, peer));
  const Result<size_t> got = links.Receive(peer, room);
  if (!got.ok()) return got.status().message();
  return {reinterpret_cast<const char*>(room.data()), *got};
}

/// A chain 0>1>2, whose nodes have two connections with each peer.
class TcpLinksTest : public testing::Test {
 protected:
  TcpLinksTest() {
    TcpMesh mesh = MakeTcpMesh(Compile({.nodes = 3,
                                        .message_bytes = 100,
                                        .block_bytes = 10,
                                        .algorithm = "chain",
                                        .ready = {.automatic = false, .ready = {}}})
                                   .value())
                       .value();
    first_file_ = mesh[0].front().fd.get();
    for (std::vector<TcpSocket>& sockets : mesh) {
      connections_ += sockets.size();
      links_.push_back(std::make_unique<TcpLinks>(std::move(sockets)));
    }
  }

  PeerLinks& links(uint32_t node) { return *links_[node]; }
  Status Exchange(uint32_t node, std::vector<PeerRecord>& records) {
    const Checkpoint checkpoint;
    return ExchangeRecords({.node = NodeId(node),
                            .what = "tests",
                            .bytes_max = 1000,
                            .links = links(node),
                            .checkpoint = checkpoint,
                            .answer_max = std::chrono::seconds(20)},
                           records);
  }

  size_t connections_ = 0;
  int first_file_ = -1;  ///< of node 0, whose connections are all with node 1
  std::vector<std::unique_ptr<PeerLinks>> links_;
};

// Catches records that go to another peer, or are mixed up.
TEST_F(TcpLinksTest, RecordsReachTheirPeers) {
  ASSERT_EQ(connections_, 8u);
  std::vector<std::future<void>> nodes;
  for (uint32_t node = 0; node < 3; ++node) {
    nodes.push_back(std::async(std::launch::async, [&, node] {
      std::vector<PeerRecord> records;
      for (uint32_t peer = 0; peer < 3; ++peer) {
        if (links(node).Has(NodeId(peer)))
          records.push_back({NodeId(peer), BytesOf(std::string(node + 1, 'x'))});
      }
      EXPECT_EQ(records.size(), node == 1 ? 2u : 1u);
      const Status status = Exchange(node, records);
      EXPECT_TRUE(status.ok()) << status.ToString();
      for (const PeerRecord& record : records)
        EXPECT_EQ(record.received.size(), record.peer.value + 1) << "of " << record.peer.value;
    }));
  }
  for (std::future<void>& node : nodes) node.get();
}

// Catches members that do not find each other because they use different ones of their connections.
TEST_F(TcpLinksTest, TheFirstConnectionIsUsed) { EXPECT_EQ(links(0).File(NodeId(1)), first_file_); }

TEST_F(TcpLinksTest, PeersWithoutALinkAreErrors) {
  std::vector<PeerRecord> records = {{NodeId(2), BytesOf("abc")}};
  EXPECT_EQ(Exchange(0, records).message(),
            "node 0 cannot learn the tests of node 2: there is no connection with it");
}

// Catches a receive or a send that waits, and one that says that a link which is there is lost.
TEST_F(TcpLinksTest, WhatCannotMoveIsLater) {
  std::array<std::byte, 8> room;
  EXPECT_EQ(links(0).Receive(NodeId(1), room).value(), 0u);
  const std::vector<std::byte> bytes(size_t{1} << 16);
  size_t last = 1;
  for (int i = 0; i < 10'000 && last != 0; ++i) last = links(0).Send(NodeId(1), bytes).value();
  EXPECT_EQ(last, 0u) << "nobody reads it";
  EXPECT_EQ(links(1).ClosedPeer(), std::nullopt) << "what has come is for the peer's reader";
}

// Catches a peer that leaves without being noticed, another that is taken for it, and a question
// that takes bytes away.
TEST_F(TcpLinksTest, APeerThatClosesIsNamed) {
  EXPECT_EQ(links(0).Send(NodeId(1), BytesOf("a")).value(), 1u);
  EXPECT_TRUE(IsReadable(links(1), NodeId(0)));
  EXPECT_EQ(links(1).ClosedPeer(), std::nullopt);
  EXPECT_EQ(Next(links(1), NodeId(0)), "a");
  links_[2] = nullptr;
  EXPECT_EQ(Next(links(1), NodeId(2)), "it closed the connection");
  EXPECT_EQ(links(1).ClosedPeer(), NodeId(2));
  EXPECT_EQ(links(0).ClosedPeer(), std::nullopt);
  std::vector<PeerRecord> records = {{NodeId(2), BytesOf("abc")}};
  EXPECT_THAT(Exchange(1, records).message(),
              HasSubstr("node 1 cannot learn the tests of node 2: "));
}

// Players have a copy each. Catches one that closes the links of another with its own.
TEST_F(TcpLinksTest, CopiesAreOfTheSameLinks) {
  std::unique_ptr<PeerLinks> copy = links(0).Copy().value();
  EXPECT_TRUE(copy->Has(NodeId(1)));
  EXPECT_FALSE(copy->Has(NodeId(2)));
  EXPECT_EQ(copy->LocalHost(), links(0).LocalHost());
  EXPECT_EQ(copy->Send(NodeId(1), BytesOf("a")).value(), 1u);
  EXPECT_EQ(Next(links(1), NodeId(0)), "a");
  copy = nullptr;
  EXPECT_EQ(links(0).Send(NodeId(1), BytesOf("b")).value(), 1u);
  EXPECT_EQ(Next(links(1), NodeId(0)), "b");
  EXPECT_EQ(links(1).Send(NodeId(0), BytesOf("c")).value(), 1u);
  EXPECT_EQ(Next(links(0), NodeId(1)), "c");
}

// Catches a wait that does not end: of a copy here, or of the peer, as long as copies are open.
TEST_F(TcpLinksTest, NobodyWaitsAfterShut) {
  const std::unique_ptr<PeerLinks> copy = links(1).Copy().value();
  std::future<std::string> waits =
      std::async(std::launch::async, [&] { return Next(*copy, NodeId(0)); });
  links(1).Shut();
  EXPECT_EQ(waits.get(), "it closed the connection");
  for (const uint32_t node : {0u, 2u}) {
    EXPECT_EQ(Next(links(node), NodeId(1)), "it closed the connection");
    EXPECT_EQ(links(node).ClosedPeer(), NodeId(1));
  }
  EXPECT_EQ(copy->Send(NodeId(2), BytesOf("a")).status().message(), "Broken pipe");
}

TEST_F(TcpLinksTest, DescribesTheWay) {
  EXPECT_EQ(links(1).LocalHost(), "127.0.0.1");
  EXPECT_GT(links(1).RoundTripTo(NodeId(0)).count(), 0);
  EXPECT_EQ(links(0).RoundTripTo(NodeId(2)).count(), 0) << "there is no link";
  const TcpLinks none({});
  EXPECT_EQ(none.LocalHost(), "");
  EXPECT_EQ(none.ClosedPeer(), std::nullopt);
}

}  // namespace
}  // namespace prepost::tcp_links_test
