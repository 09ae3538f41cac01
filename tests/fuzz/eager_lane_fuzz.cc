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
    PREPOST_CHECK(taken_ + kHeaderBytes + length <= passable());
    const auto message = std::span(stream_).subspan(taken_ + kHeaderBytes, length);
    taken_ += kHeaderBytes + length;
    return message;
  }
  /// Whether `passed` is the stream's beginning, up to a header that is none at most.
  bool MayPass(std::span<const std::byte> passed) const {
    return passed.size() <= passable() &&
           std::ranges::equal(passed, std::span(stream_).first(passed.size()));
  }
  size_t passable() const { return std::min(next_, stream_.size()); }
  bool is_broken() const { return is_broken_; }

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

/// A lane of node 1, its ends, and what is known of them.
class Between {
 public:
  Between() {
    auto [parent, up] = Pair();
    auto [child, down] = Pair();
    parent_ = std::move(parent);
    child_ = std::move(child);
    std::vector<TcpSocket> sockets;
    sockets.push_back({.peer = NodeId(0), .fd = std::move(up)});
    sockets.push_back({.peer = NodeId(2), .fd = std::move(down)});
    static const FileDescriptor epoll(epoll_create1(EPOLL_CLOEXEC));
    auto made = EagerLane::Make(
        {.self = NodeId(1), .parent = NodeId(0), .counts_messages = true, .epoll = epoll.get()},
        std::move(sockets));
    PREPOST_CHECK(made.ok());
    lane_ = *std::move(made);
  }

  size_t SayAsParent(std::span<const std::byte> bytes) {
    const size_t said = Say(parent_, bytes);
    reference_.Add(bytes.first(said));
    return said;
  }
  size_t SayAsChild(std::span<const std::byte> bytes) { return Say(child_, bytes); }
  /// Whether there was one.
  bool Take() {
    const std::optional<EagerLane::Front> front = lane_->front();
    if (!front || !front->is_whole) return false;
    std::vector<std::byte> message(front->bytes);
    lane_->Take(message);
    PREPOST_CHECK(std::ranges::equal(message, *reference_.Take(front->number)));
    lane_->set_have(++taken_);
    return true;
  }
  /// At the child; whether there was something.
  bool Read() {
    std::array<std::byte, 4096> bytes;
    const ssize_t got = recv(child_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0) std::copy_n(bytes.begin(), got, std::back_inserter(passed_));
    PREPOST_CHECK(reference_.MayPass(passed_));
    return got > 0;
  }
  /// False: it is over.
  bool Serve() {
    for (const size_t link : {size_t{0}, size_t{1}}) lane_->Hear(link, EPOLLIN | EPOLLOUT);
    if (!lane_->Service().ok()) return false;
    static_cast<void>(lane_->Tick(std::chrono::milliseconds(1000)));
    return true;
  }
  /// Nothing more is said, and all is taken and read.
  void End() {
    bool has_moved = true;
    while (has_moved) {
      if (!Serve()) return;
      has_moved = Take();
      has_moved |= Read();
    }
    PREPOST_CHECK(!reference_.is_broken());
    PREPOST_CHECK(passed_.size() == reference_.passable());
  }

 private:
  FileDescriptor parent_, child_;
  std::unique_ptr<EagerLane> lane_;
  Reference reference_;
  std::vector<std::byte> passed_;
  uint64_t taken_ = 0;
};

}  // namespace

// Steps of two bytes: what (2 bits), how much is said, which follows (2 bits and a byte), and
// whether the parent says it a hundred times (1 bit), as it takes many bytes to fill a lane.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Between between;
  std::span<const std::byte> rest = std::as_bytes(std::span(data, size));
  bool is_on = true;
  while (rest.size() >= 2 && is_on) {
    const auto step = std::to_integer<uint32_t>(rest[0]);
    const size_t wanted = (std::to_integer<size_t>(rest[1]) + 1) << (step >> 2 & 3);
    rest = rest.subspan(2);
    const auto piece = rest.first(std::min(rest.size(), wanted));
    switch (step & 3) {
      case 0: {
        size_t said = between.SayAsParent(piece);
        for (int i = 1; (step & 16) != 0 && i < 100 && said == piece.size(); ++i)
          said = between.SayAsParent(piece);
        rest = rest.subspan(piece.size());
        break;
      }
      case 1:
        rest = rest.subspan(between.SayAsChild(piece));
        break;
      case 2:
        between.Take();
        break;
      default:
        between.Read();
    }
    is_on = between.Serve();
  }
  if (is_on) between.End();
  return 0;
}
