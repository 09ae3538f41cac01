// SPDX-License-Identifier: Apache-2.0
#include "backends/nic/host/queue_watch.h"

#include <optional>
#include <utility>

#include "backends/nic/host/armed_node.h"

namespace prepost::nic {

bool QueueWatch::HasMoved(const ArmedNode& node) {
  seen_.resize(node.program().qps.size() + node.program().cqs.size());
  if (HasMoved(node, moved_last_)) return true;
  bool has_moved = false;
  for (size_t queue = 0; queue < seen_.size(); ++queue) {
    if (!HasMoved(node, queue)) continue;
    has_moved = true;
    moved_last_ = queue;
  }
  return has_moved;
}

bool QueueWatch::HasMoved(const ArmedNode& node, size_t queue) {
  const size_t qps = node.program().qps.size();
  std::optional<uint64_t> now;
  if (queue < qps) {
    if (const std::optional<QpCounters> qp = node.Query(QpId::FromIndex(queue))) {
      now = uint64_t{qp->sq_fetched} << 16 | qp->rq_taken | static_cast<uint64_t>(qp->state) << 32;
    }
  } else if (const std::optional<CqCounters> cq = node.Query(CqId::FromIndex(queue - qps))) {
    now = cq->producer;
  }
  return now && std::exchange(seen_[queue], *now) != *now;
}

}  // namespace prepost::nic
