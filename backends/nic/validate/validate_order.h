// SPDX-License-Identifier: Apache-2.0
//
// WqeOrder: the order that one node's queues give to their WQEs, beyond what a queue's own WAITs
// say. Translation validation asks it for the few sends that wait for a block by way of another
// send.
#ifndef PREPOST_BACKENDS_NIC_VALIDATE_VALIDATE_ORDER_H_
#define PREPOST_BACKENDS_NIC_VALIDATE_VALIDATE_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "backends/nic/validate/validate_node.h"

namespace prepost::nic {

/// The order of steps that were validated: SEND_ENs have absolute limits, every CQ that is waited
/// on belongs to one queue and direction. Not for use by several threads.
class WqeOrder {
 public:
  /// Linear in WQEs. `node` must outlive it and not change.
  explicit WqeOrder(const NodeSteps& node);

  /// Which CQE of the receive CQ `cq`, number `index` or a later one, must be there before WQE `at`
  /// of `queue` can start; none when there is no such. Searches what is nearest first; at most at
  /// all WQEs of the node.
  std::optional<uint32_t> Follows(size_t queue, size_t at, uint32_t cq, uint32_t index);

 private:
  void Visit(size_t queue, size_t at);

  const NodeSteps& node_;
  std::vector<size_t> first_;                    // by queue: of its WQEs in seen_
  std::vector<std::vector<uint32_t>> signaled_;  // by CQ: WQEs whose CQEs it gets
  std::vector<size_t> feeder_;                   // by CQ: the queue of these
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> enables_;  // by queue: limit, WQE
  std::vector<size_t> master_;                                       // by queue: of these
  std::vector<uint32_t> seen_;                   // by WQE: the search that visited it
  std::vector<std::pair<size_t, size_t>> todo_;  // queue, WQE
  uint32_t search_ = 0;
};

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_VALIDATE_VALIDATE_ORDER_H_
