// SPDX-License-Identifier: Apache-2.0
//
// DeviceProfile: what one NIC can hold and do, as far as lowering must know it, and its file, of
// the form that backends/nic/program/device_profile.schema.json describes.
#ifndef PREPOST_BACKENDS_NIC_PROGRAM_DEVICE_PROFILE_H_
#define PREPOST_BACKENDS_NIC_PROGRAM_DEVICE_PROFILE_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "backends/nic/wqe.h"
#include "ir/base/status.h"

namespace prepost::nic {

/// A ring of fewer entries has no halves that could be written in turn.
inline constexpr uint32_t kRingEntriesMin = 4;
/// Rings divide the 16-bit space of their indices.
inline constexpr uint32_t kRingEntriesMax = kWqIndexMask + 1;

/// Rings are powers of two: of another limit the next lower one is used. Defaults: common values of
/// mlx5 devices (log_max_qp_sz = 15, log_max_cq_sz = 22, log_max_qp = 17, log_max_cq = 24).
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

  /// Entries of a queue that can all be written at once; longer queues are written in parts.
  uint32_t sq_at_once() const { return std::min(std::bit_floor(sq_wqebbs), wq_ahead); }
  uint32_t rq_at_once() const { return std::min(std::bit_floor(rq_wqes), wq_ahead); }

  friend bool operator==(const DeviceProfile&, const DeviceProfile&) = default;
};

/// Reads one profile. Limits that the file lacks keep their defaults, capabilities must be named;
/// where values come from ("source") is for people and not kept. Errors: "name:line:col: /pointer:
/// ...".
Result<DeviceProfile> ReadDeviceProfile(std::istream& in, const std::string& name,
                                        std::vector<std::string>* warnings = nullptr);

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_PROGRAM_DEVICE_PROFILE_H_
