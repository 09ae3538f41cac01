// SPDX-License-Identifier: Apache-2.0
//
// Host lists, as cluster tools write them: "node[001-032,040],login" for 34 names. Several
// bracketed parts give every combination, the last one changing first.
#ifndef PREPOST_COMPILER_TOPOLOGY_HOST_LIST_H_
#define PREPOST_COMPILER_TOPOLOGY_HOST_LIST_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/base/status.h"

namespace prepost {

/// All names of `text`, at most `names_max` and of at most 256 bytes each. A range keeps the
/// leading zeros of its first number. The Status needs a place.
Result<std::vector<std::string>> ExpandHostList(std::string_view text, size_t names_max);

/// One list that gives `names` in their order: those that count up become ranges.
std::string WriteHostList(std::span<const std::string> names);

}  // namespace prepost

#endif  // PREPOST_COMPILER_TOPOLOGY_HOST_LIST_H_
