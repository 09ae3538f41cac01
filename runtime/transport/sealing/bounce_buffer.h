// SPDX-License-Identifier: Apache-2.0
//
// BounceBuffer: memory of this process alone that bytes pass through on their way from and to
// memory which may vanish meanwhile, as a mapped file does that is truncated
// (runtime/base/mapping.h): what the code computes with lies here, and only the kernel touches the
// other.
#ifndef PREPOST_RUNTIME_TRANSPORT_SEALING_BOUNCE_BUFFER_H_
#define PREPOST_RUNTIME_TRANSPORT_SEALING_BOUNCE_BUFFER_H_

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>

#include "ir/base/status.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/base/mapping.h"
#include "runtime/transport/tcp/tcp_wire.h"

namespace prepost {

class BounceBuffer {
 public:
  /// One open file. Errors: kEnvironment.
  static Result<std::unique_ptr<BounceBuffer>> Make(size_t bytes);

  std::span<std::byte> bytes() const { return mapping_.bytes(); }
  /// From `memory`, which is no larger, to the first of bytes(). kBadMemory: the memory is gone.
  Io Fill(std::span<const iovec> memory);
  /// From bytes() from `offset` on to `memory`, which is no larger than these.
  Io Drain(size_t offset, std::span<const iovec> memory);

 private:
  BounceBuffer() = default;

  FileDescriptor file_;
  Mapping mapping_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRANSPORT_SEALING_BOUNCE_BUFFER_H_
