// SPDX-License-Identifier: Apache-2.0
#include "prepost/backends/nic/device.h"

#include <poll.h>

#include <atomic>
#include <cerrno>

#include "prepost/runtime/file_descriptor.h"

namespace prepost::nic {

const char* Name(QpState state) {
  switch (state) {
    case QpState::kReset:
      return "RST";
    case QpState::kInit:
      return "INIT";
    case QpState::kReadyToReceive:
      return "RTR";
    case QpState::kReadyToSend:
      return "RTS";
    case QpState::kError:
      return "ERR";
  }
  return "?";
}

Result<EventWait> WaitForEvent(Device& device, int wake_fd, std::chrono::milliseconds timeout) {
  const Result<int> events = device.EventFile();
  if (!events.ok()) return events.status();
  pollfd waits[] = {{.fd = *events, .events = POLLIN, .revents = 0},
                    {.fd = wake_fd, .events = POLLIN, .revents = 0}};
  const int timeout_ms = timeout.count() < 0 ? -1 : static_cast<int>(timeout.count());
  const int count = poll(waits, 2, timeout_ms);
  const int error = errno;
  device.CountWakeup();
  if (count < 0 && error != EINTR) {
    return SystemError(StatusCode::kEnvironment, "cannot wait for a device", error);
  }
  EventWait wait;
  if (count > 0) {
    wait.event = waits[0].revents != 0 && device.AckEvents() != 0;
    wait.woken = waits[1].revents != 0;
  }
  return wait;
}

void PostSends(Device& device, const Qp& qp, uint16_t producer, uint16_t last) {
  std::atomic_ref(qp.doorbell_record[kSendRecord])
      .store(BigEndian<uint32_t>(producer), std::memory_order_release);
  uint64_t first_bytes = 0;
  const size_t at = size_t{last} * kWqebbBytes & (qp.sq.size() - 1);
  std::memcpy(&first_bytes, qp.sq.data() + at, sizeof first_bytes);
  device.RingDoorbell(first_bytes);
}

void PostReceives(const Qp& qp, uint16_t producer) {
  std::atomic_ref(qp.doorbell_record[kReceiveRecord])
      .store(BigEndian<uint32_t>(producer), std::memory_order_release);
}

}  // namespace prepost::nic
