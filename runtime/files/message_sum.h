// SPDX-License-Identifier: Apache-2.0
//
// MessageSum: the XXH3-128 sum by which copies of a message are compared. It guards against
// mistakes, not attackers.
#ifndef PREPOST_RUNTIME_FILES_MESSAGE_SUM_H_
#define PREPOST_RUNTIME_FILES_MESSAGE_SUM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ir/status.h"
#include "runtime/checkpoint.h"

namespace prepost {

struct MessageSum {
  uint64_t high = 0;
  uint64_t low = 0;

  friend bool operator==(const MessageSum&, const MessageSum&) = default;
  /// 32 hexadecimal digits, as xxh128sum prints them.
  std::string ToString() const;
};

/// The sum of bytes that come in pieces.
class RunningSum {
 public:
  RunningSum();
  RunningSum(RunningSum&& other) noexcept;
  RunningSum& operator=(RunningSum&& other) noexcept;
  ~RunningSum();
  void Add(std::span<const std::byte> bytes);
  /// As many zeros.
  void AddZeros(uint64_t bytes);
  MessageSum Get() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Sums memory. Errors: only those of `checkpoint`.
Result<MessageSum> SumMemory(std::span<const std::byte> memory, const Checkpoint& checkpoint = {});

/// Sums the first `bytes` of an open file by reading it, so that a file cut short meanwhile is an
/// error (kRejected) and not a SIGBUS. `name` is for messages.
Result<MessageSum> SumFile(int fd, uint64_t bytes, const std::string& name,
                           const Checkpoint& checkpoint = {});

}  // namespace prepost

#endif  // PREPOST_RUNTIME_FILES_MESSAGE_SUM_H_
