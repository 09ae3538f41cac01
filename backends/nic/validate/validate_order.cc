// SPDX-License-Identifier: Apache-2.0
//
// A WQE starts after the one before it in its queue has, a WAIT among these has then seen its CQE,
// and the WQE that gave that CQE has started even earlier. A WQE of a managed queue starts after
// the SEND_EN that lets it run. These steps backwards are searched breadth first until one is a
// WAIT for the receive in question.
//
// Example, node 1 of 0>1, 1>2, 1>3, with 1>3 after 1>2 only: QP 1<>3 has WAIT(sends of 1>2, 0),
// SEND. The SEND starts after the WAIT, that after the send of QP 1<>2, that after QP 1<>2's
// WAIT(receives of 0>1, 0): so block 0 is there.
#include "backends/nic/validate/validate_order.h"

#include <algorithm>

namespace prepost::nic {

WqeOrder::WqeOrder(const NodeSteps& node)
    : node_(node),
      signaled_(node.cqs),
      feeder_(node.cqs),
      enables_(node.queues.size()),
      master_(node.queues.size()) {
  size_t wqes = 0;
  for (size_t i = 0; i < node.queues.size(); ++i) {
    const QueueSteps& queue = node.queues[i];
    first_.push_back(wqes);
    wqes += queue.steps.size();
    for (uint32_t at = 0; at < queue.steps.size(); ++at) {
      const QueueStep& step = queue.steps[at];
      if (step.signaled) {
        signaled_[queue.send_cq].push_back(at);
        feeder_[queue.send_cq] = i;
      }
      if (step.kind == QueueStep::Kind::kEnable) {
        enables_[step.target].emplace_back(step.value, at);
        master_[step.target] = i;
      }
    }
  }
  seen_.assign(wqes, 0);
}

std::optional<uint32_t> WqeOrder::Follows(size_t queue, size_t at, uint32_t cq, uint32_t index) {
  ++search_;
  todo_.clear();
  Visit(queue, at);
  for (size_t next = 0; next < todo_.size(); ++next) {
    const auto [i, k] = todo_[next];
    const QueueStep& step = node_.queues[i].steps[k];
    if (step.kind == QueueStep::Kind::kWait) {
      if (step.target == cq && step.value >= index) return step.value;
      const std::vector<uint32_t>& gives = signaled_[step.target];
      if (step.value < gives.size()) Visit(feeder_[step.target], gives[step.value]);
    }
    if (node_.queues[i].managed) {
      const auto& enables = enables_[i];
      const auto by =
          std::ranges::upper_bound(enables, k, {}, &std::pair<uint32_t, uint32_t>::first);
      if (by != enables.end()) Visit(master_[i], by->second);
    }
    if (k != 0) Visit(i, k - 1);
  }
  return std::nullopt;
}

void WqeOrder::Visit(size_t queue, size_t at) {
  if (std::exchange(seen_[first_[queue] + at], search_) != search_) todo_.emplace_back(queue, at);
}

}  // namespace prepost::nic
