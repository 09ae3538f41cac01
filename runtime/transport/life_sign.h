// SPDX-License-Identifier: Apache-2.0
//
// LifeSign: random bytes at a fixed place, by which a peer that copies from this process's memory
// (tcp_endpoint.h) recognizes that the memory is still the library's. They are overwritten before
// they are freed, so that nothing that stands there later can look like them. That the connection
// is open says less: the news that it was closed may be lost on the way.
#ifndef PREPOST_RUNTIME_TRANSPORT_LIFE_SIGN_H_
#define PREPOST_RUNTIME_TRANSPORT_LIFE_SIGN_H_

#include <string.h>

#include <array>
#include <cstddef>

namespace prepost {

/// To be destroyed before the memory that peers copy from is its caller's again.
class LifeSign {
 public:
  using Value = std::array<std::byte, 16>;

  /// `value`: random, never used before.
  explicit LifeSign(const Value& value) : value_(value) {}
  ~LifeSign() {
    explicit_bzero(value_.data(), value_.size());  // not left out, though it is freed next
    // Before whatever the caller writes. Not std::atomic_thread_fence(), with which GCC does not
    // compile for the thread sanitizer.
    __sync_synchronize();
  }
  LifeSign(const LifeSign&) = delete;
  LifeSign& operator=(const LifeSign&) = delete;

  const Value& value() const { return value_; }

 private:
  Value value_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRANSPORT_LIFE_SIGN_H_
