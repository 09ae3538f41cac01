// SPDX-License-Identifier: Apache-2.0
#include "backends/nic/device.h"

#include <fmt/format.h>
#include <poll.h>

#include <atomic>
#include <bit>
#include <cerrno>

#include "runtime/base/file_descriptor.h"

namespace prepost::nic {
namespace {

constexpr uint32_t kCqEntriesMax = 1u << 22;
constexpr uint32_t kSqWqebbsMax = 32768;
constexpr uint32_t kRqWqesMax = 32768;
constexpr uint32_t kRqStrideMax = 2048;

Status CheckPowerOfTwo(const char* what, uint32_t value, uint32_t limit) {
  if (std::has_single_bit(value) && value <= limit) return {};
  return Rejected(fmt::format("{} must be a power of two up to {}, not {}", what, limit, value));
}

}  // namespace

Status CheckSizes(const CqConfig& config) {
  if (config.producer_base > kCqIndexMask) {
    return Rejected(fmt::format("CQ base {} has more than 24 bits", config.producer_base));
  }
  return CheckPowerOfTwo("CQ entries", config.entries, kCqEntriesMax);
}

Status CheckSizes(const QpConfig& config) {
  if (config.rnr_retry > kRnrRetryForEver) {
    return Rejected(fmt::format("RNR retry {} is above 7", config.rnr_retry));
  }
  PREPOST_RETURN_IF_ERROR(CheckPowerOfTwo("SQ WQEBBs", config.sq_wqebbs, kSqWqebbsMax));
  if (config.rq_wqes == 0) return {};
  PREPOST_RETURN_IF_ERROR(CheckPowerOfTwo("RQ WQEs", config.rq_wqes, kRqWqesMax));
  PREPOST_RETURN_IF_ERROR(CheckPowerOfTwo("RQ stride", config.rq_stride, kRqStrideMax));
  if (config.rq_stride < kSegmentBytes) return Rejected("RQ stride is below 16 bytes");
  return {};
}

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

const char* Name(ErrorEvent::Kind kind) {
  switch (kind) {
    case ErrorEvent::Kind::kErrorCqe:
      return "error CQE";
    case ErrorEvent::Kind::kCqError:
      return "CQ error";
    case ErrorEvent::Kind::kQpFatal:
      return "QP fatal error";
    case ErrorEvent::Kind::kQpRequest:
      return "QP request error";
    case ErrorEvent::Kind::kQpAccess:
      return "QP access error";
    case ErrorEvent::Kind::kDeviceFatal:
      return "device fatal error";
    case ErrorEvent::Kind::kPortDown:
      return "port error";
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
  const size_t at = size_t{last} * kWqebbBytes & (qp.sq.size() - 1);
  PostSends(device, qp, producer, qp.sq.subspan(at, kWqebbBytes));
}

void PostSends(Device& device, const Qp& qp, uint16_t producer, std::span<const std::byte> first) {
  std::atomic_ref(qp.doorbell_record[kSendRecord])
      .store(BigEndian<uint32_t>(producer), std::memory_order_release);
  uint64_t value = 0;
  PREPOST_CHECK(first.size() >= sizeof value);
  std::memcpy(&value, first.data(), sizeof value);
  device.RingDoorbell(value);
}

void PostReceives(const Qp& qp, uint16_t producer) {
  std::atomic_ref(qp.doorbell_record[kReceiveRecord])
      .store(BigEndian<uint32_t>(producer), std::memory_order_release);
}

}  // namespace prepost::nic
