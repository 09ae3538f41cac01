// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "runtime/base/thread.h"

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

constexpr size_t kLookupsMax = 8;  ///< at a time

FileDescriptor Failed(int* error) {
  *error = errno;
  return {};
}

FileDescriptor OpenStream(const TcpAddress& address) {
  return FileDescriptor::Open([&address] {
    return socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  });
}

FileDescriptor ListenAt(const TcpAddress& address, bool both_families, int* error) {
  FileDescriptor fd = OpenStream(address);
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

uint16_t TcpAddress::port() const {
  return ntohs(storage.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
}

std::string TcpAddress::Host() const {
  char host[NI_MAXHOST];
  const int error = getnameinfo(generic(), bytes, host, sizeof(host), nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? host : "an unknown address";
}

std::string TcpAddress::ToString() const {
  return storage.ss_family == AF_INET6 ? fmt::format("[{}]:{}", Host(), port())
                                       : fmt::format("{}:{}", Host(), port());
}

std::optional<TcpAddress> NumericAddress(const std::string& host) {
  int error = 0;
  const std::vector<TcpAddress> addresses = LookUp(host, AI_NUMERICHOST, &error);
  if (addresses.empty()) return std::nullopt;
  return addresses.front();
}

std::vector<TcpAddress> NumericAddresses(std::string_view hosts) {
  std::vector<TcpAddress> addresses;
  for (size_t begin = 0; begin <= hosts.size();) {
    const size_t end = std::min(hosts.find(',', begin), hosts.size());
    const auto address = NumericAddress(std::string(hosts.substr(begin, end - begin)));
    if (!address) return {};
    addresses.push_back(*address);
    begin = end + 1;
  }
  return addresses;
}

NetworkBytes TcpAddress::Network() const {
  NetworkBytes network = {};
  if (storage.ss_family != AF_INET6) {
    std::memcpy(network.data(), &reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr,
                sizeof(in_addr));
    return network;
  }
  const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    std::memcpy(network.data(), &address.s6_addr[12], sizeof(in_addr));
  } else {
    std::memcpy(network.data(), &address, IN6_IS_ADDR_LINKLOCAL(&address) ? sizeof(address) : 8);
  }
  return network;
}

struct HostLookups::Shared {
  struct Found {
    bool done = false;
    int error = 0;  ///< of getaddrinfo
    std::vector<TcpAddress> addresses;
  };

  /// What each thread does until nothing is queued.
  void LookUpQueued() {
    std::unique_lock lock(mutex);
    while (!queued.empty()) {
      const std::string host = std::move(queued.front());
      queued.pop_front();
      lock.unlock();
      Found found = {.done = true};
      found.addresses = LookUp(host, AI_ADDRCONFIG, &found.error);
      lock.lock();
      hosts[host] = std::move(found);
    }
    --threads;
  }

  std::mutex mutex;  ///< all below
  std::map<std::string, Found> hosts;
  std::deque<std::string> queued;
  size_t threads = 0;
};

HostLookups::HostLookups() : shared_(std::make_shared<Shared>()) {}

HostLookups::~HostLookups() {
  const std::lock_guard lock(shared_->mutex);
  shared_->queued.clear();
}

std::optional<Result<std::vector<TcpAddress>>> HostLookups::Find(const std::string& host) {
  if (const std::vector<TcpAddress> addresses = NumericAddresses(host); !addresses.empty())
    return addresses;
  const std::lock_guard lock(shared_->mutex);
  const auto [entry, is_new] = shared_->hosts.try_emplace(host);
  if (is_new) shared_->queued.push_back(host);
  if (!shared_->queued.empty() && shared_->threads < kLookupsMax) {
    Result<std::thread> thread =
        StartThread("a thread that looks up hosts", [shared = shared_] { shared->LookUpQueued(); });
    if (thread.ok()) {
      thread->detach();
      ++shared_->threads;
    } else if (shared_->threads == 0) {
      shared_->queued.clear();
      std::erase_if(shared_->hosts, [](const auto& host) { return !host.second.done; });
      return thread.status();
    }  // else the threads that are there come to it
  }
  const Shared::Found& found = entry->second;
  if (!found.done) return std::nullopt;
  if (found.error != 0) return Rejected(gai_strerror(found.error));
  if (found.addresses.empty()) return Rejected("no address");
  return found.addresses;
}

void HostLookups::Forget(const std::string& host) {
  const std::lock_guard lock(shared_->mutex);
  const auto entry = shared_->hosts.find(host);
  if (entry != shared_->hosts.end() && entry->second.done) shared_->hosts.erase(entry);
}

FileDescriptor Listen(const TcpAddress& address, int* error) {
  return ListenAt(address, /*both_families=*/false, error);
}

FileDescriptor ListenEverywhere(uint16_t port, int* error) {
  FileDescriptor fd = ListenAt(NumericAddress("::")->WithPort(port), /*both_families=*/true, error);
  if (fd.valid() || *error == EADDRINUSE) return fd;
  return Listen(NumericAddress("0.0.0.0")->WithPort(port), error);  // a machine without IPv6
}

bool IsOfThisMachine(const TcpAddress& address) {
  const sa_family_t family = address.storage.ss_family;
  if (address.bytes == 0 || (family != AF_INET && family != AF_INET6)) return false;
  const FileDescriptor fd =
      FileDescriptor::Open([&] { return socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0); });
  const TcpAddress any_port = address.WithPort(0);
  return fd.valid() && bind(fd.get(), any_port.generic(), any_port.bytes) == 0;
}

TcpAddress PeerAddressOf(const FileDescriptor& socket) {
  TcpAddress address;
  address.bytes = sizeof(address.storage);
  if (getpeername(socket.get(), reinterpret_cast<sockaddr*>(&address.storage), &address.bytes) != 0)
    return {};
  return address;
}

TcpAddress LocalAddress(const FileDescriptor& socket) {
  TcpAddress address;
  address.bytes = sizeof(address.storage);
  const int result =
      getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address.storage), &address.bytes);
  PREPOST_CHECK(result == 0);
  auto* const of_both = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (address.storage.ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&of_both->sin6_addr))
    return address;
  // Of a socket that listens for both; the peer is one of IPv4.
  sockaddr_in own = {};
  own.sin_family = AF_INET;
  own.sin_port = of_both->sin6_port;
  std::memcpy(&own.sin_addr, of_both->sin6_addr.s6_addr + 12, sizeof(own.sin_addr));
  address = {};
  address.bytes = sizeof(own);
  std::memcpy(&address.storage, &own, sizeof(own));
  return address;
}

uint16_t LocalPort(const FileDescriptor& socket) { return LocalAddress(socket).port(); }

std::string LocalHostTowards(const TcpAddress& address) {
  // A datagram socket that is connected has its address, and has sent nothing.
  const FileDescriptor fd(socket(address.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const TcpAddress anywhere = address.WithPort(9);
  if (!fd.valid() || connect(fd.get(), anywhere.generic(), anywhere.bytes) != 0) return "";
  return LocalAddress(fd).Host();
}

FileDescriptor StartConnect(const TcpAddress& address, int* error) {
  FileDescriptor fd = OpenStream(address);
  if (!fd.valid()) return Failed(error);
  if (connect(fd.get(), address.generic(), address.bytes) != 0 && errno != EINPROGRESS) {
    return Failed(error);
  }
  return fd;
}

}  // namespace prepost
