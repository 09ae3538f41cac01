// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp_path.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <fstream>

#include "ir/json/rate_text.h"

namespace prepost {
namespace {

/// What can be asked for, bytes/s. With less, a packet would take so long that a peer seems gone.
constexpr double kPaceMin = 1e5;
constexpr double kPaceMax = 1e15;
/// Bytes that all streams together have and have not sent, and each of them at least: too much, and
/// what was dealt to a stream that is late is late for all.
constexpr int kAllUnsentMax = 256 << 10;
constexpr int kUnsentMin = 32 << 10;

/// "reno cubic".
std::string CongestionControls() {
  std::ifstream file("/proc/sys/net/ipv4/tcp_available_congestion_control");
  std::string line;
  std::getline(file, line);
  return line;
}

bool SetCongestion(int fd, const std::string& name) {
  return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                    static_cast<socklen_t>(name.size())) == 0;
}

Status NotSet(const char* what) {
  return SystemError(StatusCode::kEnvironment, fmt::format("cannot connect nodes: {}", what),
                     errno);
}

bool SetPace(int fd, double rate) {
  const auto pace = static_cast<unsigned long>(rate);  // NOLINT: the kernel's type
  return setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &pace, sizeof(pace)) == 0;
}

/// The most that a buffer of TCP may grow to, bytes; 0: not known.
uint64_t BufferMax(const char* setting) {
  std::ifstream file(fmt::format("/proc/sys/net/ipv4/{}", setting));
  uint64_t least = 0, first = 0, most = 0;
  return file >> least >> first >> most ? most : 0;
}

}  // namespace

Status CheckPathOptions(const PathOptions& options) {
  if (options.streams > kStreamsMax) {
    return UsageError(
        fmt::format("{} streams: a connection has 1 to {}, or 0 for as many as suit it",
                    options.streams, kStreamsMax));
  }
  const bool is_pace = options.pace == 0 || (options.pace >= kPaceMin && options.pace <= kPaceMax);
  if (!is_pace) {
    return UsageError(fmt::format("a pace of {:g} bytes/s: it is from {} to {}", options.pace,
                                  WriteRate(kPaceMin), WriteRate(kPaceMax)));
  }
  if (options.congestion.empty()) return {};
  const auto fd =
      FileDescriptor::Open([] { return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); });
  if (!fd.valid()) return NotSet("socket");
  if (SetCongestion(fd.get(), options.congestion)) return {};
  if (errno == EPERM) {
    return UsageError(fmt::format(
        "congestion control {} is for root alone (net.ipv4.tcp_allowed_congestion_control)",
        options.congestion));
  }
  return UsageError(fmt::format("there is no congestion control '{}' here; there is {}",
                                options.congestion.substr(0, 40), CongestionControls()));
}

namespace {

/// TCP_INFO, of whose newer fields glibc knows nothing; 0 where the kernel does not either.
struct TcpInfo {
  std::array<std::byte, 192> bytes = {};
  size_t size = 0;

  explicit TcpInfo(int fd) {
    auto filled = static_cast<socklen_t>(bytes.size());
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, bytes.data(), &filled) == 0) size = filled;
  }
  template <typename Integer>
  Integer At(size_t offset) const {
    Integer value = 0;
    if (offset + sizeof(value) <= size) std::memcpy(&value, bytes.data() + offset, sizeof(value));
    return value;
  }
};

}  // namespace

std::chrono::microseconds RoundTripOf(int fd) {
  constexpr size_t kLeastAt = 148;  // tcpi_min_rtt, since Linux 4.6
  const TcpInfo info(fd);
  const auto now = info.At<uint32_t>(offsetof(tcp_info, tcpi_rtt));
  const auto least = info.At<uint32_t>(kLeastAt);
  const bool is_known = least != 0 && least != UINT32_MAX;
  return std::chrono::microseconds(is_known ? std::min(least, now) : now);
}

TcpUse UseOf(int fd) {
  constexpr size_t kAcknowledgedAt = 120;  // tcpi_bytes_acked
  constexpr size_t kBusyAt = 168;          // tcpi_busy_time, of which:
  constexpr size_t kNoRoomAt = 176;        // tcpi_rwnd_limited
  const TcpInfo info(fd);
  return {
      .acknowledged_bytes = info.At<uint64_t>(kAcknowledgedAt),
      .busy = std::chrono::microseconds(info.At<uint64_t>(kBusyAt) - info.At<uint64_t>(kNoRoomAt))};
}

uint16_t StreamsOf(const PathOptions& options, int fd) {
  if (RoundTripOf(fd) < options.long_path) return 1;
  const double wanted = options.streams == 0 ? kLongStreams : options.streams;
  const double paced = options.pace > 0 ? std::floor(options.pace / kPaceMin) : wanted;
  return static_cast<uint16_t>(std::clamp(paced, 1.0, wanted));
}

std::string NoteOfBuffers(std::chrono::microseconds round_trip, uint16_t streams, double pace) {
  constexpr double kUsualPace = 1e9 / 8;
  constexpr double kBookkeeping = 2;  // of a buffer, about half is the kernel's own
  const double rate = pace > 0 ? pace : kUsualPace;
  const double seconds = std::chrono::duration<double>(round_trip).count();
  const double needed = kBookkeeping * rate * seconds / streams;
  std::string settings;
  double allowed = rate;
  for (const char* const setting : {"tcp_rmem", "tcp_wmem"}) {
    const auto most = static_cast<double>(BufferMax(setting));
    if (most == 0 || most >= needed) continue;
    allowed = std::min(allowed, most * streams / kBookkeeping / seconds);
    settings += fmt::format("{}net.ipv4.{} of {:.0f}", settings.empty() ? "" : " and ", setting,
                            std::ceil(needed));
  }
  if (settings.empty()) return "";
  return fmt::format("buffers allow {} of {}; it takes a last number in {}", WriteRate(allowed),
                     WriteRate(rate), settings);
}

Status ShapeStream(int fd, uint16_t streams, const PathOptions& options) {
  if (streams > 1) {
    const int unsent = std::max(kAllUnsentMax / streams, kUnsentMin);
    if (setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent)) != 0)
      return NotSet("TCP_NOTSENT_LOWAT");
  }
  // TCP paces by itself, without a queueing discipline that does.
  if (options.pace > 0 && !SetPace(fd, options.pace / streams)) return NotSet("SO_MAX_PACING_RATE");
  if (!options.congestion.empty() && !SetCongestion(fd, options.congestion))
    return NotSet("TCP_CONGESTION");
  return {};
}

}  // namespace prepost
