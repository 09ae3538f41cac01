// SPDX-License-Identifier: Apache-2.0
#include "backends/nic/host/preposted_host.h"

#include <utility>

namespace prepost::nic {

void PrepostedHost::Start() {
  const bool is_first = !std::exchange(is_started_, true);
  is_done_ = false;
  if (is_first) before_ = device_->counters();
  node_->Start();
  if (is_first) started_ = device_->counters();
}

NodeReport PrepostedHost::report() const {
  const DeviceCounters now = device_->counters();
  return {.node = node_->program().node,
          .host_posts = now.doorbells - before_.doorbells,
          .host_posts_during = now.doorbells - started_.doorbells,
          .host_event_requests_during = now.event_requests - started_.event_requests,
          .host_wakeups = now.wakeups - before_.wakeups,
          .host_completions = now.cqes_read - before_.cqes_read,
          .rearms = node_->feed().rearms(),
          .rearms_max = node_->program().rearms()};
}

}  // namespace prepost::nic
