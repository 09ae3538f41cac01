// SPDX-License-Identifier: Apache-2.0
//
// On the wire a record is its length, 4 bytes, little-endian, and its bytes. Everyone writes first;
// a record is far smaller than what a link takes.
#include "runtime/device/peer_exchange.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "runtime/base/file_descriptor.h"
#include "runtime/base/little_endian.h"

namespace prepost {
namespace {

constexpr size_t kLengthBytes = 4;
/// For the word of whoever knows why a peer is gone, which a checkpoint brings.
constexpr std::chrono::milliseconds kWordMax{500};

/// One peer: what is sent to it, and what has come from it so far.
struct OneExchange {
  PeerRecord* record;
  std::vector<std::byte> out;
  size_t written = 0;
  std::vector<std::byte> in = std::vector<std::byte>(kLengthBytes);
  size_t read = 0;
  bool has_length = false;

  bool is_read() const { return has_length && read == in.size(); }
  bool is_done() const { return written == out.size() && is_read(); }
};

class Exchange {
 public:
  Exchange(const RecordExchange& exchange, std::span<PeerRecord> records) : exchange_(exchange) {
    for (PeerRecord& record : records) {
      OneExchange& talk = talks_.emplace_back();
      talk.record = &record;
      talk.out.resize(kLengthBytes);
      ByteWriter(talk.out).Put(static_cast<uint32_t>(record.sent.size()));
      talk.out.insert(talk.out.end(), record.sent.begin(), record.sent.end());
    }
  }

  Status Run() {
    const auto due = std::chrono::steady_clock::now() + exchange_.answer_max;
    for (const OneExchange& talk : talks_) {
      if (!exchange_.links.Has(talk.record->peer))
        return Lost(talk, "there is no connection with it");
    }
    while (!std::ranges::all_of(talks_, &OneExchange::is_done)) {
      if (std::chrono::steady_clock::now() >= due) {
        return Lost(*std::ranges::find(talks_, false, &OneExchange::is_done), "no answer");
      }
      PREPOST_RETURN_IF_ERROR(WaitForPeers());
      PREPOST_RETURN_IF_ERROR(Check(exchange_.checkpoint));
      for (OneExchange& talk : talks_) {
        const Status status = Talk(talk);
        if (!status.ok()) return CauseOf(status);
      }
    }
    for (OneExchange& talk : talks_) talk.record->received = std::move(talk.in);
    return {};
  }

 private:
  Status Lost(const OneExchange& talk, const std::string& why) const {
    return NotLearned(exchange_, talk.record->peer, why);
  }

  /// A connection that is lost is most often a consequence.
  Status CauseOf(const Status& lost) const {
    const auto due = std::chrono::steady_clock::now() + kWordMax;
    while (exchange_.checkpoint && std::chrono::steady_clock::now() < due) {
      PREPOST_RETURN_IF_ERROR(exchange_.checkpoint());
      poll(nullptr, 0, /*timeout=*/10);
    }
    return lost;
  }

  Status WaitForPeers() const {
    std::vector<pollfd> polls;
    for (const OneExchange& talk : talks_) {
      if (talk.is_done()) continue;
      const int events =
          (talk.written < talk.out.size() ? POLLOUT : 0) | (talk.is_read() ? 0 : POLLIN);
      polls.push_back({.fd = exchange_.links.File(talk.record->peer),
                       .events = static_cast<short>(events),
                       .revents = 0});
    }
    const int wait = static_cast<int>(exchange_.interval.count());
    if (poll(polls.data(), polls.size(), wait) >= 0 || errno == EINTR) return {};
    return SystemError(StatusCode::kEnvironment, "cannot wait for peers", errno);
  }

  Status Talk(OneExchange& talk) const {
    const NodeId peer = talk.record->peer;
    if (talk.written < talk.out.size()) {
      const Result<size_t> sent =
          exchange_.links.Send(peer, std::span(talk.out).subspan(talk.written));
      if (!sent.ok()) return Lost(talk, sent.status().message());
      talk.written += *sent;
    }
    while (!talk.is_read()) {
      const Result<size_t> got =
          exchange_.links.Receive(peer, std::span(talk.in).subspan(talk.read));
      if (!got.ok()) return Lost(talk, got.status().message());
      if (*got == 0) break;
      talk.read += *got;
      if (talk.has_length || talk.read < kLengthBytes) continue;
      const auto bytes = ByteReader(talk.in).Get<uint32_t>();
      if (bytes > exchange_.bytes_max)
        return Lost(talk, fmt::format("it sends {} bytes, expected at most {}", bytes,
                                      exchange_.bytes_max));
      talk.has_length = true;
      talk.in.resize(bytes);
      talk.read = 0;
    }
    return {};
  }

  const RecordExchange& exchange_;
  std::vector<OneExchange> talks_;
};

}  // namespace

Status NotLearned(const RecordExchange& exchange, NodeId peer, const std::string& why) {
  return Rejected(fmt::format("node {} cannot learn the {} of node {}: {}", exchange.node.value,
                              exchange.what, peer.value, why));
}

Status ExchangeRecords(const RecordExchange& exchange, std::span<PeerRecord> records) {
  return Exchange(exchange, records).Run();
}

}  // namespace prepost
