// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/event_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <thread>
#include <utility>

namespace prepost::event_fd_test {
namespace {

bool IsReadable(const EventFd& event) {
  pollfd poll_fd = {.fd = event.fd(), .events = POLLIN, .revents = 0};
  return poll(&poll_fd, 1, /*timeout=*/0) == 1;
}

// Catches a Take() that blocks when there is nothing, and one that leaves signals behind.
TEST(EventFdTest, TakesAllSignalsAtOnce) {
  const EventFd event = EventFd::Make().value();
  EXPECT_FALSE(IsReadable(event));
  EXPECT_EQ(event.Take(), 0u);
  for (int i = 0; i < 3; ++i) event.Signal();
  EXPECT_TRUE(IsReadable(event));
  EXPECT_EQ(event.Take(), 3u);
  EXPECT_FALSE(IsReadable(event));
  EXPECT_EQ(event.Take(), 0u);
}

// Catches a descriptor that programs started meanwhile inherit.
TEST(EventFdTest, IsClosedOnExec) {
  const EventFd event = EventFd::Make().value();
  EXPECT_NE(fcntl(event.fd(), F_GETFD) & FD_CLOEXEC, 0);
}

// Catches an event that is closed with what it was moved from, or not with its owner.
TEST(EventFdTest, MovesAndCloses) {
  EventFd empty;
  EXPECT_FALSE(empty.valid());
  EXPECT_EQ(empty.fd(), -1);
  int fd = -1;
  {
    EventFd event = EventFd::Make().value();
    event.Signal();
    fd = event.fd();
    const EventFd moved = std::move(event);
    EXPECT_EQ(moved.fd(), fd);
    EXPECT_EQ(moved.Take(), 1u);
  }
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
}

// Catches a signal that is lost when threads signal while another takes.
TEST(EventFdTest, NoSignalOfAnyThreadIsLost) {
  constexpr uint64_t kSignals = 20'000;
  const EventFd event = EventFd::Make().value();
  std::array<std::thread, 3> threads;
  for (std::thread& thread : threads) {
    thread = std::thread([&] {
      for (uint64_t i = 0; i < kSignals; ++i) event.Signal();
    });
  }
  uint64_t taken = 0;
  while (taken < threads.size() * kSignals) {
    pollfd poll_fd = {.fd = event.fd(), .events = POLLIN, .revents = 0};
    const bool is_signalled = poll(&poll_fd, 1, /*timeout=*/60'000) == 1;
    EXPECT_TRUE(is_signalled) << "after " << taken;
    if (!is_signalled) break;
    taken += event.Take();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, threads.size() * kSignals);
  EXPECT_EQ(event.Take(), 0u);
}

}  // namespace
}  // namespace prepost::event_fd_test
