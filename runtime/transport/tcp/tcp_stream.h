// SPDX-License-Identifier: Apache-2.0
//
// TcpStream: the bytes of one connection, each way, sealed or not, or through memory instead, and
// as a hook lets them pass.
#ifndef PREPOST_RUNTIME_TRANSPORT_TCP_TCP_STREAM_H_
#define PREPOST_RUNTIME_TRANSPORT_TCP_TCP_STREAM_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "ir/base/status.h"
#include "ir/ids.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/transport/sealing/sealed_stream.h"
#include "runtime/transport/shm/shm_stream.h"
#include "runtime/transport/tcp/tcp_hook.h"
#include "runtime/transport/tcp/tcp_wire.h"

namespace prepost {

class TcpStream {
 public:
  TcpStream() = default;
  explicit TcpStream(FileDescriptor fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  /// Before anything is moved: all that is.
  void Seal(std::unique_ptr<SealedStream> sealed) { sealed_ = std::move(sealed); }
  bool is_sealed() const { return sealed_ != nullptr; }
  /// Before anything is moved: bytes go through `memory` instead of the socket, and are not sealed.
  void Use(std::unique_ptr<ShmStream> memory) { memory_ = std::move(memory); }
  /// Null: they go over the socket.
  ShmStream* memory() const { return memory_.get(); }

  /// As SendSome() or ReceiveSome(), but of `memory`, whose lengths it may change, no more than
  /// `hook` (null: nobody) lets pass on `way`, which says which of the two it is. Sealed, what was
  /// moved may wait for Flush().
  Io Move(const TcpWay& way, std::span<iovec> memory, TcpHook* hook);
  /// As SealedStream::Flush().
  Io Flush();
  bool has_unsent() const { return sealed_ != nullptr && sealed_->has_unsent(); }
  /// What was read of the socket and is not handed out.
  size_t received() const { return sealed_ == nullptr ? 0 : sealed_->received(); }

  /// Of the socket, in all; not of memory.
  uint64_t written() const { return sealed_ == nullptr ? written_ : sealed_->wire_written(); }
  uint64_t read() const { return sealed_ == nullptr ? read_ : sealed_->wire_read(); }

 private:
  FileDescriptor fd_;
  std::unique_ptr<SealedStream> sealed_;  ///< null: nothing is
  std::unique_ptr<ShmStream> memory_;
  uint64_t written_ = 0;
  uint64_t read_ = 0;
};

/// What an endpoint of `node` says of `io` with `peer`, when it wanted to `verb` ("send to"). Of
/// kBadMemory: that of `block` at `node`. Ok where there is nothing to say.
Status StatusOf(const Io& io, NodeId node, NodeId peer, const char* verb, uint32_t block);
/// The same of kBadMemory where it is the memory at `holder`, one of the two.
Status MemoryGone(NodeId node, NodeId peer, const char* verb, uint32_t block, NodeId holder);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRANSPORT_TCP_TCP_STREAM_H_
