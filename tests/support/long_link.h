// SPDX-License-Identifier: Apache-2.0
//
// LongLink: long paths between sites of machines (machines.h), in user space, as many kernels have
// no netem. Its ends are TAP devices, one at each site's switch; it learns which station is at
// which site, as a switch does. In each direction a path polices (a token bucket that drops), loses
// at random, queues what its rate has not taken yet, as far as its queue goes, delays, and jitters,
// in this order; frames stay in order.
#ifndef PREPOST_TESTS_SUPPORT_LONG_LINK_H_
#define PREPOST_TESTS_SUPPORT_LONG_LINK_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ir/base/status.h"
#include "runtime/base/file_descriptor.h"

namespace prepost::test {

/// One direction of a path. Rates are in bits per second, of frames with their headers; 0: no
/// limit.
struct LongPath {
  double rate = 400e6;
  double queue = 3e6;  ///< bytes that wait for the rate; a frame beyond is lost
  std::chrono::microseconds delay{30'000};
  std::chrono::microseconds jitter{0};  ///< more or less, uniform
  double loss = 0;                      ///< probability
  double police = 0;
  double burst = 1e6;  ///< bytes that the policer lets pass at once
};

/// Between the sites `from` and `to`, in this direction.
struct LongWay {
  size_t from = 0;
  size_t to = 1;
  LongPath path;
};

/// What has become of the frames of a way.
struct LongCounts {
  uint64_t frames = 0, bytes = 0;
  uint64_t policed = 0, lost = 0, overflowed = 0;  ///< of these, frames that were dropped
  uint64_t unwritten = 0;                          ///< that the site's device did not take
  uint64_t queue_max = 0;                          ///< bytes
};

/// A thread of this process carries the frames. When a frame arrives is computed when it comes, so
/// that a thread that runs late delays frames but never changes the rate.
class LongLink {
 public:
  /// Between the devices `bridge` of the namespaces `sites`. `mtu`: of the TAP devices. Errors
  /// (kEnvironment): there is no /dev/net/tun here, or it may not be used.
  static Result<std::unique_ptr<LongLink>> Make(const std::vector<std::string>& sites,
                                                const std::vector<LongWay>& ways, int mtu = 1500,
                                                uint64_t seed = 1);
  /// The same path in both directions.
  static Result<std::unique_ptr<LongLink>> Make(const std::string& a, const std::string& b,
                                                const LongPath& path);
  ~LongLink();

  /// From now on nothing crosses, and nobody is told.
  void Cut() { is_cut_ = true; }
  /// Ends it: of each way, as they were given.
  std::vector<LongCounts> Stop();

 private:
  using Clock = std::chrono::steady_clock;
  using Station = std::array<std::byte, 6>;
  struct Frame {
    Clock::time_point arrival;
    std::vector<std::byte> bytes;
  };
  struct Way {
    LongWay what;
    double tokens = 0;  ///< bytes
    Clock::time_point tokens_at;
    Clock::time_point free;          ///< when the last frame has left
    Clock::time_point last_arrival;  ///< of a frame
    std::deque<Frame> frames;
    LongCounts counts;
  };

  explicit LongLink(uint64_t seed) : random_(seed) {}
  void Carry();
  void Take(size_t site);
  void Route(size_t site, std::span<const std::byte> frame);
  void Accept(Way& way, std::span<const std::byte> frame);
  void Deliver(Way& way);

  std::vector<FileDescriptor> ends_;
  std::vector<Way> ways_;
  std::map<Station, size_t> site_of_;
  std::mt19937_64 random_;
  std::atomic<bool> is_cut_ = false;
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_LONG_LINK_H_
