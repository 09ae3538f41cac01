// SPDX-License-Identifier: Apache-2.0
//
// Scheduler: which of the things that could happen next does (rule R12). Hardware promises little
// about order between queues, so tests run a program under many orders; the same mode and seed give
// the same order.
#ifndef PREPOST_BACKENDS_EMULATED_SCHEDULER_H_
#define PREPOST_BACKENDS_EMULATED_SCHEDULER_H_

#include <cstdint>
#include <random>

#include "backends/emulated/growing_ring.h"
#include "backends/emulated/nic_state.h"

namespace prepost::emulated {

enum class SchedulerMode : uint8_t {
  kRoundRobin,  ///< first come, first served; messages move whole
  kRandom,      ///< any of them, uniformly; messages move in MTU-sized chunks
  kAdversarial  ///< some queues' stages are starved for as long as anything else can run; chunks as
                ///< above
};
const char* Name(SchedulerMode mode);

struct Task {
  QpState* qp = nullptr;
  Stage stage = Stage::kFetch;
};

/// Holds each (QP, stage) at most once.
class Scheduler {
 public:
  Scheduler(SchedulerMode mode, uint64_t seed) : mode_(mode), random_(seed) {}

  bool empty() const { return tasks_.empty(); }
  void Add(QpState& qp, Stage stage);
  /// Needs !empty().
  Task Take();

 private:
  size_t Choose();

  SchedulerMode mode_;
  std::mt19937_64 random_;
  GrowingRing<Task> tasks_;
};

}  // namespace prepost::emulated

#endif  // PREPOST_BACKENDS_EMULATED_SCHEDULER_H_
