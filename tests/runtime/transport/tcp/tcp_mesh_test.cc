// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp_mesh.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "compiler/compile.h"

namespace prepost::tcp_mesh_test {
namespace {

const TcpSocket* Find(const std::vector<TcpSocket>& sockets, NodeId peer, Lane lane) {
  const auto found = std::ranges::find_if(
      sockets, [&](const TcpSocket& socket) { return socket.peer == peer && socket.lane == lane; });
  return found == sockets.end() ? nullptr : &*found;
}

// Says who it is on each socket: catches ends that are mixed up between nodes or lanes.
TEST(TcpMeshTest, ConnectsThePairsThatShareAChannel) {
  const VerifiedPlan plan = Compile({.nodes = 6, .message_bytes = 100, .block_bytes = 10}).value();
  const Result<TcpMesh> mesh = MakeTcpMesh(plan);
  ASSERT_TRUE(mesh.ok()) << mesh.status().ToString();
  size_t ends = 0;
  for (uint32_t node = 0; node < 6; ++node) {
    for (const TcpSocket& socket : (*mesh)[node]) {
      ++ends;
      const TcpSocket* const other = Find((*mesh)[socket.peer.index()], NodeId(node), socket.lane);
      ASSERT_NE(other, nullptr);
      const uint32_t sent = node * 2 + NumberOf(socket.lane);
      uint32_t received = 0;
      ASSERT_EQ(send(socket.fd.get(), &sent, sizeof(sent), 0), ssize_t{sizeof(sent)});
      ASSERT_EQ(recv(other->fd.get(), &received, sizeof(received), MSG_WAITALL),
                ssize_t{sizeof(sent)});
      EXPECT_EQ(received, sent);
    }
  }
  EXPECT_EQ(ends, 2 * TcpConnections(plan).size());
  for (const Channel& channel : plan.channels()) {
    EXPECT_NE(Find((*mesh)[channel.from.index()], channel.to, channel.lane), nullptr);
    EXPECT_NE(Find((*mesh)[channel.from.index()], channel.to, Lane::kCredits), nullptr);
  }
}

TEST(TcpMeshTest, OneNodeNeedsNoConnection) {
  const Result<TcpMesh> mesh = MakeTcpMesh(Compile({.nodes = 1, .message_bytes = 0}).value());
  ASSERT_TRUE(mesh.ok());
  EXPECT_TRUE((*mesh)[0].empty());
}

}  // namespace
}  // namespace prepost::tcp_mesh_test
