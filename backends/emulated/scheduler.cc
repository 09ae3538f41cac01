// SPDX-License-Identifier: Apache-2.0
//
// The adversary gives every (QP, stage) a random priority and always runs the highest: what drew a
// low one waits until nothing else is left, which is what uncovers a missing WAIT. Now and then the
// one that ran draws again, so that runs of progress and starvation of all lengths occur.
#include "backends/emulated/scheduler.h"

#include <algorithm>

namespace prepost::emulated {

const char* Name(SchedulerMode mode) {
  switch (mode) {
    case SchedulerMode::kRoundRobin:
      return "round-robin";
    case SchedulerMode::kRandom:
      return "random";
    case SchedulerMode::kAdversarial:
      return "adversarial";
  }
  PREPOST_CHECK(false);
  return "";
}

void Scheduler::Add(QpState& qp, Stage stage) {
  bool& scheduled = qp.scheduled[static_cast<size_t>(stage)];
  if (scheduled) return;
  scheduled = true;
  uint32_t& priority = qp.priority[static_cast<size_t>(stage)];
  if (mode_ == SchedulerMode::kAdversarial && priority == 0) {
    priority = static_cast<uint32_t>(random_()) | 1;
  }
  tasks_.push_back({&qp, stage});
}

size_t Scheduler::Choose() {
  switch (mode_) {
    case SchedulerMode::kRoundRobin:
      return 0;
    case SchedulerMode::kRandom:
      return random_() % tasks_.size();
    case SchedulerMode::kAdversarial: {
      const auto priority = [](const Task& task) {
        return task.qp->priority[static_cast<size_t>(task.stage)];
      };
      size_t highest = 0;
      for (size_t i = 1; i < tasks_.size(); ++i) {
        if (priority(tasks_[i]) > priority(tasks_[highest])) highest = i;
      }
      return highest;
    }
  }
  PREPOST_CHECK(false);
  return 0;
}

Task Scheduler::Take() {
  const size_t chosen = Choose();
  const Task task = tasks_[chosen];
  if (chosen != 0) tasks_[chosen] = tasks_.front();
  tasks_.pop_front();
  task.qp->scheduled[static_cast<size_t>(task.stage)] = false;
  if (mode_ == SchedulerMode::kAdversarial && random_() % 8 == 0) {
    task.qp->priority[static_cast<size_t>(task.stage)] = 0;  // draws again when it is next added
  }
  return task;
}

}  // namespace prepost::emulated
