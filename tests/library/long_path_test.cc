// SPDX-License-Identifier: Apache-2.0
//
// Two sites with a long path between them (long_link.h): 400 Mbit/s and a round trip of 60 ms. Such a path
// is filled only if the receiver's window grows, so the kernel is asked how large it has become, and no
// clock. Without root or /dev/net/tun there is no such path, and the test is skipped.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "prepost/prepost.h"
#include "tests/support/long_link.h"
#include "tests/support/machines.h"
#include "tests/support/sessions.h"

namespace prepost::long_path_test {
namespace {

using test::Bytes;
using test::LongLink;
using test::Machines;
using test::Members;
using test::Sessions;

constexpr uint32_t kMembers = 4;
constexpr uint64_t kMessageBytes = 4 << 20;
/// The path holds 3 MB. A window that is not enlarged stays below 100 KB.
constexpr uint32_t kWindowMin = 512 << 10;

bool IsAt(const sockaddr_in& address, uint32_t member) {
  return address.sin_addr.s_addr == inet_addr(Machines::AddressOf(member).c_str());
}

/// What the kernel allows the window to be that `to` offers `from`, both of this process: the largest of
/// their connections, of which one carries blocks.
uint32_t WindowBetween(uint32_t from, uint32_t to) {
  uint32_t window = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    sockaddr_in own = {}, peer = {};
    socklen_t own_bytes = sizeof(own), peer_bytes = sizeof(peer);
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_bytes) != 0 ||
        getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_bytes) != 0 ||
        !IsAt(own, to) || !IsAt(peer, from))
      continue;
    tcp_info info = {};
    socklen_t bytes = sizeof(info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0)
      window = std::max(window, info.tcpi_rcv_ssthresh);
  }
  return window;
}

// With blocks as they are chosen, and with those of the smallest choice. Catches a receiver that sleeps
// until the window is nearly full.
TEST(LongPathTest, WindowsGrow) {
  const auto machines = Machines::Make(kMembers, /*sites=*/2);
  if (machines == nullptr) GTEST_SKIP() << "there is no long path: needs root and ip";
  const auto link = LongLink::Make(machines->SwitchOf(0), machines->SwitchOf(1), {});
  if (!link.ok()) GTEST_SKIP() << "there is no long path: " << link.status().message();
  SessionOptions options;
  options.local_copies = false;
  for (uint32_t i = 0; i < kMembers; ++i)
    options.members.push_back({.host = Machines::AddressOf(i)});
  for (const uint64_t block_bytes : {uint64_t{0}, uint64_t{64} << 10}) {
    SCOPED_TRACE(testing::Message() << "blocks of " << block_bytes);
    Sessions sessions(kMembers, test::Patient(options), nullptr,
                      [&](const SessionOptions& own) { machines->Enter(own.self); });
    sessions.Create(1, Members(kMembers), 0, {.algorithm = "chain", .block_bytes = block_bytes});
    test::ExpectDelivery(sessions, 1, Members(kMembers), 0, {Bytes(kMessageBytes, 1)});
    EXPECT_GT(WindowBetween(1, 2), kWindowMin);
  }
}

}  // namespace
}  // namespace prepost::long_path_test
