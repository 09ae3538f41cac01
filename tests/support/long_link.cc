// SPDX-License-Identifier: Apache-2.0
#include "tests/support/long_link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace prepost::test {
namespace {

constexpr size_t kFrameBytesMax = 65536;
constexpr size_t kFramesMax = 1 << 16;  ///< on the way; rate and delay allow far fewer
constexpr int kFramesPerVisit = 32;     ///< of one direction, before the other has its turn
/// How long the end of the link is not noticed when nothing moves.
constexpr std::chrono::milliseconds kIdleMax{50};

/// A TAP device of the namespace, on its bridge. Called in a thread of its own, as it goes there.
Result<FileDescriptor> OpenEnd(const std::string& where) {
  const FileDescriptor space(open(("/run/netns/" + where).c_str(), O_RDONLY | O_CLOEXEC));
  if (!space.valid() || setns(space.get(), CLONE_NEWNET) != 0)
    return SystemError(StatusCode::kEnvironment, "cannot enter a network namespace", errno);
  FileDescriptor device(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!device.valid())
    return SystemError(StatusCode::kEnvironment, "cannot open /dev/net/tun", errno);
  ifreq request = {};
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  std::strcpy(request.ifr_name, "long");
  if (ioctl(device.get(), TUNSETIFF, &request) != 0)
    return SystemError(StatusCode::kEnvironment, "cannot make a TAP device", errno);
  const std::string join = fmt::format(
      "ip -n {} link set long txqueuelen 20000 master bridge up 2>/dev/null", where);
  if (std::system(join.c_str()) != 0)  // NOLINT
    return EnvironmentError("cannot join a TAP device to a bridge");
  return device;
}

}  // namespace

Result<std::unique_ptr<LongLink>> LongLink::Make(const std::string& a, const std::string& b,
                                                 const LongLinkOptions& options) {
  std::unique_ptr<LongLink> link(new LongLink(options));
  for (const auto& [way, where] :
       {std::pair(&link->ways_[0], &a), std::pair(&link->ways_[1], &b)}) {
    Status status;
    std::thread([&, way = way, where = where] {
      Result<FileDescriptor> end = OpenEnd(*where);
      status = end.status();
      if (end.ok()) way->from = *std::move(end);
    }).join();
    PREPOST_RETURN_IF_ERROR(status);
  }
  link->thread_ = std::thread([&link = *link] { link.Carry(); });
  return link;
}

LongLink::~LongLink() {
  is_over_ = true;
  if (thread_.joinable()) thread_.join();
}

void LongLink::Carry() {
  // On a busy machine it would be a longer link; where this is not permitted it is.
  static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), -15));
  while (!is_over_) {
    Clock::time_point due = Clock::now() + kIdleMax;
    for (size_t i : {0u, 1u}) {
      Take(ways_[i]);
      Deliver(ways_[i], ways_[1 - i].from);
      if (!ways_[i].frames.empty()) due = std::min(due, ways_[i].frames.front().arrival);
    }
    const auto wait = std::max(due - Clock::now(), Clock::duration::zero());
    const auto seconds = std::chrono::floor<std::chrono::seconds>(wait);
    const timespec timeout = {.tv_sec = seconds.count(), .tv_nsec = (wait - seconds).count()};
    std::array<pollfd, 2> ends = {pollfd{.fd = ways_[0].from.get(), .events = POLLIN},
                                  pollfd{.fd = ways_[1].from.get(), .events = POLLIN}};
    ppoll(ends.data(), ends.size(), &timeout, nullptr);
  }
}

/// What has come in.
void LongLink::Take(Direction& way) {
  std::array<std::byte, kFrameBytesMax> buffer;
  for (int i = 0; i < kFramesPerVisit; ++i) {
    const ssize_t bytes = read(way.from.get(), buffer.data(), buffer.size());
    if (bytes <= 0) return;
    Accept(way, {buffer.begin(), buffer.begin() + bytes});
  }
}

void LongLink::Accept(Direction& way, std::vector<std::byte> bytes) {
  const auto time_of = [this](size_t count) {
    return std::chrono::nanoseconds(count * 8 * 1'000'000'000 / options_.bits_per_second);
  };
  const Clock::time_point now = Clock::now();
  const Clock::time_point start = std::max(now, way.free);
  const bool is_full = start + time_of(bytes.size()) - now > time_of(options_.queue_bytes);
  if (is_full || way.frames.size() == kFramesMax) return;
  way.free = start + time_of(bytes.size());
  way.frames.push_back({.arrival = way.free + options_.delay, .bytes = std::move(bytes)});
}

/// Those whose time has come. A frame that the device does not take is lost.
void LongLink::Deliver(Direction& way, const FileDescriptor& to) {
  while (!way.frames.empty() && way.frames.front().arrival <= Clock::now()) {
    const std::vector<std::byte>& bytes = way.frames.front().bytes;
    static_cast<void>(!write(to.get(), bytes.data(), bytes.size()));
    way.frames.pop_front();
  }
}

}  // namespace prepost::test
