// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/statistics.h"

#include <algorithm>

namespace prepost {

Summary Summarise(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::ranges::sort(samples);
  const size_t count = samples.size();
  const size_t rank_p99 = (count * 99 + 99) / 100;  // nearest rank, from 1
  return {.count = count,
          .min = samples.front(),
          .median = (samples[(count - 1) / 2] + samples[count / 2]) / 2,
          .p99 = samples[rank_p99 - 1],
          .max = samples.back()};
}

}  // namespace prepost
