// SPDX-License-Identifier: Apache-2.0
//
// TcpAddress: an IPv4 or IPv6 address with its port, HostLookup: the addresses behind a host name,
// found without making anyone wait, and sockets that listen and connect.
#ifndef PREPOST_RUNTIME_TCP_ADDRESS_H_
#define PREPOST_RUNTIME_TCP_ADDRESS_H_

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "prepost/ir/status.h"
#include "prepost/runtime/file_descriptor.h"

namespace prepost {

struct TcpAddress {
  sockaddr_storage storage = {};
  socklen_t bytes = 0;

  TcpAddress WithPort(uint16_t port) const;
  const sockaddr* generic() const { return reinterpret_cast<const sockaddr*>(&storage); }
  /// "10.0.0.1:7811", "[::1]:7811".
  std::string ToString() const;
};

/// The address that `host` spells; none if it is a name.
std::optional<TcpAddress> NumericAddress(const std::string& host);

/// One look-up, on a thread of its own that nobody waits for.
class HostLookup {
 public:
  explicit HostLookup(const std::string& host);

  bool done() const;
  /// When done(): the addresses, at least one. Errors (kRejected): what the resolver says.
  Result<std::vector<TcpAddress>> addresses() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  ///< shared with the thread
};

/// A socket that listens at `address`, without waiting for those who connect. `*error` is the errno
/// value if that fails (then the result is empty).
FileDescriptor Listen(const TcpAddress& address, int* error);
/// A socket that listens at all addresses of this machine, IPv6 and IPv4 as far as it has them.
FileDescriptor ListenEverywhere(uint16_t port, int* error);
/// A socket whose connection is under way or there; non-blocking. As Listen().
FileDescriptor StartConnect(const TcpAddress& address, int* error);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TCP_ADDRESS_H_
