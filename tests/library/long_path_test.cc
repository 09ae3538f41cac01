// SPDX-License-Identifier: Apache-2.0
//
// A member at each of two sites with a long path between them (long_link.h): 400 Mbit/s and a round
// trip of 60 ms. Such a path is filled only if the receiver's window grows, so the kernel is asked
// how large it has become, and no clock. Without root or /dev/net/tun there is no such path, and
// the test is skipped.
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

constexpr uint32_t kMembers = 2;
constexpr uint64_t kMessageBytes = 4 << 20;
/// As much as a window to begin with, with frames of 1,500 bytes.
constexpr uint64_t kBlockBytes = 96 << 10;
/// The path holds 3 MB. A window that is not enlarged stays below 100 KB.
constexpr uint32_t kWindowMin = 512 << 10;

bool IsAt(const sockaddr_in& address, uint32_t member) {
  return address.sin_addr.s_addr == inet_addr(Machines::AddressOf(member).c_str());
}

/// What the kernel allows the window to be that member 1 offers member 0: the largest of their
/// connections, of which one carries blocks.
uint32_t WindowOfReceiver() {
  uint32_t window = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    sockaddr_in own = {}, peer = {};
    socklen_t own_bytes = sizeof(own), peer_bytes = sizeof(peer);
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_bytes) != 0 ||
        getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_bytes) != 0 || !IsAt(own, 1) ||
        !IsAt(peer, 0))
      continue;
    tcp_info info = {};
    socklen_t bytes = sizeof(info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0)
      window = std::max(window, info.tcpi_rcv_ssthresh);
  }
  return window;
}

// Catches a receiver that sleeps until a block is there in full: the window then stays what it was.
TEST(LongPathTest, WindowsGrow) {
  const auto machines = Machines::Make(kMembers, /*sites=*/2);
  if (machines == nullptr) GTEST_SKIP() << "there is no long path: needs root and ip";
  const auto link = LongLink::Make(machines->SwitchOf(0), machines->SwitchOf(1), test::LongPath());
  if (!link.ok()) GTEST_SKIP() << "there is no long path: " << link.status().message();
  SessionOptions options;
  options.local_copies = false;
  for (uint32_t i = 0; i < kMembers; ++i)
    options.members.push_back({.host = Machines::AddressOf(i)});
  Sessions sessions(kMembers, test::Patient(options), nullptr,
                    [&](const SessionOptions& own) { machines->Enter(own.self); });
  sessions.Create(1, Members(kMembers), 0, {.algorithm = "chain", .block_bytes = kBlockBytes});
  test::ExpectDelivery(sessions, 1, Members(kMembers), 0, {Bytes(kMessageBytes, 1)});
  EXPECT_GT(WindowOfReceiver(), kWindowMin);
}

}  // namespace
}  // namespace prepost::long_path_test
