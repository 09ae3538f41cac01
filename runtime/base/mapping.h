// SPDX-License-Identifier: Apache-2.0
//
// Mapping: the owner of one range of mapped memory, of a file or of nothing (anonymous). Messages
// and their copies lie in such memory, so that transports move bytes between files without a copy
// of our own.
#ifndef PREPOST_RUNTIME_BASE_MAPPING_H_
#define PREPOST_RUNTIME_BASE_MAPPING_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "ir/base/status.h"
#include "runtime/base/checkpoint.h"

namespace prepost {

/// Move only. A mapping of 0 bytes is valid and empty.
///
/// A file that shrinks under its mapping makes an access from user space a SIGBUS, but a system
/// call that is given the memory fails with EFAULT. So code that must survive it only passes the
/// memory to the kernel.
class Mapping {
 public:
  enum class Access : uint8_t { kRead, kReadWrite };

  /// Zeroed memory that no file backs. Errors: kEnvironment.
  static Result<Mapping> Anonymous(uint64_t bytes);
  /// Addresses that nothing else has, and no memory: any access is a SIGSEGV. Errors: kEnvironment.
  static Result<Mapping> Reserved(uint64_t bytes);
  /// Zeroed memory, shared with the processes that are forked later. Errors: kEnvironment.
  static Result<Mapping> Shared(uint64_t bytes);
  /// The first `bytes` of an open file, shared. Errors: kEnvironment. The file may be closed
  /// afterwards.
  static Result<Mapping> OfFile(int fd, uint64_t bytes, Access access);

  Mapping() = default;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  /// Must not be written to when mapped with kRead.
  std::span<std::byte> bytes() const { return bytes_; }

  /// Has every page there, ready for `access`, so that using it meets no page fault. Errors:
  /// kEnvironment: no memory, or a file that is shorter than its mapping; those of `checkpoint`.
  Status Touch(Access access, const Checkpoint& checkpoint = {}) const;

 private:
  explicit Mapping(std::span<std::byte> bytes) : bytes_(bytes) {}
  static Result<Mapping> Map(uint64_t bytes, int protection, int flags, int fd);

  std::span<std::byte> bytes_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_BASE_MAPPING_H_
