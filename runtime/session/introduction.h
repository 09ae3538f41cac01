// SPDX-License-Identifier: Apache-2.0
//
// Introduction: what two members say to each other first on a new connection, to find out whether
// they are processes of one machine that may read each other's memory. Then blocks are copied from
// memory to memory (tcp_endpoint.h), or go through memory that both map: blocks (block_stage.h) and
// streams of bytes (shm_stream.h). Otherwise nothing changes.
#ifndef PREPOST_RUNTIME_SESSION_INTRODUCTION_H_
#define PREPOST_RUNTIME_SESSION_INTRODUCTION_H_

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/group/group_key.h"
#include "runtime/transport/memory_window.h"
#include "runtime/transport/shm/block_stage.h"
#include "runtime/transport/shm/shm_stream.h"
#include "runtime/transport/tcp/tcp_mesh.h"

namespace prepost {

/// What a member hands over to a peer of its machine.
struct OwnMemory {
  /// What bytes are to go through instead of the connection, at both ends or at none; null:
  /// nothing.
  std::unique_ptr<ShmStream> stream = nullptr;
  /// Where blocks are for peers that can map it; null: nowhere.
  std::shared_ptr<BlockStage> stage = nullptr;
};

/// Three messages each way, the second and third only between processes of one machine and network
/// namespace that both want it:
///
///     card     where 16 | process 8 | name 8 | window's address 8 | nonce 32 | MAC 32
///     ready    1: the window has its sign                           1 | MAC 32
///     verdict  bits: I read your memory, I have mapped your stream, and your stage   1 | MAC 32
///
/// MACs are with the connection's own key (HelloSide::LinkKey()), over which message it is, which
/// end sends it, both nonces as far as they are known, and its contents. `where` is a MAC of what
/// tells machines and namespaces apart, zeros: nothing is to be read. `name` is that of a socket in
/// the kernel's namespace of names (AF_UNIX, abstract), to which the other end connects before it
/// is ready, and sends one more MAC, with the files of its stream's memory and of its stage's, if
/// there are such.
/// Integers are little-endian. Used by one thread.
class Introduction {
 public:
  enum class State : uint8_t {
    kTalking,
    kDone,
    kGone,   ///< the connection has ended
    kForged  ///< what came is not from the member at the other end of the hello
  };

  /// `socket`, which has a key, must outlive it and carries nothing else until kDone. `is_wanted`:
  /// whether memory is to be read.
  Introduction(const TcpSocket& socket, bool is_wanted, OwnMemory own = {});

  /// Goes on, without waiting.
  State Step();
  /// Whether anything has come from the peer.
  bool has_heard() const { return in_bytes_ > 0; }
  /// kDone: what came of it.
  const LocalPeer& local() const { return local_; }
  /// kDone: to be kept while blocks may be copied from this process; null: none are.
  std::unique_ptr<MemoryWindow> TakeWindow() {
    return local_.is_read ? std::move(window_) : nullptr;
  }
  /// kDone: joined at both ends; null: bytes go over the connection.
  std::unique_ptr<ShmStream> TakeStream() {
    return has_mapped_ && is_mapped_ ? std::move(own_.stream) : nullptr;
  }
  /// kDone: this end's, which the peer has mapped; null: it has not.
  std::shared_ptr<BlockStage> TakeStage() { return is_staged_ ? std::move(own_.stage) : nullptr; }
  /// kDone: the peer's; null: there is none.
  std::unique_ptr<PeerStage> TakePeerStage() { return std::move(peer_stage_); }

 private:
  static constexpr size_t kCardSaidBytes = 72;
  static constexpr size_t kCardBytes = kCardSaidBytes + sizeof(MacBytes);
  static constexpr size_t kFlagBytes = 1 + sizeof(MacBytes);
  static constexpr size_t kAllBytes = kCardBytes + 2 * kFlagBytes;
  /// What MACs are of: messages, the proof to the socket of the card, and the sign of a window.
  enum class Message : uint8_t { kCard, kReady, kVerdict, kProof, kSign };

  /// A stream's and a stage's.
  using PeerFiles = std::array<FileDescriptor, 2>;

  size_t EndOf(Message message) const;
  std::vector<std::byte> Signed(Message message, bool is_own,
                                std::span<const std::byte> said) const;
  MacBytes MacOf(Message message, bool is_own, std::span<const std::byte> said) const;
  MemoryWindow::Sign SignOf(bool is_own) const;
  void Append(Message message, std::span<const std::byte> said);
  bool Take();
  bool TakeCard(std::span<const std::byte> said);
  void Call();
  std::optional<ucred> Caller();
  void MapPeerFiles();
  void Judge();
  bool Send();

  const TcpSocket& socket_;
  std::unique_ptr<MemoryWindow> window_;  ///< its place is that of the card
  FileDescriptor name_;                   ///< listens at the card's name
  FileDescriptor call_;                   ///< to the peer's
  FileDescriptor caller_;                 ///< the peer's, to this one's
  OwnMemory own_;
  PeerFiles peer_files_;                   ///< which came with its call
  bool has_mapped_ = false;                ///< this end has the peer's stream
  bool is_mapped_ = false;                 ///< the peer has this end's
  std::unique_ptr<PeerStage> peer_stage_;  ///< null: this end has not mapped it
  bool is_staged_ = false;                 ///< the peer has mapped this end's
  NonceBytes nonce_ = {};
  NonceBytes peer_nonce_ = {};
  std::array<std::byte, 16> where_ = {};
  std::string peer_name_;
  std::array<std::byte, kAllBytes> out_ = {};
  size_t out_bytes_ = 0;  ///< of `out_` that may be sent
  size_t sent_bytes_ = 0;
  std::array<std::byte, kAllBytes> in_ = {};
  size_t in_bytes_ = 0;
  Message awaited_ = Message::kCard;
  bool is_over_ = false;  ///< nothing more is to come
  LocalPeer local_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_SESSION_INTRODUCTION_H_
