// SPDX-License-Identifier: Apache-2.0
//
// --part-bytes: the sizes of a collective's parts, in the flag itself or in a file.
#ifndef PREPOST_PLANNING_FLAGS_PART_BYTES_H_
#define PREPOST_PLANNING_FLAGS_PART_BYTES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/base/status.h"

namespace prepost {

/// Sizes such as 4KiB between blanks and commas, by part. Rows, which an alltoall may have, end at
/// line ends and semicolons, or stand in brackets as in JSON. Errors, at "name:line": a word that
/// is no size; none at all; rows of other lengths than there are rows.
Result<std::vector<uint64_t>> ParsePartBytes(const std::string& text, const std::string& name);

/// Of `given`: sizes, or the file that has them, - for stdin. Errors: kUsage, where it is neither.
Result<std::vector<uint64_t>> LoadPartBytes(const std::string& given);

}  // namespace prepost

#endif  // PREPOST_PLANNING_FLAGS_PART_BYTES_H_
