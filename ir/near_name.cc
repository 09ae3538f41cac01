// SPDX-License-Identifier: Apache-2.0
#include "ir/near_name.h"

#include <llvm/ADT/StringRef.h>

namespace prepost {

std::string DidYouMean(std::string_view name, const std::vector<std::string>& names) {
  const llvm::StringRef wanted(name.data(), std::min<size_t>(name.size(), 64));
  const unsigned distance_max = static_cast<unsigned>(wanted.size() / 3 + 1);
  const std::string* best = nullptr;
  unsigned best_distance = distance_max + 1;
  for (const std::string& candidate : names) {
    const unsigned distance =
        wanted.edit_distance(candidate, /*AllowReplacements=*/true, best_distance);
    if (distance < best_distance) {
      best_distance = distance;
      best = &candidate;
    }
  }
  return best == nullptr ? "" : ", did you mean '" + *best + "'?";
}

}  // namespace prepost
