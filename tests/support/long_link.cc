// SPDX-License-Identifier: Apache-2.0
#include "tests/support/long_link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace prepost::test {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr size_t kFrameBytesMax = 65536;
constexpr size_t kHeaderBytes = 14;     ///< of a frame: to, from, protocol
constexpr size_t kFramesMax = 1 << 17;  ///< on the way; rate and delay allow far fewer
constexpr int kFramesPerVisit = 32;     ///< of one site, before the next has its turn
/// How long the end of the link is not noticed when nothing moves.
constexpr std::chrono::milliseconds kIdleMax{50};

/// A TAP device of the namespace, on its bridge. Called in a thread of its own, as it goes there.
Result<FileDescriptor> OpenEnd(const std::string& where, int mtu) {
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
      "ip -n {} link set long mtu {} txqueuelen 20000 master bridge up 2>/dev/null", where, mtu);
  if (std::system(join.c_str()) != 0)  // NOLINT
    return EnvironmentError("cannot join a TAP device to a bridge");
  return device;
}

std::chrono::nanoseconds ToTime(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Seconds(seconds));
}

}  // namespace

Result<std::unique_ptr<LongLink>> LongLink::Make(const std::vector<std::string>& sites,
                                                 const std::vector<LongWay>& ways, int mtu,
                                                 uint64_t seed) {
  std::unique_ptr<LongLink> link(new LongLink(seed));
  for (const std::string& site : sites) {
    Result<FileDescriptor> end = EnvironmentError("");
    std::thread([&] { end = OpenEnd(site, mtu); }).join();
    if (!end.ok()) return end.status();
    link->ends_.push_back(*std::move(end));
  }
  const Clock::time_point now = Clock::now();
  for (const LongWay& way : ways) {
    link->ways_.push_back({.what = way,
                           .tokens = way.path.burst,
                           .tokens_at = now,
                           .free = now,
                           .last_arrival = now,
                           .frames = {},
                           .counts = {}});
  }
  link->thread_ = std::thread([&link = *link] { link.Carry(); });
  return link;
}

Result<std::unique_ptr<LongLink>> LongLink::Make(const std::string& a, const std::string& b,
                                                 const LongPath& path) {
  return Make({a, b}, {{.from = 0, .to = 1, .path = path}, {.from = 1, .to = 0, .path = path}});
}

LongLink::~LongLink() { Stop(); }

std::vector<LongCounts> LongLink::Stop() {
  is_over_ = true;
  if (thread_.joinable()) thread_.join();
  std::vector<LongCounts> counts;
  for (const Way& way : ways_) counts.push_back(way.counts);
  return counts;
}

void LongLink::Carry() {
  // On a busy machine it would be a longer link; where this is not permitted it is.
  static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), -15));
  prctl(PR_SET_TIMERSLACK, 1000ul);
  std::vector<pollfd> polls;
  for (const FileDescriptor& end : ends_)
    polls.push_back({.fd = end.get(), .events = POLLIN, .revents = 0});
  while (!is_over_) {
    for (size_t site = 0; site < ends_.size(); ++site) Take(site);
    Clock::time_point due = Clock::now() + kIdleMax;
    for (Way& way : ways_) {
      Deliver(way);
      if (!way.frames.empty()) due = std::min(due, way.frames.front().arrival);
    }
    const auto wait = std::max(due - Clock::now(), Clock::duration::zero());
    const auto seconds = std::chrono::floor<std::chrono::seconds>(wait);
    const timespec timeout = {.tv_sec = seconds.count(), .tv_nsec = (wait - seconds).count()};
    ppoll(polls.data(), polls.size(), &timeout, nullptr);
  }
}

/// What has come in.
void LongLink::Take(size_t site) {
  std::array<std::byte, kFrameBytesMax> buffer;
  for (int i = 0; i < kFramesPerVisit; ++i) {
    const ssize_t bytes = read(ends_[site].get(), buffer.data(), buffer.size());
    if (bytes <= 0) return;
    Route(site, std::span(buffer).first(static_cast<size_t>(bytes)));
  }
}

/// To the site of the station that the frame is for, or to all.
void LongLink::Route(size_t site, std::span<const std::byte> frame) {
  if (frame.size() < kHeaderBytes || is_cut_) return;
  Station to, from;
  std::copy_n(frame.begin(), to.size(), to.begin());
  std::copy_n(frame.begin() + to.size(), from.size(), from.begin());
  site_of_[from] = site;
  const auto known = site_of_.find(to);
  for (Way& way : ways_) {
    const bool is_there = known == site_of_.end() || known->second == way.what.to;
    if (way.what.from == site && is_there) Accept(way, frame);
  }
}

void LongLink::Accept(Way& way, std::span<const std::byte> frame) {
  const LongPath& path = way.what.path;
  const auto bytes = static_cast<double>(frame.size());
  const Clock::time_point now = Clock::now();
  std::uniform_real_distribution<double> uniform(0, 1);
  ++way.counts.frames;
  way.counts.bytes += frame.size();
  if (path.police > 0) {
    way.tokens += Seconds(now - std::exchange(way.tokens_at, now)).count() * path.police / 8;
    way.tokens = std::min(way.tokens, path.burst);
    if (way.tokens < bytes) {
      ++way.counts.policed;
      return;
    }
    way.tokens -= bytes;
  }
  if (path.loss > 0 && uniform(random_) < path.loss) {
    ++way.counts.lost;
    return;
  }
  Clock::time_point left = now;
  if (path.rate > 0) {
    const Clock::time_point start = std::max(now, way.free);
    const double waiting = Seconds(start - now).count() * path.rate / 8;
    if (waiting + bytes > path.queue || way.frames.size() == kFramesMax) {
      ++way.counts.overflowed;
      return;
    }
    way.counts.queue_max = std::max(way.counts.queue_max, static_cast<uint64_t>(waiting));
    left = way.free = start + ToTime(bytes * 8 / path.rate);
  }
  const double slip = path.jitter.count() == 0 ? 0 : 2 * uniform(random_) - 1;
  const Clock::time_point arrival = left + path.delay + ToTime(slip * Seconds(path.jitter).count());
  way.last_arrival = std::max(way.last_arrival, arrival);
  way.frames.push_back({.arrival = way.last_arrival, .bytes = {frame.begin(), frame.end()}});
}

/// Those whose time has come.
void LongLink::Deliver(Way& way) {
  while (!way.frames.empty() && way.frames.front().arrival <= Clock::now()) {
    const std::vector<std::byte>& bytes = way.frames.front().bytes;
    const bool is_lost = is_cut_ || write(ends_[way.what.to].get(), bytes.data(), bytes.size()) < 0;
    if (is_lost) ++way.counts.unwritten;
    way.frames.pop_front();
  }
}

}  // namespace prepost::test
