// SPDX-License-Identifier: Apache-2.0
//
// RequestQueue: what a DeviceEndpoint has been asked to send, or to receive, over one queue pair,
// from the request until its completion has been seen.
//
//     completed      posted         asked
//         |---in flight--|--held back--|
#ifndef PREPOST_BACKENDS_NIC_HOST_REQUEST_QUEUE_H_
#define PREPOST_BACKENDS_NIC_HOST_REQUEST_QUEUE_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "ir/base/status.h"
#include "ir/plan.h"

namespace prepost::nic {

/// Numbers of requests are those of WQEs, which the ring has modulo its size: in the order of
/// posting and of completing. A few stand in the queue itself, more in memory of its own, which
/// only grows if more is outstanding than was said. One cache line: a fabric's thousands of queues
/// are used in turn.
class alignas(64) RequestQueue {
 public:
  struct Request {
    OpId op;
    uint32_t block = kNoBlock;  ///< kNoBlock: a credit
  };

  struct Sizes {
    uint32_t requests = 0;       ///< at most, in all
    uint32_t outstanding = 0;    ///< for so many that are not complete there is room from the start
    uint32_t in_flight_max = 0;  ///< that the ring has room for
  };
  explicit RequestQueue(const Sizes& sizes)
      : requests_(sizes.requests), in_flight_max_(sizes.in_flight_max) {
    if (sizes.outstanding > kFew) Grow(sizes.outstanding);
  }

  /// True: it is to be posted now; else when there is room.
  bool Add(const Request& request) {
    PREPOST_CHECK(asked_ < requests_);
    if (asked_ - completed_ == capacity_) Grow(2 * capacity_);
    const bool is_next = held_back() == 0 && has_room();
    At(asked_++) = request;
    return is_next;
  }
  /// The first that is not posted; needs held_back() != 0.
  const Request& next_to_post() const { return At(posted_); }
  void Post() { ++posted_; }
  /// The oldest in flight; needs in_flight() != 0.
  const Request& oldest() const { return At(completed_); }
  void Complete() { ++completed_; }

  bool has_room() const { return in_flight() < in_flight_max_; }
  uint32_t in_flight() const { return posted_ - completed_; }
  uint32_t held_back() const { return asked_ - posted_; }
  uint32_t posted() const { return posted_; }
  uint32_t completed() const { return completed_; }

 private:
  static constexpr uint32_t kFew = 4;
  static constexpr uint32_t kCapacityMax = uint32_t{1} << 31;

  size_t PositionOf(uint32_t number) const { return number & (capacity_ - 1); }
  Request& At(uint32_t number) {
    return many_ ? many_[PositionOf(number)] : few_[PositionOf(number)];
  }
  const Request& At(uint32_t number) const {
    return many_ ? many_[PositionOf(number)] : few_[PositionOf(number)];
  }

  void Grow(uint32_t capacity) {
    PREPOST_CHECK(capacity <= kCapacityMax);
    capacity = std::bit_ceil(capacity);
    auto many = std::make_unique_for_overwrite<Request[]>(capacity);
    for (uint32_t i = completed_; i != asked_; ++i) many[i & (capacity - 1)] = At(i);
    many_ = std::move(many);
    capacity_ = capacity;
  }

  std::array<Request, kFew> few_;
  std::unique_ptr<Request[]> many_;  // instead of few_, if there
  uint32_t capacity_ = kFew;         // a power of two
  uint32_t asked_ = 0;
  uint32_t posted_ = 0;
  uint32_t completed_ = 0;
  uint32_t requests_;
  uint32_t in_flight_max_;
};
static_assert(sizeof(RequestQueue) == 64);

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_HOST_REQUEST_QUEUE_H_
