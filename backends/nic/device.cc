// SPDX-License-Identifier: Apache-2.0
#include "prepost/backends/nic/device.h"

#include <atomic>

namespace prepost::nic {

void PostSends(Device& device, const Qp& qp, uint16_t producer, uint16_t last) {
  std::atomic_ref(qp.doorbell_record[kSendRecord])
      .store(BigEndian<uint32_t>(producer), std::memory_order_release);
  uint64_t first_bytes = 0;
  const size_t at = size_t{last} * kWqebbBytes & (qp.sq.size() - 1);
  std::memcpy(&first_bytes, qp.sq.data() + at, sizeof first_bytes);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  device.RingDoorbell(first_bytes);
}

void PostReceives(const Qp& qp, uint16_t producer) {
  std::atomic_ref(qp.doorbell_record[kReceiveRecord])
      .store(BigEndian<uint32_t>(producer), std::memory_order_release);
}

}  // namespace prepost::nic
