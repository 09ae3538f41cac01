// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp_mesh.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <vector>

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

// What one end seals its other end opens. Catches connections, streams or ways that share a key,
// whose first records of the same bytes would be the same, and ends that both take themselves for
// the connector.
TEST(TcpMeshTest, EachConnectionIsSealedUnderItsOwnKey) {
  constexpr uint16_t kStreams = 2;
  const VerifiedPlan plan = Compile({.nodes = 3, .message_bytes = 100, .block_bytes = 10}).value();
  TcpMesh mesh = MakeTcpMesh(plan, kStreams).value();
  const GroupKey key = GroupKey::Random().value();
  for (uint32_t node = 0; node < 3; ++node)
    SealSockets(NodeId(node), mesh[node], key, SealCipher::kChaCha20Poly1305);
  const std::byte plain[] = {std::byte{1}, std::byte{2}};
  std::set<std::vector<std::byte>> records;
  for (uint32_t node = 0; node < 3; ++node) {
    for (TcpSocket& from : mesh[node]) {
      std::vector<std::byte> record(sizeof(plain) + kSealTagBytes), opened(sizeof(plain));
      ASSERT_TRUE(from.seal->out().Seal(plain, {}, record));
      EXPECT_TRUE(records.insert(record).second);
      std::vector<TcpSocket>& peers = mesh[from.peer.index()];
      const auto to = std::ranges::find_if(peers, [&](const TcpSocket& it) {
        return it.peer == NodeId(node) && it.lane == from.lane && it.stream == from.stream;
      });
      ASSERT_NE(to, peers.end());
      ASSERT_TRUE(to->seal->in().Open(record, {}, opened));
      EXPECT_TRUE(std::ranges::equal(opened, plain));
    }
  }
}

TEST(TcpMeshTest, OneNodeNeedsNoConnection) {
  const Result<TcpMesh> mesh = MakeTcpMesh(Compile({.nodes = 1, .message_bytes = 0}).value());
  ASSERT_TRUE(mesh.ok());
  EXPECT_TRUE((*mesh)[0].empty());
}

}  // namespace
}  // namespace prepost::tcp_mesh_test
