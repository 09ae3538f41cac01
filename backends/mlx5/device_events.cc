// SPDX-License-Identifier: Apache-2.0
//
// The stores to a device's doorbell page, and the events that come from it.
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "backends/mlx5/device.h"
#include "backends/nic/wqe.h"

namespace prepost::mlx5 {
namespace {

using prm::EventType;
using prm::Set;

/// What an event of the CQ or QP `number` comes with.
constexpr uint64_t CookieOf(EventType type, uint32_t number) {
  return static_cast<uint64_t>(type) << 32 | number;
}

}  // namespace

Status Mlx5Device::OpenChannel() {
  const int error = verbs_->OpenEventChannel(&channel_);
  if (error != 0) return CallError("cannot open an event channel", error);
  teardown_.Push([this] { verbs_->CloseEventChannel(channel_); });
  return {};
}

/// Which events are passed on is up to kernel and firmware. Without those of errors a host learns
/// of a broken QP by its CQEs.
Status Mlx5Device::Subscribe(Object object, EventType type, uint32_t number) {
  const int error = verbs_->Subscribe(channel_, object, type, CookieOf(type, number));
  const bool is_refused = error == EINVAL || error == EOPNOTSUPP;
  if (error == 0 || (is_refused && type != EventType::kCompletion)) return {};
  return CallError("cannot subscribe to a queue's events", error);
}

void Mlx5Device::RingDoorbell(uint64_t first_bytes) {
  ++counters_.doorbells;
  const auto bytes = std::bit_cast<std::array<std::byte, sizeof first_bytes>>(first_bytes);
  const auto qp = qps_.find(nic::LoadBigEndian<uint32_t>(bytes.data() + nic::control::kQpn) >> 8);
  verbs_->StoreDoorbell(qp == qps_.end() ? uars_.at(0) : qp->second.uar, first_bytes);
}

Status Mlx5Device::RequestEvent(uint32_t cqn) { return Arm(cqn, /*errors_only=*/false); }
Status Mlx5Device::RequestErrorEvent(uint32_t cqn) { return Arm(cqn, /*errors_only=*/true); }

Status Mlx5Device::Arm(uint32_t cqn, bool errors_only) {
  const Result<CqHost*> found = FindCq(cqn);
  if (!found.ok()) return found.status();
  CqHost& cq = **found;
  ++counters_.event_requests;
  cq.is_armed_for_errors = errors_only;
  std::array<std::byte, sizeof(uint64_t)> store = {};
  Set(store, prm::arm::kSerial, cq.arm_serial & 3u);
  Set(store, prm::arm::kConsumer, (cq.producer_base + cq.cqes_read) & nic::kCqIndexMask);
  Set(store, prm::arm::kSolicitedOnly, errors_only ? 1 : 0);
  Set(store, prm::arm::kCqn, cqn);
  const auto bytes = std::bit_cast<uint64_t>(store);
  uint32_t upper = 0;
  std::memcpy(&upper, store.data(), sizeof upper);
  std::atomic_ref(cq.doorbell_record[prm::kArmRecord]).store(upper, std::memory_order_release);
  verbs_->StoreArm(cq.uar, bytes);
  return {};
}

uint64_t Mlx5Device::AckEvents() {
  uint64_t count = 0;
  uint64_t cookie = 0;
  int error = 0;
  for (; (error = verbs_->TakeEvent(channel_, &cookie)) == 0; ++count) NoteEvent(cookie);
  const bool is_lost = error != EAGAIN;
  DeviceEvent event;
  for (; (error = verbs_->TakeDeviceEvent(channel_, &event)) == 0; ++count) NoteDeviceEvent(event);
  if (is_lost || error != EAGAIN) {  // the device was taken from the machine
    NoteFatal();
    ++count;
  }
  return count;
}

void Mlx5Device::NoteEvent(uint64_t cookie) {
  using Kind = nic::ErrorEvent::Kind;
  const auto number = static_cast<uint32_t>(cookie);
  switch (static_cast<EventType>(cookie >> 32)) {
    case EventType::kCompletion: {
      const auto cq = cqs_.find(number);
      if (cq == cqs_.end()) return;
      ++cq->second.arm_serial;
      if (cq->second.is_armed_for_errors) errors_.push_back({Kind::kErrorCqe, number});
      return;
    }
    case EventType::kCqError:
      return errors_.push_back({Kind::kCqError, number});
    case EventType::kQpFatal:
      return errors_.push_back({Kind::kQpFatal, number});
    case EventType::kQpRequest:
      return errors_.push_back({Kind::kQpRequest, number});
    case EventType::kQpAccess:
      return errors_.push_back({Kind::kQpAccess, number});
  }
}

void Mlx5Device::NoteDeviceEvent(const DeviceEvent& event) {
  switch (event.kind) {
    case DeviceEvent::Kind::kFatal:
      return NoteFatal();
    case DeviceEvent::Kind::kPortDown:
      if (event.port != options_.port) return;
      return errors_.push_back({nic::ErrorEvent::Kind::kPortDown, event.port});
    case DeviceEvent::Kind::kOther:
      return;
  }
}

/// Once: a device that is gone reports it at every poll.
void Mlx5Device::NoteFatal() {
  if (std::exchange(has_failed_, true)) return;
  errors_.push_back({nic::ErrorEvent::Kind::kDeviceFatal, 0});
}

std::vector<nic::ErrorEvent> Mlx5Device::TakeErrors() { return std::exchange(errors_, {}); }

nic::DeviceCounters Mlx5Device::counters() const {
  nic::DeviceCounters counters = counters_;
  for (const auto& [cqn, cq] : cqs_) counters.cqes_read += cq.cqes_read;
  return counters;
}

}  // namespace prepost::mlx5
