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

#include "runtime/transport/tcp_mesh.h"

namespace prepost {

/// Both sides say who they are, read each other's probe, and say whether that worked:
///
///     card     machine 16 | process namespace 8 | process 8 | probe's address 8 | probe 16
///     verdict  1: I read your probe, 0: I do not
///
/// Integers are little-endian. A card of zeros wants nothing to be read. Used by one thread.
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

 private:
  static constexpr size_t kCardBytes = 56;
  using Card = std::array<std::byte, kCardBytes>;
  using Probe = std::array<std::byte, 16>;

  void Judge();
  bool Send();

  const TcpSocket& socket_;
  const std::unique_ptr<const Probe> probe_;  ///< stands where the card says
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
