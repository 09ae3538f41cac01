// SPDX-License-Identifier: Apache-2.0
//
// How connections for blocks use the network between two machines. Over a long path one connection
// alone seldom fills it: it begins slowly, a lost packet halves it for many round trips, and what
// it may have under way is limited by the systems' buffers. So there it is made of several streams,
// sockets of their own that carry pieces of blocks side by side (tcp_endpoint.h).
#ifndef PREPOST_RUNTIME_TRANSPORT_TCP_TCP_PATH_H_
#define PREPOST_RUNTIME_TRANSPORT_TCP_TCP_PATH_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "ir/analysis/long_path.h"
#include "ir/base/status.h"
#include "prepost/prepost.h"
#include "runtime/base/file_descriptor.h"

namespace prepost {

/// The most streams that a connection can have.
inline constexpr uint16_t kStreamsMax = 16;

/// Whether numbers are in range, and this system has the congestion control and lets this process
/// use it. Errors: kUsage.
Status CheckPathOptions(const PathOptions& options);

/// The least that the kernel has seen of late, from the handshake on: no queues, no peer that takes
/// its time. 0: not known.
std::chrono::microseconds RoundTripOf(int fd);

/// What a connection has been used for, by the kernel's count.
struct TcpUse {
  uint64_t acknowledged_bytes = 0;
  /// Something was sent and not acknowledged, and the other end had room for more.
  std::chrono::microseconds busy{0};
};
/// All 0 where the kernel does not say (before Linux 4.10).
TcpUse UseOf(int fd);

/// Of how many streams the connection is to be, whose first one is the connected socket `fd`.
uint16_t StreamsOf(const PathOptions& options, int fd);

/// Where this system's buffers (net.ipv4.tcp_rmem, tcp_wmem) hold less than a path of `round_trip`
/// takes at `pace` bytes/s (0: at 1 Gbit/s) in `streams` streams: what they allow, and the setting
/// that would do. Empty: they hold it. The other end's are its own to say.
std::string NoteOfBuffers(std::chrono::microseconds round_trip, uint16_t streams, double pace);

/// Makes `fd` one of the `streams` streams of a connection for blocks. Errors: kEnvironment.
Status ShapeStream(int fd, uint16_t streams, const PathOptions& options);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRANSPORT_TCP_TCP_PATH_H_
