// SPDX-License-Identifier: Apache-2.0
//
// The message, all words of 4 bytes big-endian:
//   "PPQP", version (1), number of QPs, the port's address (32 bytes), and per QP: lane, QPN
// QPs are in the order of lanes. Its size follows from the plan, which both sides have: the same
// QPs stand at both ends. Everyone writes first; a message is far smaller than what a socket takes.
#include "backends/nic/host/exchange.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace prepost::nic {
namespace {

constexpr uint32_t kMagic = 0x50505150;  // "PPQP"
constexpr uint32_t kVersion = 1;
constexpr size_t kWordBytes = 4;
constexpr size_t kHeadBytes = 3 * kWordBytes + PortAddress::kBytes;

/// One peer: what is sent to it, and what has come from it so far.
struct Conversation {
  NodeId peer;
  int fd = -1;
  std::vector<OpenQp> qps;
  std::vector<std::byte> out;
  size_t written = 0;
  std::vector<std::byte> in;
  size_t read = 0;

  bool is_done() const { return written == out.size() && read == in.size(); }
};

class Exchange {
 public:
  Exchange(const OpenNode& own, std::span<const TcpSocket> sockets) : own_(own) {
    for (const OpenQp& qp : own.qps) {
      if (talks_.empty() || talks_.back().peer != qp.peer) {
        Conversation& talk = talks_.emplace_back();
        talk.peer = qp.peer;
        const auto socket = std::ranges::find(sockets, qp.peer, &TcpSocket::peer);
        if (socket != sockets.end()) talk.fd = socket->fd.get();
      }
      talks_.back().qps.push_back(qp);
    }
    for (Conversation& talk : talks_) {
      talk.out = MessageTo(talk);
      talk.in.resize(talk.out.size());
    }
  }

  Status Run(const Checkpoint& checkpoint, std::chrono::milliseconds interval,
             std::chrono::milliseconds answer_max) {
    const auto due = std::chrono::steady_clock::now() + answer_max;
    for (const Conversation& talk : talks_) {
      if (talk.fd < 0) return Lost(talk, "there is no connection with it");
    }
    while (!std::ranges::all_of(talks_, &Conversation::is_done)) {
      if (std::chrono::steady_clock::now() >= due) {
        return Lost(*std::ranges::find(talks_, false, &Conversation::is_done), "no answer");
      }
      PREPOST_RETURN_IF_ERROR(WaitForSockets(interval));
      PREPOST_RETURN_IF_ERROR(Check(checkpoint));
      for (Conversation& talk : talks_) PREPOST_RETURN_IF_ERROR(Talk(talk));
    }
    for (const Conversation& talk : talks_) PREPOST_RETURN_IF_ERROR(Connect(talk));
    return {};
  }

 private:
  Status Lost(const Conversation& talk, const std::string& what) const {
    return Rejected(fmt::format("node {} cannot learn the queue pairs of node {}: {}",
                                own_.node.value, talk.peer.value, what));
  }

  std::vector<std::byte> MessageTo(const Conversation& talk) const {
    std::vector<std::byte> message(kHeadBytes + 2 * kWordBytes * talk.qps.size());
    std::byte* at = message.data();
    const auto put = [&at](uint32_t word) {
      StoreBigEndian(at, word);
      at += kWordBytes;
    };
    put(kMagic);
    put(kVersion);
    put(static_cast<uint32_t>(talk.qps.size()));
    const PortAddress address = own_.device->port_address();
    at = std::ranges::copy(address.bytes, at).out;
    for (const OpenQp& qp : talk.qps) {
      put(qp.lane);
      put(qp.qpn);
    }
    return message;
  }

  Status WaitForSockets(std::chrono::milliseconds max) const {
    std::vector<pollfd> polls;
    for (const Conversation& talk : talks_) {
      if (talk.is_done()) continue;
      const int events = (talk.written < talk.out.size() ? POLLOUT : 0) |
                         (talk.read < talk.in.size() ? POLLIN : 0);
      polls.push_back({.fd = talk.fd, .events = static_cast<short>(events), .revents = 0});
    }
    if (poll(polls.data(), polls.size(), static_cast<int>(max.count())) >= 0 || errno == EINTR)
      return {};
    return SystemError(StatusCode::kEnvironment, "cannot wait for peers", errno);
  }

  Status Talk(Conversation& talk) const {
    if (talk.written < talk.out.size()) {
      const ssize_t sent = send(talk.fd, talk.out.data() + talk.written,
                                talk.out.size() - talk.written, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN && errno != EINTR) return Lost(talk, std::strerror(errno));
      if (sent > 0) talk.written += static_cast<size_t>(sent);
    }
    if (talk.read < talk.in.size()) {
      const ssize_t got =
          recv(talk.fd, talk.in.data() + talk.read, talk.in.size() - talk.read, MSG_DONTWAIT);
      if (got == 0) return Lost(talk, "it closed the connection");
      if (got < 0 && errno != EAGAIN && errno != EINTR) return Lost(talk, std::strerror(errno));
      if (got > 0) talk.read += static_cast<size_t>(got);
    }
    return {};
  }

  Status Connect(const Conversation& talk) const {
    const std::byte* at = talk.in.data();
    const auto get = [&at] {
      const auto word = LoadBigEndian<uint32_t>(at);
      at += kWordBytes;
      return word;
    };
    if (get() != kMagic) return Lost(talk, "it does not play over a device");
    const uint32_t version = get();
    if (version != kVersion) return Lost(talk, fmt::format("it speaks version {}", version));
    const uint32_t count = get();
    if (count != talk.qps.size()) {
      return Lost(talk, fmt::format("it has {}, expected {}", count, talk.qps.size()));
    }
    PortAddress address;
    std::copy_n(at, PortAddress::kBytes, address.bytes.begin());
    at += PortAddress::kBytes;
    for (const OpenQp& qp : talk.qps) {
      const uint32_t lane = get();
      const uint32_t qpn = get();
      if (lane != qp.lane) {
        return Lost(talk, fmt::format("it has one on lane {}, expected lane {}", lane, qp.lane));
      }
      if (qpn > kNumberMask) return Lost(talk, fmt::format("{:#x} is no QPN", qpn));
      PREPOST_RETURN_IF_ERROR(own_.device->Connect(qp.qpn, {address, qpn}));
    }
    return {};
  }

  const OpenNode& own_;
  std::vector<Conversation> talks_;
};

}  // namespace

Status ExchangeAddresses(const OpenNode& own, std::span<const TcpSocket> sockets,
                         const Checkpoint& checkpoint, std::chrono::milliseconds interval,
                         std::chrono::milliseconds answer_max) {
  return Exchange(own, sockets).Run(checkpoint, interval, answer_max);
}

}  // namespace prepost::nic
