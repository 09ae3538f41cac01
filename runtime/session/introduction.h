// SPDX-License-Identifier: Apache-2.0
//
// Introduction: what two members say to each other first on a new connection, to find out whether
// they are processes of one machine that may read each other's memory. Then blocks are copied from
// memory to memory (tcp_endpoint.h); otherwise nothing changes.
#ifndef PREPOST_RUNTIME_SESSION_INTRODUCTION_H_
#define PREPOST_RUNTIME_SESSION_INTRODUCTION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/transport/life_sign.h"
#include "runtime/transport/tcp_mesh.h"

namespace prepost {

/// Both sides say who they are, read each other's sign of life (life_sign.h), and say whether that
/// worked:
///
///     card     machine 16 | process namespace 8 | process 8 | sign's address 8 | sign 16
///     verdict  1: I read your sign, 0: I do not
///
/// The sign stays where it is for as long as the other side may copy blocks. Integers are
/// little-endian. A card of zeros wants nothing to be read. Used by one thread.
class Introduction {
 public:
  enum class State : uint8_t { kTalking, kDone, kGone };

  /// `socket` must outlive it and carries nothing else until kDone. `is_wanted`: whether memory is
  /// to be read.
  Introduction(const TcpSocket& socket, bool is_wanted);

  /// Goes on, without waiting.
  State Step();
  /// kDone: what came of it.
  const LocalPeer& local() const { return local_; }
  /// kDone: to be kept while blocks may be copied from this process; null: none are.
  std::unique_ptr<const LifeSign> TakeSign() { return local_.is_read ? std::move(sign_) : nullptr; }

 private:
  static constexpr size_t kCardBytes = 56;
  using Card = std::array<std::byte, kCardBytes>;

  void Judge();
  bool Send();

  const TcpSocket& socket_;
  std::unique_ptr<const LifeSign> sign_;  ///< stands where the card says
  Card own_ = {};
  std::array<std::byte, kCardBytes + 1> out_ = {};
  size_t out_bytes_ = kCardBytes;  ///< of `out_` that may be sent
  size_t sent_bytes_ = 0;
  std::array<std::byte, kCardBytes + 1> in_ = {};
  size_t in_bytes_ = 0;
  LocalPeer local_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_SESSION_INTRODUCTION_H_
