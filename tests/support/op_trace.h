// SPDX-License-Identifier: Apache-2.0
//
// OpTrace: records what executors report to observers, from any thread, and checks that the plan's
// order is contained in what happened.
#ifndef PREPOST_TESTS_SUPPORT_OP_TRACE_H_
#define PREPOST_TESTS_SUPPORT_OP_TRACE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <mutex>
#include <vector>

#include "runtime/executor/executor.h"
#include "runtime/executor/program.h"

namespace prepost::test {

class OpTrace {
 public:
  explicit OpTrace(const Plan& plan) : plan_(plan), times_(plan.ops().size()) {}

  OpObserver Observer() {
    return [this](const OpEvent& event) {
      if (event.kind == OpEvent::Kind::kPost || event.kind == OpEvent::Kind::kWakeup) return;
      const std::lock_guard lock(mutex_);
      Times& times = At(event.node, event.op);
      size_t& time = event.kind == OpEvent::Kind::kStart ? times.start : times.complete;
      EXPECT_EQ(time, kNever) << "node " << event.node.value << " op " << event.op.value
                              << " twice";
      time = now_++;
    };
  }

  /// Every op completed; sends started after their `after`, and in channel order; channels
  /// delivered in order, nothing before it was sent. (A sender may see its completion before the
  /// receiver has polled its own.)
  void ExpectPlanOrder() {
    std::vector<std::vector<Times>> sends(plan_.channels().size());
    std::vector<std::vector<Times>> receives(plan_.channels().size());
    for (const Program& program : plan_.programs()) {
      OpId id;
      for (const Op& op : plan_.ops(program)) {
        const Times& times = At(program.node, id);
        ASSERT_NE(times.complete, kNever) << Describe(plan_, program, id);
        for (OpId before : plan_.after(op)) {
          EXPECT_LT(At(program.node, before).complete, times.start) << Describe(plan_, program, id);
        }
        (op.is_send() ? sends : receives)[op.channel.index()].push_back(times);
        ++id.value;
      }
    }
    for (size_t channel = 0; channel < sends.size(); ++channel) {
      ASSERT_EQ(sends[channel].size(), receives[channel].size());
      for (size_t i = 0; i < sends[channel].size(); ++i) {
        EXPECT_LT(sends[channel][i].start, receives[channel][i].complete) << "channel " << channel;
        if (i == 0) continue;
        EXPECT_LT(sends[channel][i - 1].start, sends[channel][i].start) << "channel " << channel;
        EXPECT_LT(receives[channel][i - 1].complete, receives[channel][i].complete)
            << "channel " << channel;
      }
    }
  }

 private:
  static constexpr size_t kNever = std::numeric_limits<size_t>::max();
  struct Times {
    size_t start = kNever;
    size_t complete = kNever;
  };

  Times& At(NodeId node, OpId op) { return times_[ProgramOf(plan_, node).op_begin + op.index()]; }

  const Plan& plan_;
  std::mutex mutex_;
  std::vector<Times> times_;
  size_t now_ = 0;
};

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_OP_TRACE_H_
