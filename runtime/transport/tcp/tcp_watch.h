// SPDX-License-Identifier: Apache-2.0
//
// TcpWatch: notices that a connection is cut without a word: that its other end does not
// acknowledge anything any more. Endpoints and the keeper of a session's groups use it. By itself
// the kernel takes a quarter of an hour.
#ifndef PREPOST_RUNTIME_TRANSPORT_TCP_TCP_WATCH_H_
#define PREPOST_RUNTIME_TRANSPORT_TCP_TCP_WATCH_H_

#include <chrono>
#include <optional>

namespace prepost {

/// Of one connection.
class TcpWatch {
 public:
  /// Whether something has waited for an acknowledgement for `silence`, in spite of being sent
  /// again: bytes, or the kernel's questions whether a peer without room has some, or is there
  /// (keepalive). To be asked several times in that time.
  bool IsSilent(int fd, std::chrono::milliseconds silence);
  /// As of the last of these calls: how long ago the other end has acknowledged anything.
  std::chrono::milliseconds since_answer() const { return since_answer_; }

 private:
  std::optional<std::chrono::steady_clock::time_point> since_;  ///< none: nothing waits
  std::chrono::milliseconds since_answer_{0};
};

/// How long the kernel waits, at most, before it sends bytes again that were not acknowledged, of a
/// connection that is given up after about `failure_max`: since Linux 6.15, and two seconds at
/// least. By itself it doubles the time with every try, and so finds out that a link is back after
/// twice as long as it was away. It gives a connection up itself after some 13 of these.
void BoundRetries(int fd, std::chrono::milliseconds failure_max);

/// Whether nothing waits for an acknowledgement.
bool IsTcpAcknowledged(int fd);

/// When the kernel asks whether the other end is there: after `idle` without a packet, then every
/// `interval`; after `count` questions without an answer it gives the connection up. Whole seconds,
/// at least one.
struct KeepAliveTimes {
  std::chrono::milliseconds idle{0};
  std::chrono::milliseconds interval{0};
  int count = 0;
};
/// Where it does not help it does no harm.
void KeepAlive(int fd, const KeepAliveTimes& times);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRANSPORT_TCP_TCP_WATCH_H_
