// SPDX-License-Identifier: Apache-2.0
#include "ir/base/near_name.h"

#include <llvm/ADT/StringRef.h>

namespace prepost {
namespace {

/// Whether they differ by two letters that stand the other way round.
bool AreSwapped(llvm::StringRef a, llvm::StringRef b) {
  size_t at = 0;
  while (at < a.size() && at < b.size() && a[at] == b[at]) ++at;
  return a.size() == b.size() && at + 1 < a.size() && a[at] == b[at + 1] && a[at + 1] == b[at] &&
         a.substr(at + 2) == b.substr(at + 2);
}

/// The nearest of `names`, of each of which the first `length_max` characters count; null when none
/// is within `distance_max`.
const std::string* Nearest(llvm::StringRef wanted, const std::vector<std::string>& names,
                           size_t length_max, size_t distance_max) {
  const std::string* best = nullptr;
  unsigned best_distance = static_cast<unsigned>(distance_max + 1);
  for (const std::string& candidate : names) {
    const llvm::StringRef name = llvm::StringRef(candidate).substr(0, length_max);
    const unsigned distance =
        AreSwapped(wanted, name)
            ? 1
            : wanted.edit_distance(name, /*AllowReplacements=*/true, best_distance);
    if (distance < best_distance) {
      best_distance = distance;
      best = &candidate;
    }
  }
  return best;
}

}  // namespace

std::string DidYouMean(std::string_view name, const std::vector<std::string>& names,
                       std::string_view before) {
  constexpr size_t kBeginningMin = 4;  // what is shorter begins like too much
  const llvm::StringRef wanted(name.data(), std::min<size_t>(name.size(), 64));
  const std::string* best = Nearest(wanted, names, std::string::npos, wanted.size() / 3 + 1);
  if (best == nullptr && wanted.size() >= kBeginningMin)
    best = Nearest(wanted, names, wanted.size(), wanted.size() / 4);
  return best == nullptr ? "" : ", did you mean '" + std::string(before) + *best + "'?";
}

}  // namespace prepost
