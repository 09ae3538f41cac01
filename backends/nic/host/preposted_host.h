// SPDX-License-Identifier: Apache-2.0
//
// PrepostedHost: what the host of a preposted node does from the start on, whoever lets it: start,
// take what has completed and write what has become free, until the final completion is there. A
// member of a group polls it, a thread of its own waits in it, a host of many nodes gets their
// events, a simulated one acts at modelled times.
#ifndef PREPOST_BACKENDS_NIC_HOST_PREPOSTED_HOST_H_
#define PREPOST_BACKENDS_NIC_HOST_PREPOSTED_HOST_H_

#include <chrono>
#include <span>

#include "backends/nic/device.h"
#include "backends/nic/host/armed_node.h"
#include "ir/base/status.h"
#include "runtime/trace/report.h"

namespace prepost::nic {

/// `device` and `node`, which is the device's and armed before each Start(), must outlive it. One
/// thread.
class PrepostedHost {
 public:
  PrepostedHost(Device& device, ArmedNode& node) : device_(&device), node_(&node) {}

  ArmedNode& node() const { return *node_; }
  /// For each message of a sequence; counts go on from the first.
  void Start();
  /// As ArmedNode's: true at the end of the message that was armed last.
  Result<bool> Poll(std::chrono::milliseconds timeout, int wake_fd) {
    return Note(node_->Poll(timeout, wake_fd));
  }
  Result<bool> TakeEvents() { return Note(node_->TakeEvents()); }
  Result<bool> TakeEvents(std::span<const ErrorEvent> errors) {
    return Note(node_->TakeEvents(errors));
  }
  bool done() const { return is_done_; }
  /// Counts so far, by the device's counters: posts are doorbells. Times, bytes and retries are the
  /// caller's.
  NodeReport report() const;

 private:
  Result<bool> Note(Result<bool> done) {
    if (done.ok()) is_done_ = *done;
    return done;
  }

  Device* device_;
  ArmedNode* node_;
  bool is_started_ = false;
  bool is_done_ = false;
  DeviceCounters before_;   // the first start
  DeviceCounters started_;  // the first doorbells were rung
};

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_HOST_PREPOSTED_HOST_H_
