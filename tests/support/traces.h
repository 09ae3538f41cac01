// SPDX-License-Identifier: Apache-2.0
//
// Traces for tests of pictures.
#ifndef PREPOST_TESTS_SUPPORT_TRACES_H_
#define PREPOST_TESTS_SUPPORT_TRACES_H_

#include <span>
#include <utility>

#include "ir/plan.h"
#include "runtime/trace/op_times.h"

namespace prepost::test {

inline constexpr uint64_t kTraceStart = 5'000'000;
inline constexpr uint64_t kTraceRound = 1'000'000;  ///< 1 ms

/// A run in which every round takes kTraceRound, as the ideal one.
inline RunTrace IdealTrace(const Plan& plan) {
  RunTrace trace = std::move(*RunTrace::Make(plan));
  trace.start_ns = kTraceStart;
  for (const Program& program : plan.programs()) {
    const std::span<OpTimes> times = trace.times(program.node);
    for (size_t id = 0; id < times.size(); ++id) {
      const uint64_t begin = kTraceStart + plan.ops(program)[id].round * kTraceRound;
      times[id] = {kTraceStart - 10, begin, begin + kTraceRound};
    }
  }
  return trace;
}

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_TRACES_H_
