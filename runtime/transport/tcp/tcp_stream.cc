// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp_stream.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>

namespace prepost {

Io TcpStream::Move(const TcpWay& way, std::span<iovec> memory, TcpHook* hook) {
  if (hook != nullptr) {
    size_t left = hook->Limit(way, BytesOf(memory));
    if (left == 0) return {.outcome = Io::Outcome::kHeld};
    if (left == TcpHook::kCut) shutdown(fd_.get(), SHUT_RDWR);
    for (iovec& part : memory) {
      part.iov_len = std::min(part.iov_len, left);
      left -= part.iov_len;
    }
  }
  if (memory_ != nullptr) return way.is_send ? memory_->Write(memory) : memory_->Read(memory);
  if (sealed_ != nullptr)
    return way.is_send ? sealed_->Send(fd_.get(), memory) : sealed_->Receive(fd_.get(), memory);
  const Io io = way.is_send ? SendSome(fd_.get(), memory) : ReceiveSome(fd_.get(), memory);
  if (io.outcome == Io::Outcome::kMoved) (way.is_send ? written_ : read_) += io.bytes;
  return io;
}

Io TcpStream::Flush() { return sealed_->Flush(fd_.get()); }

Status StatusOf(const Io& io, NodeId node, NodeId peer, const char* verb, uint32_t block) {
  const auto what = [&] {  // made only for an error: most calls find that there is none
    return fmt::format("node {} cannot {} node {}", node.value, verb, peer.value);
  };
  switch (io.outcome) {
    case Io::Outcome::kMoved:
    case Io::Outcome::kWouldBlock:
    case Io::Outcome::kHeld:
      return {};
    case Io::Outcome::kPeerGone:
      return Rejected(
          fmt::format("node {} lost its connection to node {}", node.value, peer.value));
    case Io::Outcome::kForged:
      return Rejected(NotAuthentic(node, peer));
    case Io::Outcome::kBadMemory:
      return MemoryGone(node, peer, verb, block, node);
    case Io::Outcome::kFailed:
      return SystemError(StatusCode::kRejected, what(), io.error);
  }
  PREPOST_CHECK(false);
  return {};
}

Status MemoryGone(NodeId node, NodeId peer, const char* verb, uint32_t block, NodeId holder) {
  return Rejected(fmt::format(
      "node {} cannot {} node {}: the memory of block {} at node {} is gone; is the disk "
      "of its file full, or was it truncated meanwhile?",
      node.value, verb, peer.value, block, holder.value));
}

}  // namespace prepost
