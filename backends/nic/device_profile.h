// SPDX-License-Identifier: Apache-2.0
//
// DeviceProfile: what one NIC can hold and do, as far as lowering must know it.
#ifndef PREPOST_BACKENDS_NIC_DEVICE_PROFILE_H_
#define PREPOST_BACKENDS_NIC_DEVICE_PROFILE_H_

#include <cstdint>
#include <string>

#include "prepost/backends/nic/wqe.h"

namespace prepost::nic {

/// Defaults: common values of mlx5 devices (log_max_qp_sz = 15, log_max_cq_sz = 22, log_max_qp =
/// 17, log_max_cq = 24).
struct DeviceProfile {
  std::string name = "default";
  uint32_t sq_wqebbs = 32768;     ///< basic blocks of a send queue
  uint32_t rq_wqes = 32768;       ///< entries of a receive queue
  uint32_t cq_entries = 4194304;  ///< entries of a completion queue
  uint32_t qps = 131072;
  uint32_t cqs = 16777216;
  uint32_t message_bytes = kRcMessageBytesMax;  ///< a block is one message
  /// How far a queue's producer index may run ahead of its consumer, and the index that a WAIT
  /// names ahead of the CQ's producer: indices compare cyclically.
  uint32_t wq_ahead = kWqIndexAhead;
  uint32_t cq_ahead = kCqIndexAhead;
  bool cross_channel = true;      ///< capability cd: WAIT, SEND_EN, managed queues
  bool cq_ignore_overrun = true;  ///< capability cq_oi

  friend bool operator==(const DeviceProfile&, const DeviceProfile&) = default;
};

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_DEVICE_PROFILE_H_
