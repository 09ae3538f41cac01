// SPDX-License-Identifier: Apache-2.0
//
// The short messages' lane of a member between a parent and a child that say anything, in any
// pieces. What it takes for messages is what the stream says, the child gets the stream as it is
// and nothing from a header on that is none, and no report makes it believe what was not sent.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/base/little_endian.h"
#include "runtime/session/eager_lane.h"

using prepost::EagerLane;
using prepost::FileDescriptor;
using prepost::NodeId;
using prepost::TcpSocket;

namespace {

constexpr size_t kHeaderBytes = 8;

std::pair<FileDescriptor, FileDescriptor> Pair() {
  std::array<int, 2> ends = {-1, -1};
  PREPOST_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

/// What a stream says, by itself.
class Reference {
 public:
  void Add(std::span<const std::byte> bytes) {
    std::ranges::copy(bytes, std::back_inserter(stream_));
    while (!is_broken_ && next_ + kHeaderBytes <= stream_.size()) {
      const auto [number, length] = HeaderAt(next_);
      is_broken_ =
          length > prepost::kEagerBytesMax || (last_ && static_cast<int32_t>(number - *last_) <= 0);
      if (is_broken_) return;
      last_ = number;
      next_ += kHeaderBytes + length;
    }
  }
  /// The message behind those that were taken, if all of it is there.
  std::optional<std::span<const std::byte>> Take(uint32_t number) {
    PREPOST_CHECK(taken_ + kHeaderBytes <= stream_.size());
    const auto [found, length] = HeaderAt(taken_);
    PREPOST_CHECK(found == number);
    PREPOST_CHECK(taken_ + kHeaderBytes + length <= std::min(next_, stream_.size()));
    const auto message = std::span(stream_).subspan(taken_ + kHeaderBytes, length);
    taken_ += kHeaderBytes + length;
    return message;
  }
  /// Whether `passed` is the stream's beginning, up to a header that is none at most.
  bool MayPass(std::span<const std::byte> passed) const {
    return passed.size() <= std::min(next_, stream_.size()) &&
           std::ranges::equal(passed, std::span(stream_).first(passed.size()));
  }

 private:
  /// A message's number and length.
  std::pair<uint32_t, uint32_t> HeaderAt(size_t place) const {
    const std::span<const std::byte> bytes(stream_);
    prepost::ByteReader reader{bytes.subspan(place, kHeaderBytes)};
    const auto number = reader.Get<uint32_t>();
    return {number, reader.Get<uint32_t>()};
  }

  std::vector<std::byte> stream_;
  size_t next_ = 0, taken_ = 0;  ///< headers
  std::optional<uint32_t> last_;
  bool is_broken_ = false;
};

/// Without waiting; fewer where there is no room.
size_t Say(const FileDescriptor& to, std::span<const std::byte> bytes) {
  const ssize_t sent = send(to.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent < 0 ? 0 : static_cast<size_t>(sent);
}

}  // namespace

// Steps of two bytes, what (2 bits) and how much; what is said follows.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const FileDescriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  auto [parent, up] = Pair();
  auto [child, down] = Pair();
  std::vector<TcpSocket> sockets;
  sockets.push_back({.peer = NodeId(0), .fd = std::move(up)});
  sockets.push_back({.peer = NodeId(2), .fd = std::move(down)});
  auto made = EagerLane::Make(
      {.self = NodeId(1), .parent = NodeId(0), .counts_messages = true, .epoll = epoll.get()},
      std::move(sockets));
  PREPOST_CHECK(made.ok());
  EagerLane& lane = **made;
  Reference reference;
  std::vector<std::byte> passed;
  uint64_t taken = 0;
  std::span<const std::byte> rest = std::as_bytes(std::span(data, size));
  bool is_over = false;
  while (rest.size() >= 2 && !is_over) {
    const auto step = std::to_integer<uint32_t>(rest[0]);
    const size_t wanted = (std::to_integer<size_t>(rest[1]) + 1) << (step >> 2 & 3);
    rest = rest.subspan(2);
    const auto piece = rest.first(std::min(rest.size(), wanted));
    switch (step & 3) {
      case 0: {
        const size_t said = Say(parent, piece);
        reference.Add(piece.first(said));
        rest = rest.subspan(said);
        break;
      }
      case 1:
        rest = rest.subspan(Say(child, piece));
        break;
      case 2: {
        const std::optional<EagerLane::Front> front = lane.front();
        if (!front || !front->is_whole) break;
        std::vector<std::byte> message(front->bytes);
        lane.Take(message);
        PREPOST_CHECK(std::ranges::equal(message, *reference.Take(front->number)));
        lane.set_have(++taken);
        break;
      }
      default: {
        std::array<std::byte, 4096> bytes;
        const ssize_t got = recv(child.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (got > 0) std::copy_n(bytes.begin(), got, std::back_inserter(passed));
        PREPOST_CHECK(reference.MayPass(passed));
      }
    }
    for (const size_t link : {size_t{0}, size_t{1}}) lane.Hear(link, EPOLLIN | EPOLLOUT);
    is_over = !lane.Service().ok();
    static_cast<void>(lane.Tick(std::chrono::milliseconds(1000)));
  }
  return 0;
}
