// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp_wire.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "ir/base/count.h"

namespace prepost {
namespace {

static_assert(std::endian::native == std::endian::little, "records are little-endian");

Io Outcome(ssize_t moved) {
  if (moved > 0) return {.bytes = static_cast<size_t>(moved)};
  if (moved == 0) return {.outcome = Io::Outcome::kPeerGone};
  switch (errno) {
    case EAGAIN:
    case EINTR:
      return {.outcome = Io::Outcome::kWouldBlock};
    case EPIPE:
    case ECONNRESET:
    case ETIMEDOUT:
    case EHOSTUNREACH:  // what the kernel has given up may say why
    case ENETUNREACH:
      return {.outcome = Io::Outcome::kPeerGone};
    case EFAULT:
      return {.outcome = Io::Outcome::kBadMemory};
    default:
      return {.outcome = Io::Outcome::kFailed, .error = errno};
  }
}

msghdr MessageOf(std::span<iovec> memory) {
  msghdr message = {};
  message.msg_iov = memory.data();
  message.msg_iovlen = memory.size();
  return message;
}

}  // namespace

std::string Describe(const Record& record, NodeId a, NodeId b) {
  if (record.channel == kStartChannel) {
    return fmt::format("the start of message {}, {}", record.block, Count(record.bytes, "byte"));
  }
  if (IsCallStart(record.channel)) return fmt::format("the start of call {}", record.block);
  if (record.channel == kLifeChannel) return "a sign of life";
  const std::optional<Channel> channel = ChannelOfWire(record.channel, a, b);
  const std::string route = channel ? fmt::format("{}>{} lane {}", channel->from.value,
                                                  channel->to.value, NumberOf(channel->lane))
                                    : fmt::format("unknown channel {}", record.channel.value);
  const std::string what =
      record.block == kNoBlock ? "credit" : fmt::format("block {}", record.block);
  return fmt::format("{}, {}, {}", route, what, Count(record.bytes, "byte"));
}

std::string NotAuthentic(NodeId node, NodeId peer) {
  return fmt::format(
      "a record over the connection of node {} to node {} is not authentic: it was changed, lost "
      "or "
      "repeated on the way",
      node.value, peer.value);
}

std::optional<Channel> ChannelOfWire(ChannelId wire, NodeId a, NodeId b) {
  const std::optional<Lane> lane = LaneOf(wire.value / 2);
  if (!lane) return std::nullopt;
  const auto [low, high] = std::minmax(a, b);
  const bool is_down = wire.value % 2 == 1;
  return Channel{.from = is_down ? high : low, .to = is_down ? low : high, .lane = *lane};
}

void EncodeRecord(const Record& record, std::span<std::byte, kRecordBytes> out) {
  std::memcpy(out.data(), &record.channel.value, 4);
  std::memcpy(out.data() + 4, &record.block, 4);
  std::memcpy(out.data() + 8, &record.bytes, 8);
}

Record DecodeRecord(std::span<const std::byte, kRecordBytes> in) {
  Record record;
  std::memcpy(&record.channel.value, in.data(), 4);
  std::memcpy(&record.block, in.data() + 4, 4);
  std::memcpy(&record.bytes, in.data() + 8, 8);
  return record;
}

size_t BytesOf(std::span<const iovec> memory) {
  size_t bytes = 0;
  for (const iovec& part : memory) bytes += part.iov_len;
  return bytes;
}

Io SendSome(int fd, std::span<iovec> memory) {
  const msghdr message = MessageOf(memory);
  return Outcome(sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT));
}

Io ReceiveSome(int fd, std::span<iovec> memory) {
  msghdr message = MessageOf(memory);
  return Outcome(recvmsg(fd, &message, MSG_DONTWAIT));
}

Io ReadSome(int process, std::span<const iovec> memory, std::span<const iovec> remote) {
  const ssize_t moved =
      process_vm_readv(process, memory.data(), memory.size(), remote.data(), remote.size(), 0);
  if (moved < 0 && errno == ESRCH) return {.outcome = Io::Outcome::kPeerGone};
  return moved == 0 ? Io{.outcome = Io::Outcome::kBadMemory} : Outcome(moved);
}

bool IsThere(const iovec& memory) {
  if (memory.iov_len == 0) return true;
  auto* const begin = static_cast<std::byte*>(memory.iov_base);
  std::array<std::byte, 2> found;
  const iovec to = {.iov_base = found.data(), .iov_len = found.size()};
  const std::array<iovec, 2> from = {
      {{.iov_base = begin, .iov_len = 1}, {.iov_base = begin + memory.iov_len - 1, .iov_len = 1}}};
  const Io io = ReadSome(getpid(), std::span(&to, 1), from);
  const bool is_cut = io.outcome == Io::Outcome::kMoved && io.bytes < found.size();
  return io.outcome != Io::Outcome::kBadMemory && !is_cut;
}

bool HasEnded(int fd) {
  pollfd end = {.fd = fd, .events = POLLRDHUP, .revents = 0};
  return poll(&end, 1, 0) > 0 && (end.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

Io PeekSome(int fd, std::span<iovec> memory) {
  msghdr message = MessageOf(memory);
  return Outcome(recvmsg(fd, &message, MSG_DONTWAIT | MSG_PEEK));
}

}  // namespace prepost
