// SPDX-License-Identifier: Apache-2.0
#include "tests/support/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/transport/shm/block_stage.h"

namespace prepost::test {
namespace {

std::pair<FileDescriptor, FileDescriptor> Bells() {
  std::array<int, 2> ends = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

}  // namespace

FileDescriptor CopyOf(int fd) { return FileDescriptor(fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

void Join(ShmStream& a, ShmStream& b) {
  EXPECT_TRUE(a.Take(CopyOf(b.memory_fd())));
  EXPECT_TRUE(b.Take(CopyOf(a.memory_fd())));
  auto [a_bell, to_a] = Bells();
  auto [b_bell, to_b] = Bells();
  a.Join(std::move(a_bell), std::move(to_b));
  b.Join(std::move(b_bell), std::move(to_a));
}

void ShareMemory(TcpMesh& mesh) {
  constexpr size_t kRingBytes = 4096;
  std::vector<std::shared_ptr<BlockStage>> stages;
  for (size_t node = 0; node < mesh.size(); ++node) stages.push_back(*BlockStage::Make());
  for (uint32_t node = 0; node < mesh.size(); ++node) {
    for (TcpSocket& socket : mesh[node]) {
      if (socket.peer < NodeId(node)) continue;
      std::vector<TcpSocket>& theirs = mesh[socket.peer.index()];
      const auto other = std::ranges::find_if(theirs, [&](const TcpSocket& it) {
        return it.peer == NodeId(node) && it.lane == socket.lane && it.stream == socket.stream;
      });
      ASSERT_NE(other, theirs.end());
      socket.memory = *ShmStream::Make(kRingBytes);
      other->memory = *ShmStream::Make(kRingBytes);
      Join(*socket.memory, *other->memory);
      if (socket.lane != Lane::kBlocks) continue;
      socket.stage = stages[node];
      other->stage = stages[socket.peer.index()];
      socket.peer_stage = *PeerStage::Take(CopyOf(other->stage->memory_fd()));
      other->peer_stage = *PeerStage::Take(CopyOf(socket.stage->memory_fd()));
    }
  }
}

}  // namespace prepost::test
