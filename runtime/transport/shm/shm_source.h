// SPDX-License-Identifier: Apache-2.0
//
// ShmSource: the copy of the message that one peer on this machine has, for ShmEndpoint to copy
// blocks from. The one place that knows two ways to copy, and when which is right.
#ifndef PREPOST_RUNTIME_TRANSPORT_SHM_SHM_SOURCE_H_
#define PREPOST_RUNTIME_TRANSPORT_SHM_SHM_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "ir/base/status.h"
#include "runtime/base/checkpoint.h"
#include "runtime/base/mapping.h"

namespace prepost {

/// Move only. Used by one thread.
class ShmSource {
 public:
  struct Options {
    int fd = -1;                    ///< the peer's memory or file; must stay open; not owned
    uint64_t bytes = 0;             ///< of the message
    bool is_target_sealed = false;  ///< what is copied to is memory that no file backs
  };
  /// Where nobody can shrink the source or the target, the source is mapped and touched; see
  /// shm_source.cc. Errors: those of Mapping.
  static Result<ShmSource> Make(const Options& options, const Checkpoint& checkpoint);

  /// Copies from byte `offset` of the message to `target`, at least one byte; how many. Errors
  /// (kRejected): the source ends before `offset`, or the memory of the target is gone, as when
  /// their files are cut short meanwhile; a read that fails.
  Result<size_t> Copy(uint64_t offset, std::span<std::byte> target) const;

 private:
  int fd_ = -1;
  bool is_mapped_ = false;
  Mapping mapping_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRANSPORT_SHM_SHM_SOURCE_H_
