// SPDX-License-Identifier: Apache-2.0
//
// DidYouMean: the suggestion at the end of every "unknown name" message.
#ifndef PREPOST_IR_BASE_NEAR_NAME_H_
#define PREPOST_IR_BASE_NEAR_NAME_H_

#include <string>
#include <string_view>
#include <vector>

namespace prepost {

/// ", did you mean 'x'?" with the name of `names` nearest to `name` by edit distance, or else with
/// the first of those that begin nearly as `name`; "" when none is near. The name found is written
/// behind `before`, which does not count. Cost: O(|name| x total length); `name` is cut at 64
/// characters.
std::string DidYouMean(std::string_view name, const std::vector<std::string>& names,
                       std::string_view before = "");

}  // namespace prepost

#endif  // PREPOST_IR_BASE_NEAR_NAME_H_
