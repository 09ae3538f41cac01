// SPDX-License-Identifier: Apache-2.0
//
// Memory that one process hands to another one of its machine, which may only read it: a file
// without a name that keeps its size and that nobody else can write to (seals), so that no access
// to it fails, and a process that is killed leaves nothing.
#ifndef PREPOST_RUNTIME_TRANSPORT_SHM_HANDED_MEMORY_H_
#define PREPOST_RUNTIME_TRANSPORT_SHM_HANDED_MEMORY_H_

#include <cstdint>
#include <functional>

#include "ir/base/status.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/base/mapping.h"

namespace prepost {

/// This end's.
struct HandedMemory {
  FileDescriptor file;  ///< to be handed over
  Mapping memory;       ///< zeros at first
};
/// `name`: in /proc, for people. `is_backed`: there is memory for all of it; else it is a SIGBUS to
/// use a page for which there is none. Errors (kEnvironment): no memory, or the system does not
/// make such files.
Result<HandedMemory> MakeHandedMemory(const char* name, uint64_t bytes, bool is_backed);
/// What the other end has handed over, of a size that `is_size` finds right. Errors (kRejected): it
/// is no such memory; kEnvironment.
Result<Mapping> MapHandedMemory(const FileDescriptor& file,
                                const std::function<bool(uint64_t)>& is_size);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRANSPORT_SHM_HANDED_MEMORY_H_
