// SPDX-License-Identifier: Apache-2.0
//
// Summarise: what measurements say in four numbers. Whoever prints measurements uses it.
#ifndef PREPOST_RUNTIME_BASE_STATISTICS_H_
#define PREPOST_RUNTIME_BASE_STATISTICS_H_

#include <cstddef>
#include <vector>

namespace prepost {

struct Summary {
  size_t count = 0;
  double min = 0;
  double median = 0;  ///< of an even number: the mean of the two in the middle
  double p99 = 0;     ///< the smallest that at least 99 % do not exceed: below 100 samples, the max
  double max = 0;

  friend bool operator==(const Summary&, const Summary&) = default;
};

/// All zero without samples.
Summary Summarise(std::vector<double> samples);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_BASE_STATISTICS_H_
