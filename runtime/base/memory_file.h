// SPDX-License-Identifier: Apache-2.0
//
// MakeMemoryFile: bytes that are memory and a file at once, for those that other processes read, or
// that the kernel copies without a signal for memory that has gone.
#ifndef PREPOST_RUNTIME_BASE_MEMORY_FILE_H_
#define PREPOST_RUNTIME_BASE_MEMORY_FILE_H_

#include <cstdint>
#include <string>

#include "ir/base/status.h"
#include "runtime/base/file_descriptor.h"

namespace prepost {

/// A file of `bytes` zeros that has no name and that nobody can make shorter or longer (a sealed
/// memfd; see IsSealed()). Where the system has or allows no such thing, a file without a name in
/// /dev/shm, in $TMPDIR or in /tmp, which is not sealed and whose space is reserved; `name` is what
/// tools show for a memfd. Errors: kEnvironment, of both.
Result<FileDescriptor> MakeMemoryFile(const std::string& name, uint64_t bytes);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_BASE_MEMORY_FILE_H_
