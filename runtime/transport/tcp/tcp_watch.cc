// SPDX-License-Identifier: Apache-2.0
//
// The kernel sends bytes again after 200 ms (or more, where a round trip takes its time), 600 ms,
// 1.4 s and so on. After a long pause the last acknowledgement is old, which says nothing: so the
// silence is counted from when something was first seen to wait.
#include "runtime/transport/tcp/tcp_watch.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>

namespace prepost {
namespace {

using std::chrono::milliseconds;

/// A few packets may be lost in a row. In less time there is no second try.
constexpr int kTriesMin = 2;
constexpr milliseconds kTriesTime{600};
/// The kernel's limit.
constexpr std::chrono::seconds::rep kSecondsMax = 32767;

}  // namespace

bool TcpWatch::IsSilent(int fd, milliseconds silence) {
  tcp_info info = {};
  socklen_t bytes = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return false;
  since_answer_ = milliseconds(info.tcpi_last_ack_recv);
  if (info.tcpi_unacked == 0 && info.tcpi_probes == 0) {
    since_.reset();
    return false;
  }
  const auto now = std::chrono::steady_clock::now();
  if (!since_ || now - milliseconds(info.tcpi_last_ack_recv) > *since_) since_ = now;
  const int tries = std::max(info.tcpi_retransmits, info.tcpi_probes);
  return now - *since_ >= silence && tries >= (silence < kTriesTime ? 1 : kTriesMin);
}

void BoundRetries(int fd, milliseconds failure_max) {
  constexpr int kRtoMaxOption = 44;  // TCP_RTO_MAX_MS
  constexpr milliseconds kLeast{2000}, kMost{120'000};
  const auto most = static_cast<int>(std::clamp(failure_max / 8, kLeast, kMost).count());
  setsockopt(fd, IPPROTO_TCP, kRtoMaxOption, &most, sizeof(most));
}

bool IsTcpAcknowledged(int fd) {
  int bytes = 0;  // sent or not
  return ioctl(fd, SIOCOUTQ, &bytes) != 0 || bytes == 0;
}

void KeepAlive(int fd, const KeepAliveTimes& times) {
  const auto seconds = [](milliseconds time) {
    const auto whole = std::chrono::ceil<std::chrono::seconds>(time).count();
    return static_cast<int>(std::clamp<std::chrono::seconds::rep>(whole, 1, kSecondsMax));
  };
  const int on = 1, idle_s = seconds(times.idle), interval_s = seconds(times.interval);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times.count, sizeof(times.count));
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

}  // namespace prepost
