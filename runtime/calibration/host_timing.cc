// SPDX-License-Identifier: Apache-2.0
#include "runtime/calibration/host_timing.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <thread>
#include <vector>

#include "ir/json/rate_text.h"
#include "runtime/base/event_fd.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/base/mapping.h"
#include "runtime/base/statistics.h"
#include "runtime/base/thread.h"
#include "runtime/executor/combine_blocks.h"
#include "runtime/transport/tcp/tcp_address.h"

namespace prepost {
namespace {

constexpr size_t kCopyBytes = size_t{64} << 20;
constexpr uint32_t kCopies = 15;
constexpr uint32_t kWakeUps = 1000;
constexpr auto kSleepAtLeast = std::chrono::microseconds(200);
constexpr uint32_t kSystemCalls = 20000;
constexpr size_t kPieceBytes = 1 << 20;  // of a call, which then takes little of the time
constexpr uint64_t kSocketBytes = uint64_t{512} << 20;
/// A host's: log2 n peers of a binomial schedule, each with one for blocks and one for credits.
/// With more an empty poll takes no longer.
constexpr uint32_t kConnections = 16;
constexpr uint32_t kPollSamples = 1000;
constexpr uint32_t kPolls = 64;  // of each: asking for the time takes longer than one
/// Above these others are at work. An idle Linux machine has a load of a few hundredths, and takes
/// the core from a thread that computes a few times per second.
constexpr double kBusyLoad = 0.5;
constexpr double kBusySwitchesPerSecond = 20;

/// Two ends of a TCP connection over the loopback device.
struct Connection {
  FileDescriptor client;
  FileDescriptor server;
};

Status SocketError(const char* what) { return SystemError(StatusCode::kEnvironment, what, errno); }

Result<uint16_t> PortOf(int fd, bool of_peer) {
  sockaddr_in address = {};
  socklen_t bytes = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if ((of_peer ? getpeername(fd, generic, &bytes) : getsockname(fd, generic, &bytes)) != 0) {
    return SocketError("cannot ask a socket for its address");
  }
  return ntohs(address.sin_port);
}

Result<Connection> Connect() {
  std::optional<TcpAddress> address = NumericAddress("127.0.0.1");
  int error = 0;
  const FileDescriptor listener = Listen(*address, &error);
  if (!listener.valid()) return SystemError(StatusCode::kEnvironment, "cannot listen", error);
  const Result<uint16_t> port = PortOf(listener.get(), /*of_peer=*/false);
  if (!port.ok()) return port.status();
  *address = address->WithPort(*port);
  Connection made;
  made.client = FileDescriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!made.client.valid()) return SocketError("cannot make a socket");
  if (connect(made.client.get(), address->generic(), address->bytes) != 0) {
    return SocketError("cannot connect to this machine");
  }
  const Result<uint16_t> own = PortOf(made.client.get(), /*of_peer=*/false);
  if (!own.ok()) return own.status();
  // Strangers may have been faster; they are let go.
  for (;;) {
    made.server = FileDescriptor(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!made.server.valid()) {
      if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) continue;
      return SocketError("cannot accept a connection");
    }
    const Result<uint16_t> peer = PortOf(made.server.get(), /*of_peer=*/true);
    if (peer.ok() && *peer == *own) break;
  }
  const int on = 1;
  for (const int fd : {made.client.get(), made.server.get()}) {
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
      return SocketError("cannot set TCP_NODELAY");
    }
  }
  return made;
}

/// Seconds of a send or a receive of one byte, the mean of both.
Result<double> TimeSystemCalls(const Connection& connection) {
  std::vector<double> samples;
  char byte = 0;
  for (uint32_t i = 0; i < kSystemCalls; ++i) {
    const uint64_t start = ThreadCpuNs();
    if (send(connection.client.get(), &byte, 1, MSG_NOSIGNAL) != 1 ||
        recv(connection.server.get(), &byte, 1, 0) != 1) {
      return SocketError("a connection to this machine failed");
    }
    samples.push_back(static_cast<double>(ThreadCpuNs() - start));
  }
  return Summarise(std::move(samples)).median / 2 * 1e-9;
}

/// Seconds of what TcpEndpoint does for each part of a block that comes.
Result<double> TimeSegmentCalls(const Connection& connection) {
  const FileDescriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event = {.events = EPOLLIN | EPOLLET, .data = {}};
  if (!epoll.valid() ||
      epoll_ctl(epoll.get(), EPOLL_CTL_ADD, connection.server.get(), &event) != 0) {
    return SocketError("cannot watch a connection");
  }
  std::vector<double> samples;
  char byte = 0;
  for (uint32_t i = 0; i < kSystemCalls; ++i) {
    if (send(connection.client.get(), &byte, 1, MSG_NOSIGNAL) != 1) {
      return SocketError("a connection to this machine failed");
    }
    const uint64_t start = ThreadCpuNs();
    int heard = -1;
    do {
      heard = epoll_wait(epoll.get(), &event, 1, 1000);
    } while (heard < 0 && errno == EINTR);
    const ssize_t got = recv(connection.server.get(), &byte, 1, MSG_DONTWAIT);
    const ssize_t more = recv(connection.server.get(), &byte, 1, MSG_DONTWAIT);
    if (heard != 1 || got != 1 || more != -1) {
      return SocketError("a connection to this machine failed");
    }
    samples.push_back(static_cast<double>(ThreadCpuNs() - start));
  }
  return Summarise(std::move(samples)).median * 1e-9;
}

/// Seconds of a poll of TcpEndpoint that finds nothing.
Result<double> TimeEmptyPolls() {
  const FileDescriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return SocketError("cannot watch connections");
  std::vector<Connection> connections;
  for (uint32_t i = 0; i < kConnections; ++i) {
    Result<Connection> connection = Connect();
    if (!connection.ok()) return connection.status();
    epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data = {.u32 = i}};
    if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, connection->client.get(), &event) != 0)
      return SocketError("cannot watch a connection");
    connections.push_back(*std::move(connection));
  }
  std::vector<double> samples;
  std::array<epoll_event, kConnections> events;
  for (uint32_t i = 0; i < kPollSamples; ++i) {
    const uint64_t start = ThreadCpuNs();
    for (uint32_t poll = 0; poll < kPolls; ++poll) {
      const int heard = epoll_wait(epoll.get(), events.data(), static_cast<int>(events.size()), 0);
      if (heard != 0) return SocketError("a connection to this machine failed");
    }
    samples.push_back(static_cast<double>(ThreadCpuNs() - start) / kPolls);
  }
  return Summarise(std::move(samples)).median * 1e-9;
}

/// Receives until the connection ends; processor time in ns, or 0 - errno.
int64_t ReceiveAll(int fd) {
  std::vector<char> piece(kPieceBytes);
  const uint64_t start = ThreadCpuNs();
  for (;;) {
    const ssize_t got = recv(fd, piece.data(), piece.size(), MSG_WAITALL);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -errno;
    if (got == 0) return static_cast<int64_t>(ThreadCpuNs() - start);
  }
}

Result<double> TimeStream(const Connection& connection) {
  int64_t received_ns = 0;
  Result<std::thread> receiver = StartThread(
      "a thread that receives", [&] { received_ns = ReceiveAll(connection.server.get()); });
  if (!receiver.ok()) return receiver.status();
  const std::vector<char> piece(kPieceBytes, 'x');
  Status status;
  const uint64_t start = ThreadCpuNs();
  for (uint64_t sent = 0; sent < kSocketBytes && status.ok();) {
    const ssize_t got = send(connection.client.get(), piece.data(), piece.size(), MSG_NOSIGNAL);
    if (got < 0 && errno != EINTR) status = SocketError("a connection to this machine failed");
    sent += got > 0 ? static_cast<uint64_t>(got) : 0;
  }
  const uint64_t sent_ns = ThreadCpuNs() - start;
  shutdown(connection.client.get(), SHUT_WR);
  receiver->join();
  if (!status.ok()) return status;
  if (received_ns < 0) {
    return SystemError(StatusCode::kEnvironment, "a connection to this machine failed",
                       static_cast<int>(-received_ns));
  }
  const double seconds = (static_cast<double>(sent_ns) + static_cast<double>(received_ns)) * 1e-9;
  return 2 * static_cast<double>(kSocketBytes) / seconds;
}

}  // namespace

uint32_t UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    return static_cast<uint32_t>(std::max(1, CPU_COUNT(&set)));
  }
  return std::max(1u, std::thread::hardware_concurrency());  // more cores than the set holds
}

Result<CopyTime> TimeCopy() {
  const Result<Mapping> both = Mapping::Anonymous(2 * kCopyBytes);
  if (!both.ok()) return both.status();
  PREPOST_RETURN_IF_ERROR(both->Touch(Mapping::Access::kReadWrite));
  std::byte* const from = both->bytes().data();
  std::vector<double> seconds;
  for (uint32_t i = 0; i < kCopies; ++i) {
    const uint64_t start = MonotonicNs();
    std::memcpy(from + kCopyBytes, from, kCopyBytes);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    seconds.push_back(static_cast<double>(MonotonicNs() - start) * 1e-9);
  }
  return CopyTime{.rate = static_cast<double>(kCopyBytes) / Summarise(std::move(seconds)).median,
                  .bytes = kCopyBytes,
                  .repetitions = kCopies};
}

Result<CombineTime> TimeCombine() {
  const Result<Mapping> both = Mapping::Anonymous(2 * kCopyBytes);
  if (!both.ok()) return both.status();
  PREPOST_RETURN_IF_ERROR(both->Touch(Mapping::Access::kReadWrite));
  std::byte* const own = both->bytes().data();
  constexpr size_t kElementBytes = sizeof(float);
  const CombineFunction combine =
      CombineFunctionOf({.op = CombineOp::kSum, .type = ElementType::kFloat32});
  const auto time = [&](uint32_t times, uint32_t calls, size_t elements) {
    std::vector<double> seconds;
    for (uint32_t i = 0; i < times; ++i) {
      const uint64_t start = MonotonicNs();
      for (uint32_t call = 0; call < calls; ++call) {
        combine(own, own, own + kCopyBytes, elements);
        std::atomic_signal_fence(std::memory_order_seq_cst);
      }
      seconds.push_back(static_cast<double>(MonotonicNs() - start) * 1e-9 / calls);
    }
    return Summarise(std::move(seconds)).median;
  };
  return CombineTime{
      .rate = static_cast<double>(kCopyBytes) / time(kCopies, 1, kCopyBytes / kElementBytes),
      .seconds = time(kCopies, /*calls=*/1000, 1),
      .bytes = kCopyBytes,
      .repetitions = kCopies};
}

Result<WakeUpTime> TimeWakeUp() {
  const Result<EventFd> event = EventFd::Make();
  if (!event.ok()) return event.status();
  std::atomic<uint64_t> signalled_at = 0;
  std::atomic<uint32_t> sleeps = 0;
  std::atomic<bool> is_over = false;
  std::vector<double> seconds;
  seconds.reserve(kWakeUps);
  Result<std::thread> sleeper = StartThread("a thread that sleeps", [&] {
    while (!is_over) {
      pollfd waits = {.fd = event->fd(), .events = POLLIN, .revents = 0};
      ++sleeps;
      poll(&waits, 1, -1);
      const uint64_t now = MonotonicNs();
      event->Take();
      if (!is_over) seconds.push_back(static_cast<double>(now - signalled_at.load()) * 1e-9);
    }
  });
  if (!sleeper.ok()) return sleeper.status();
  for (uint32_t i = 1; i <= kWakeUps; ++i) {
    while (sleeps < i) std::this_thread::yield();
    std::this_thread::sleep_for(kSleepAtLeast);  // until it really sleeps
    signalled_at = MonotonicNs();
    event->Signal();
  }
  while (sleeps < kWakeUps + 1) std::this_thread::yield();
  is_over = true;
  event->Signal();
  sleeper->join();
  const auto samples = static_cast<uint32_t>(seconds.size());
  return WakeUpTime{.seconds = Summarise(std::move(seconds)).median, .samples = samples};
}

Preemptions CountPreemptions(std::chrono::nanoseconds duration,
                             const std::function<uint64_t()>& now) {
  constexpr auto kLeastNs = static_cast<uint64_t>(Preemptions::kLeast * 1e9);
  constexpr uint64_t kCheckNs = 50'000'000;
  const auto duration_ns = static_cast<uint64_t>(duration.count());
  Preemptions found;
  double sum = 0;
  double squares = 0;
  uint64_t watched_ns = 0;
  while (watched_ns < duration_ns) {
    const uint64_t start = now();
    const uint64_t end = start + std::min(kCheckNs, duration_ns - watched_ns);
    uint64_t last = start;
    while (last < end) {
      const uint64_t time = now();
      if (time - last >= kLeastNs) {
        const double length = static_cast<double>(time - last) * 1e-9;
        ++found.count;
        sum += length;
        squares += length * length;
      }
      last = time;
    }
    watched_ns += last - start;
  }
  found.seconds = static_cast<double>(watched_ns) * 1e-9;
  if (found.count == 0) return found;
  const auto count = static_cast<double>(found.count);
  // The next one can come only when the core is there. It is for a thousandth of the time at least.
  found.rate = count / std::max(found.seconds - sum, found.seconds * 1e-3);
  found.length = sum / count;
  found.deviation = std::sqrt(std::max(0.0, squares / count - found.length * found.length));
  return found;
}

MachineUse UseOfMachine() {
  MachineUse use;
  if (getloadavg(&use.load, 1) != 1) use.load = 0;
  rusage usage = {};
  if (getrusage(RUSAGE_SELF, &usage) == 0) use.switches = static_cast<uint64_t>(usage.ru_nivcsw);
  return use;
}

std::string WhyBusy(const MachineUse& before, const MachineUse& after, double seconds) {
  const uint64_t switches = after.switches - before.switches;
  std::string why;
  if (before.load >= kBusyLoad) why = fmt::format("its load was {:.2f} before", before.load);
  if (static_cast<double>(switches) > kBusySwitchesPerSecond * std::max(1.0, seconds)) {
    fmt::format_to(std::back_inserter(why), "{}others took the core {} times in {}",
                   why.empty() ? "" : ", and ", switches,
                   ShortDuration(std::llround(1e9 * seconds)));
  }
  return why;
}

Result<SocketTimes> TimeSockets() {
  const Result<Connection> connection = Connect();
  if (!connection.ok()) return connection.status();
  const Result<double> system_call = TimeSystemCalls(*connection);
  if (!system_call.ok()) return system_call.status();
  const Result<double> segment_calls = TimeSegmentCalls(*connection);
  if (!segment_calls.ok()) return segment_calls.status();
  const Result<double> copy_rate = TimeStream(*connection);
  if (!copy_rate.ok()) return copy_rate.status();
  const Result<double> empty_poll = TimeEmptyPolls();
  if (!empty_poll.ok()) return empty_poll.status();
  return SocketTimes{.system_call = *system_call,
                     .segment_calls = *segment_calls,
                     .copy_rate = *copy_rate,
                     .bytes = kSocketBytes,
                     .poll = *empty_poll,
                     .connections = kConnections};
}

}  // namespace prepost
