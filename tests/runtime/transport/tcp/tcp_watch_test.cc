// SPDX-License-Identifier: Apache-2.0
//
// What can be said without cutting a link; tests/library/cut_links_test.cc cuts some.
#include "runtime/transport/tcp/tcp_watch.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <thread>
#include <vector>

#include "runtime/transport/tcp/tcp_mesh.h"
#include "tests/support/two_blocks.h"

namespace prepost::tcp_watch_test {
namespace {

using std::chrono::milliseconds;

class TcpWatchTest : public testing::Test {
 protected:
  TcpWatchTest() {
    Result<TcpMesh> mesh = MakeTcpMesh(Playable::Part(plan_));
    EXPECT_TRUE(mesh.ok()) << mesh.status().ToString();
    mesh_ = *std::move(mesh);
  }

  int fd(size_t node) const { return mesh_[node].front().fd.get(); }
  int Option(int level, int name) const {
    int value = 0;
    socklen_t bytes = sizeof(value);
    EXPECT_EQ(getsockopt(fd(0), level, name, &value, &bytes), 0);
    return value;
  }

  const Plan plan_ = test::TwoBlocks(10);
  TcpMesh mesh_;
};

// A peer that takes nothing for long answers the kernel's questions.
TEST_F(TcpWatchTest, APeerWithoutRoomIsNotSilent) {
  EXPECT_TRUE(IsTcpAcknowledged(fd(0)));
  const std::vector<std::byte> much(1 << 20);
  while (send(fd(0), much.data(), much.size(), MSG_DONTWAIT) > 0) {
  }
  EXPECT_FALSE(IsTcpAcknowledged(fd(0)));
  TcpWatch watch;
  const auto end = std::chrono::steady_clock::now() + milliseconds(2000);
  while (std::chrono::steady_clock::now() < end) {
    ASSERT_FALSE(watch.IsSilent(fd(0), milliseconds(600)));
    std::this_thread::sleep_for(milliseconds(50));
  }
  std::vector<std::byte> sink(1 << 20);
  for (int quiet = 0; quiet < 10;) {
    pollfd ready = {.fd = fd(1), .events = POLLIN, .revents = 0};
    quiet = poll(&ready, 1, 100) == 0 ? quiet + 1 : 0;
    if (quiet == 0) {
      ASSERT_GT(recv(fd(1), sink.data(), sink.size(), MSG_DONTWAIT), 0);
    }
    if (IsTcpAcknowledged(fd(0))) break;
  }
  EXPECT_TRUE(IsTcpAcknowledged(fd(0)));
}

TEST_F(TcpWatchTest, KeepAliveTakesWholeSeconds) {
  EXPECT_EQ(Option(SOL_SOCKET, SO_KEEPALIVE), 0);
  KeepAlive(fd(0), {milliseconds(1), milliseconds(10'001), 3});
  EXPECT_EQ(Option(SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(Option(IPPROTO_TCP, TCP_KEEPIDLE), 1);
  EXPECT_EQ(Option(IPPROTO_TCP, TCP_KEEPINTVL), 11);
  EXPECT_EQ(Option(IPPROTO_TCP, TCP_KEEPCNT), 3);
  KeepAlive(fd(0), {std::chrono::hours(24), std::chrono::hours(24), 127});
  EXPECT_EQ(Option(IPPROTO_TCP, TCP_KEEPIDLE), 32767);
}

}  // namespace
}  // namespace prepost::tcp_watch_test
