// SPDX-License-Identifier: Apache-2.0
//
// TcpRelay: a man in the middle: it listens where others look for a member, connects to the member
// itself, and passes on what both say. The hello goes through as it is; what follows is an attack's
// to change, hold back or make up.
#ifndef PREPOST_TESTS_SUPPORT_TCP_RELAY_H_
#define PREPOST_TESTS_SUPPORT_TCP_RELAY_H_

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/file_descriptor.h"
#include "runtime/base/little_endian.h"
#include "runtime/group/hello.h"
#include "runtime/transport/tcp/tcp_address.h"

namespace prepost::test {

using RelayedBytes = std::vector<std::byte>;

/// One connection through a relay, by its hello.
struct RelayedLink {
  LinkPurpose purpose = LinkPurpose::kControl;
  uint32_t from = 0;  ///< the node that connects
  uint32_t to = 0;
  Lane lane = Lane::kBlocks;
  /// Sends bytes of an attacker, after the hello, to the connector or to the listener.
  std::function<void(bool to_connector, const RelayedBytes&)> send;
};

class TcpRelay {
 public:
  /// What becomes of `bytes`, which have come after the hello; what is left in it goes on. Called
  /// by the relay's thread.
  using Attack = std::function<void(RelayedLink& link, bool to_connector, RelayedBytes& bytes)>;

  /// Listens at any free port of `host`.
  TcpRelay(const std::string& host, Attack attack) : attack_(std::move(attack)) {
    int error = 0;
    listener_ = Listen(NumericAddress(host)->WithPort(0), &error);
    EXPECT_TRUE(listener_.valid()) << error;
    port_ = LocalPort(listener_);
  }
  ~TcpRelay() {
    is_ending_ = true;
    if (thread_.joinable()) thread_.join();
  }

  uint16_t port() const { return port_; }
  /// From now on what comes goes to that member.
  void Start(const std::string& host, uint16_t port) {
    target_ = NumericAddress(host)->WithPort(port);
    thread_ = std::thread([this] { Run(); });
  }

 private:
  static constexpr std::array<size_t, 2> kHelloTotal = {kHelloBytes + kProofBytes,
                                                        kChallengeBytes + kVerdictBytes};
  using Sides = std::array<FileDescriptor, 2>;  ///< of the connector, and to the listener
  struct Connection {
    RelayedLink link;
    std::shared_ptr<Sides> fds;       ///< an attack's `send` may outlive the connection
    std::array<size_t, 2> seen = {};  ///< of the hello, by who says it
    RelayedBytes hello;
    bool is_over = false;
  };

  static void SendAll(int fd, const RelayedBytes& bytes) {
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t sent = send(fd, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
      if (sent <= 0) return;
      done += static_cast<size_t>(sent);
    }
  }

  void Run() {
    std::list<Connection> connections;
    while (!is_ending_) {
      std::vector<pollfd> polls = {{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
      for (const Connection& it : connections) {
        for (const FileDescriptor& fd : *it.fds)
          polls.push_back({.fd = fd.get(), .events = POLLIN, .revents = 0});
      }
      poll(polls.data(), polls.size(), 10);
      size_t i = 1;
      for (Connection& it : connections) {
        for (const size_t side : {size_t{0}, size_t{1}}) {
          if (polls[i++].revents != 0 && !it.is_over) Pass(it, side);
        }
      }
      connections.remove_if([](const Connection& it) {
        for (const FileDescriptor& fd : *it.fds) {
          if (it.is_over) shutdown(fd.get(), SHUT_RDWR);
        }
        return it.is_over;
      });
      if (polls.front().revents != 0) Accept(connections);
    }
  }

  void Accept(std::list<Connection>& connections) {
    FileDescriptor from(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    FileDescriptor to(socket(target_.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto* const address = reinterpret_cast<const sockaddr*>(&target_.storage);
    if (!from.valid() || connect(to.get(), address, target_.bytes) != 0) return;
    Connection& it = connections.emplace_back();
    it.fds = std::make_shared<Sides>(Sides{std::move(from), std::move(to)});
    it.link.send = [fds = it.fds](bool to_connector, const RelayedBytes& bytes) {
      SendAll((*fds)[to_connector ? 0 : 1].get(), bytes);
    };
  }

  void Pass(Connection& it, size_t side) {
    RelayedBytes bytes(1 << 16);
    const ssize_t got = recv((*it.fds)[side].get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got <= 0) {
      it.is_over = true;
      return;
    }
    bytes.resize(static_cast<size_t>(got));
    const size_t hello = std::min(bytes.size(), kHelloTotal[side] - it.seen[side]);
    it.seen[side] += hello;
    if (side == 0) it.hello.insert(it.hello.end(), bytes.begin(), bytes.begin() + ptrdiff_t(hello));
    SendAll((*it.fds)[1 - side].get(), {bytes.begin(), bytes.begin() + ptrdiff_t(hello)});
    bytes.erase(bytes.begin(), bytes.begin() + ptrdiff_t(hello));
    if (bytes.empty()) return;
    ByteReader reader(std::span<const std::byte>(it.hello).subspan(kPrefixBytes));
    it.link.purpose = static_cast<LinkPurpose>(reader.Get<uint32_t>());
    it.link.from = reader.Get<uint32_t>();
    it.link.to = reader.Get<uint32_t>();
    it.link.lane = LaneOf(reader.Get<uint32_t>()).value();
    attack_(it.link, side == 1, bytes);
    SendAll((*it.fds)[1 - side].get(), bytes);
  }

  const Attack attack_;
  FileDescriptor listener_;
  uint16_t port_ = 0;
  TcpAddress target_;
  std::atomic<bool> is_ending_ = false;
  std::thread thread_;
};

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_TCP_RELAY_H_
