// SPDX-License-Identifier: Apache-2.0
#include "prepost/runtime/tcp_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

namespace prepost {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

/// `flags` as for getaddrinfo. `*error` is its result.
std::vector<TcpAddress> LookUp(const std::string& host, int flags, int* error) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  *error = getaddrinfo(host.c_str(), nullptr, &hints, &list);
  const std::unique_ptr<addrinfo, FreeAddresses> owner(list);
  std::vector<TcpAddress> addresses;
  for (const addrinfo* entry = *error == 0 ? list : nullptr; entry != nullptr;
       entry = entry->ai_next) {
    TcpAddress& address = addresses.emplace_back();
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    address.bytes = entry->ai_addrlen;
  }
  return addresses;
}

FileDescriptor Failed(int* error) {
  *error = errno;
  return {};
}

FileDescriptor ListenAt(const TcpAddress& address, bool both_families, int* error) {
  FileDescriptor fd(
      socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return Failed(error);
  const int on = 1;
  const int v6_only = both_families ? 0 : 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));  // past TIME_WAIT only
  if (address.storage.ss_family == AF_INET6) {
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only));
  }
  if (bind(fd.get(), address.generic(), address.bytes) != 0 || listen(fd.get(), SOMAXCONN) != 0) {
    return Failed(error);
  }
  return fd;
}

}  // namespace

TcpAddress TcpAddress::WithPort(uint16_t port) const {
  TcpAddress address = *this;
  if (storage.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port = htons(port);
  }
  return address;
}

std::string TcpAddress::ToString() const {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (getnameinfo(generic(), bytes, host, sizeof(host), port, sizeof(port),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "an unknown address";
  }
  return storage.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host, port)
                                       : fmt::format("{}:{}", host, port);
}

std::optional<TcpAddress> NumericAddress(const std::string& host) {
  int error = 0;
  const std::vector<TcpAddress> addresses = LookUp(host, AI_NUMERICHOST, &error);
  if (addresses.empty()) return std::nullopt;
  return addresses.front();
}

struct HostLookup::State {
  std::atomic<bool> done = false;
  int error = 0;  ///< of getaddrinfo, written before `done`, as is the next
  std::vector<TcpAddress> addresses;
};

HostLookup::HostLookup(const std::string& host) : state_(std::make_shared<State>()) {
  if (std::optional<TcpAddress> address = NumericAddress(host)) {
    state_->addresses.push_back(*address);
    state_->done = true;
    return;
  }
  const auto look_up = [host, state = state_] {
    state->addresses = LookUp(host, AI_ADDRCONFIG, &state->error);
    state->done = true;
  };
  try {
    std::thread(look_up).detach();
  } catch (const std::system_error&) {
    state_->error = EAI_AGAIN;
    state_->done = true;
  }
}

bool HostLookup::done() const { return state_->done; }

Result<std::vector<TcpAddress>> HostLookup::addresses() const {
  PREPOST_CHECK(done());
  if (state_->error != 0) return Rejected(gai_strerror(state_->error));
  if (state_->addresses.empty()) return Rejected("no address");
  return state_->addresses;
}

FileDescriptor Listen(const TcpAddress& address, int* error) {
  return ListenAt(address, /*both_families=*/false, error);
}

FileDescriptor ListenEverywhere(uint16_t port, int* error) {
  FileDescriptor fd = ListenAt(NumericAddress("::")->WithPort(port), /*both_families=*/true, error);
  if (fd.valid() || *error == EADDRINUSE) return fd;
  return Listen(NumericAddress("0.0.0.0")->WithPort(port), error);  // a machine without IPv6
}

FileDescriptor StartConnect(const TcpAddress& address, int* error) {
  FileDescriptor fd(
      socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return Failed(error);
  if (connect(fd.get(), address.generic(), address.bytes) != 0 && errno != EINPROGRESS) {
    return Failed(error);
  }
  return fd;
}

}  // namespace prepost
