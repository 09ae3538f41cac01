// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp_address.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <string>

namespace prepost::tcp_address_test {
namespace {

/// What Find() says in the end.
Result<std::vector<TcpAddress>> Await(HostLookups& lookups, const std::string& host) {
  for (;;) {
    if (auto found = lookups.Find(host)) return *found;
    poll(nullptr, 0, 1);
  }
}

// Catches a queue of which something is left, or lost.
TEST(HostLookupsTest, AllHostsAreFoundOrAreErrors) {
  HostLookups lookups;
  constexpr size_t kHosts = 100;
  const auto name = [](size_t i) {
    return i % 2 == 0 ? std::string(100 + i, 'x') : std::string("localhost");
  };
  for (size_t i = 0; i < kHosts; ++i) lookups.Find(name(i));
  for (size_t i = 0; i < kHosts; ++i) EXPECT_EQ(Await(lookups, name(i)).ok(), i % 2 == 1) << i;
  EXPECT_FALSE(Await(lookups, "localhost")->empty());
  lookups.Forget("localhost");
  EXPECT_TRUE(Await(lookups, "localhost").ok());
  EXPECT_EQ(lookups.Find("::1")->value().front().ToString(), "[::1]:0");  // at once
}

// Catches threads that touch what is gone.
TEST(HostLookupsTest, MayGoWhileHostsAreLookedUp) {
  for (int i = 0; i < 20; ++i) {
    HostLookups lookups;
    for (int host = 0; host < 20; ++host)
      lookups.Find(std::string(size_t{100} + static_cast<size_t>(host), 'x'));
  }
}

// Catches a flood from one IPv6 network, or over IPv4 to a socket for both, that counts as many.
TEST(TcpAddressTest, NetworksAreWhatOneMachineChoosesAmong) {
  const auto network = [](const char* host) { return NumericAddress(host)->Network(); };
  EXPECT_EQ(network("2001:db8::1"), network("2001:db8::2:1"));
  EXPECT_NE(network("2001:db8::1"), network("2001:db8:0:1::1"));
  EXPECT_NE(network("fe80::1"), network("fe80::2"));
  EXPECT_EQ(network("::ffff:10.0.0.1"), network("10.0.0.1"));
  EXPECT_NE(network("::ffff:10.0.0.1"), network("::ffff:10.0.0.2"));
  EXPECT_EQ(NumericAddress("10.0.0.1")->WithPort(1).Network(), network("10.0.0.1"));
}

// Catches a machine that listens for both and says of a connection over IPv4 that it is one of
// IPv6: what is opened at such an address its peers do not reach.
TEST(TcpAddressTest, ConnectionsOverIpv4HaveItsAddressesAtBothEnds) {
  int error = 0;
  const FileDescriptor listener = ListenEverywhere(0, &error);
  ASSERT_TRUE(listener.valid()) << error;
  const FileDescriptor near =
      StartConnect(NumericAddress("127.0.0.1")->WithPort(LocalPort(listener)), &error);
  ASSERT_TRUE(near.valid()) << error;
  pollfd ready = {.fd = listener.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&ready, 1, 10'000), 1);
  const FileDescriptor far(accept(listener.get(), nullptr, nullptr));
  ASSERT_TRUE(far.valid());
  EXPECT_EQ(LocalAddress(far).Host(), "127.0.0.1");
  EXPECT_EQ(LocalAddress(far).port(), LocalPort(listener));
  EXPECT_EQ(LocalAddress(near).Host(), "127.0.0.1");
}

}  // namespace
}  // namespace prepost::tcp_address_test
