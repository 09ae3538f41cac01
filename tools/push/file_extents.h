// SPDX-License-Identifier: Apache-2.0
//
// Where an open file has data and where holes, as its file system says; all is data where it does
// not. Used for the source's manifest, and to compare with it what a host has.
#ifndef PREPOST_TOOLS_PUSH_FILE_EXTENTS_H_
#define PREPOST_TOOLS_PUSH_FILE_EXTENTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "runtime/base/checkpoint.h"
#include "runtime/files/message_sum.h"

namespace prepost::tools {

/// The first data from `begin` on, before `end`; none: all of that is a hole.
std::optional<FileExtent> NextData(int file, uint64_t begin, uint64_t end);

/// Of the first `bytes` bytes, in order; what comes after `extents_max` - 1 extents is one more
/// with its holes. Errors: those of `checkpoint`, which is called for every extent.
Result<std::vector<FileExtent>> ExtentsOf(int file, uint64_t bytes, size_t extents_max,
                                          const Checkpoint& checkpoint = {});

/// Whether the bytes from `begin` to `end` are zeros; reads no holes. Errors (kRejected), with
/// `name`: those of reading, of `checkpoint`.
Result<bool> AreZeros(int file, uint64_t begin, uint64_t end, const std::string& name,
                      const Checkpoint& checkpoint = {});

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_PUSH_FILE_EXTENTS_H_
