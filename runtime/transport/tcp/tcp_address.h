// SPDX-License-Identifier: Apache-2.0
//
// TcpAddress: an IPv4 or IPv6 address with its port, HostLookups: the addresses behind host names,
// found without making anyone wait, and sockets that listen and connect.
#ifndef PREPOST_RUNTIME_TRANSPORT_TCP_TCP_ADDRESS_H_
#define PREPOST_RUNTIME_TRANSPORT_TCP_TCP_ADDRESS_H_

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/base/status.h"
#include "runtime/base/file_descriptor.h"

namespace prepost {

using NetworkBytes = std::array<std::byte, 16>;

struct TcpAddress {
  sockaddr_storage storage = {};
  socklen_t bytes = 0;

  TcpAddress WithPort(uint16_t port) const;
  uint16_t port() const;
  const sockaddr* generic() const { return reinterpret_cast<const sockaddr*>(&storage); }
  /// "10.0.0.1", "::1".
  std::string Host() const;
  /// "10.0.0.1:7811", "[::1]:7811".
  std::string ToString() const;
  /// What addresses have in common that one machine can usually choose among: all of an IPv4
  /// address, the first 64 bits of an IPv6 address (all of one that is IPv4's, or link-local).
  NetworkBytes Network() const;
};

/// The host of the address from which this machine reaches `address`: where that machine reaches
/// this one, unless addresses are translated between them. "" if it cannot be reached.
std::string LocalHostTowards(const TcpAddress& address);

/// The address that `host` spells; none if it is a name.
std::optional<TcpAddress> NumericAddress(const std::string& host);
/// Of one or several, with commas between them; empty: one is none.
std::vector<TcpAddress> NumericAddresses(std::string_view hosts);

/// Look-ups, each host's once, a few at a time, on threads that nobody waits for: a resolver can
/// take a minute. They own all that they touch, so that the process may end meanwhile. Used by one
/// thread.
class HostLookups {
 public:
  HostLookups();
  /// Look-ups that have not begun never will.
  ~HostLookups();
  HostLookups(const HostLookups&) = delete;
  HostLookups& operator=(const HostLookups&) = delete;

  /// The addresses of `host`, at least one; none: not found yet, ask again. Errors (kRejected):
  /// what the resolver says; kEnvironment: no thread can be started for it.
  std::optional<Result<std::vector<TcpAddress>>> Find(const std::string& host);
  /// What was found is forgotten: the next Find() looks it up again.
  void Forget(const std::string& host);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  ///< with the threads
};

/// A socket that listens at `address`, without waiting for those who connect. `*error` is the errno
/// value if that fails (then the result is empty).
FileDescriptor Listen(const TcpAddress& address, int* error);
/// A socket that listens at all addresses of this machine, IPv6 and IPv4 as far as it has them.
FileDescriptor ListenEverywhere(uint16_t port, int* error);
/// Whether it is an address of this machine, in this network namespace.
bool IsOfThisMachine(const TcpAddress& address);
/// Of the other end of a connection; empty where it has gone.
TcpAddress PeerAddressOf(const FileDescriptor& socket);
/// Where a socket of ours is bound to.
TcpAddress LocalAddress(const FileDescriptor& socket);
/// The port that a socket of ours is bound to.
uint16_t LocalPort(const FileDescriptor& socket);
/// A socket whose connection is under way or there; non-blocking. As Listen().
FileDescriptor StartConnect(const TcpAddress& address, int* error);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRANSPORT_TCP_TCP_ADDRESS_H_
