// SPDX-License-Identifier: Apache-2.0
//
// LongLink: a long path between two sites of machines (machines.h), in user space, as many kernels
// have no netem. Its ends are TAP devices, one at each site's switch. Per direction a frame waits
// for its turn at a rate, in a queue that is bounded, and arrives a delay after it has left; frames
// stay in order.
#ifndef PREPOST_TESTS_SUPPORT_LONG_LINK_H_
#define PREPOST_TESTS_SUPPORT_LONG_LINK_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ir/status.h"
#include "runtime/file_descriptor.h"

namespace prepost::test {

struct LongLinkOptions {
  uint64_t bits_per_second = 400'000'000;   ///< of frames, with their headers
  std::chrono::microseconds delay{30'000};  ///< one way
  size_t queue_bytes = 3'000'000;           ///< that wait at an end; a frame beyond is lost
};

/// A thread of this process carries the frames. All times are computed when a frame comes, so that
/// a thread that runs late delays frames but never changes the rate.
class LongLink {
 public:
  /// Between the devices `bridge` of the namespaces `a` and `b`. Errors (kEnvironment): there is no
  /// /dev/net/tun here, or it may not be used.
  static Result<std::unique_ptr<LongLink>> Make(const std::string& a, const std::string& b,
                                                const LongLinkOptions& options);
  ~LongLink();

 private:
  using Clock = std::chrono::steady_clock;
  struct Frame {
    Clock::time_point arrival;
    std::vector<std::byte> bytes;
  };
  /// What has come in at one end and goes out at the other.
  struct Direction {
    FileDescriptor from;
    Clock::time_point free;  ///< when the last frame has left
    std::deque<Frame> frames;
  };

  explicit LongLink(const LongLinkOptions& options) : options_(options) {}
  void Carry();
  void Take(Direction& way);
  void Accept(Direction& way, std::vector<std::byte> bytes);
  void Deliver(Direction& way, const FileDescriptor& to);

  const LongLinkOptions options_;
  std::array<Direction, 2> ways_;
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_LONG_LINK_H_
