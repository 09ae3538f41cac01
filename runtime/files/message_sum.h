// SPDX-License-Identifier: Apache-2.0
//
// MessageSum: the BLAKE2b-256 sum by which copies of a message or a file are compared. Other bytes
// with the same sum cannot be made, so equal sums mean equal bytes, also where bytes were changed
// on purpose. A sum that comes by the way of the bytes can be changed with them: its users see to
// that.
#ifndef PREPOST_RUNTIME_FILES_MESSAGE_SUM_H_
#define PREPOST_RUNTIME_FILES_MESSAGE_SUM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ir/base/status.h"
#include "runtime/base/checkpoint.h"

namespace prepost {

/// Bytes of a file that are not in a hole.
struct FileExtent {
  uint64_t offset = 0;
  uint64_t bytes = 0;

  friend bool operator==(const FileExtent&, const FileExtent&) = default;
};

/// Whether a file of `bytes` bytes that has data in `extents`, which do not overlap, has a hole.
bool HasHoles(uint64_t bytes, std::span<const FileExtent> extents);

struct MessageSum {
  std::array<std::byte, 32> bytes = {};

  friend bool operator==(const MessageSum&, const MessageSum&) = default;
  /// 64 hexadecimal digits, as `b2sum -l 256` prints them.
  std::string ToString() const;
};

/// The sum of bytes that come in pieces.
class RunningSum {
 public:
  /// Of a message, or a file without holes: BLAKE2b-256 of its bytes, unkeyed, as `b2sum -l 256`
  /// has it.
  RunningSum();
  /// Of a file of `bytes` bytes with data in `extents`, of which Add() gets the data alone, however
  /// large the holes are. Without holes it is as above. Otherwise, BLAKE2b-256 with "prepost
  /// sparse" and two zero bytes as its personalization, which no sum of the other kind has, of this
  /// and then the data, integers of 8 bytes, little-endian:
  ///
  ///     bytes | number of extents | offset, bytes of the first extent | ... of the last extent
  ///
  /// So the sum is over where the data are, too. Files of equal content whose holes are elsewhere
  /// have other sums: who compares sums uses one table.
  RunningSum(uint64_t bytes, std::span<const FileExtent> extents);
  RunningSum(RunningSum&& other) noexcept;
  RunningSum& operator=(RunningSum&& other) noexcept;
  ~RunningSum();
  void Add(std::span<const std::byte> bytes);
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
/// The same of what it has in `extents` alone, as RunningSum does.
Result<MessageSum> SumFile(int fd, uint64_t bytes, std::span<const FileExtent> extents,
                           const std::string& name, const Checkpoint& checkpoint = {});

}  // namespace prepost

#endif  // PREPOST_RUNTIME_FILES_MESSAGE_SUM_H_
