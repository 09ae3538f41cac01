// SPDX-License-Identifier: Apache-2.0
#include "backends/emulated/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace prepost::emulated {
namespace {

// A port's address: this tag, then the node, both of 4 bytes.
constexpr uint32_t kAddressTag = 0x656d756c;  // "emul"

}  // namespace

EmulatedDevice::CqHost::CqHost(PageArena& arena, const nic::CqConfig& config)
    : ring(arena, size_t{config.entries} * nic::kCqeBytes) {
  for (size_t i = 0; i < config.entries; ++i) {
    ring.bytes()[i * nic::kCqeBytes + nic::cqe::kOpcodeOwner] = std::byte{nic::cqe::kInvalid};
  }
  doorbell_record[nic::kConsumerRecord] = nic::BigEndian(config.producer_base);
}

EmulatedDevice::QpHost::QpHost(PageArena& arena, const nic::QpConfig& config,
                               DoorbellRecord& record)
    : sq(arena, config.sq_wqebbs * nic::kWqebbBytes),
      rq(arena, size_t{config.rq_wqes} * config.rq_stride),
      doorbell_record(record),
      rnr_retry(config.rnr_retry),
      takes_atomics(config.takes_atomics) {
  doorbell_record[nic::kSendRecord] = nic::BigEndian(uint32_t{config.sq_base});
}

EmulatedDevice::~EmulatedDevice() {
  for (const QpHost& qp : qps_) PREPOST_CHECK(nic_.DestroyQp(qp.number).ok());
  for (const CqHost& cq : cqs_) PREPOST_CHECK(nic_.DestroyCq(cq.number).ok());
}

nic::PortAddress EmulatedDevice::port_address() const {
  nic::PortAddress address;
  nic::StoreBigEndian(address.bytes.data(), kAddressTag);
  nic::StoreBigEndian(address.bytes.data() + sizeof kAddressTag, nic_.node().value);
  return address;
}

Result<nic::Cq> EmulatedDevice::CreateCq(const nic::CqConfig& config) {
  PREPOST_RETURN_IF_ERROR(nic::CheckSizes(config));
  CqHost& host = cqs_.emplace_back(nic_.arena(), config);
  const Result<uint32_t> number =
      nic_.CreateCq(config, {host.ring.bytes(), host.doorbell_record.data()});
  if (!number.ok()) {
    cqs_.pop_back();
    return number.status();
  }
  host.number = *number;
  ++counters_.objects;
  return nic::Cq{.number = *number,
                 .ring = host.ring.bytes(),
                 .doorbell_record = host.doorbell_record.data(),
                 .producer_base = config.producer_base,
                 .cqes_read = &host.cqes_read};
}

Result<nic::Qp> EmulatedDevice::CreateQp(const nic::QpConfig& config) {
  PREPOST_RETURN_IF_ERROR(nic::CheckSizes(config));
  QpHost& host = qps_.emplace_back(nic_.work_queues(), config, records_.emplace_back());
  const Result<uint32_t> number =
      nic_.CreateQp(config, {host.sq.bytes(), host.rq.bytes(), host.doorbell_record.data()});
  if (!number.ok()) {
    qps_.pop_back();
    records_.pop_back();
    return number.status();
  }
  host.number = *number;
  ++counters_.objects;
  return nic::Qp{.number = *number,
                 .sq = host.sq.bytes(),
                 .rq = host.rq.bytes(),
                 .doorbell_record = host.doorbell_record.data()};
}

Status EmulatedDevice::Connect(uint32_t qpn, nic::QpAddress remote) {
  const std::byte* address = remote.port.bytes.data();
  if (nic::LoadBigEndian<uint32_t>(address) != kAddressTag) {
    return Rejected("the address is not that of an emulated device");
  }
  const NodeId node(nic::LoadBigEndian<uint32_t>(address + sizeof kAddressTag));
  const auto qp = std::ranges::find(qps_, qpn, &QpHost::number);
  if (qp == qps_.end()) return Rejected(fmt::format("QP {:#x} does not exist", qpn));
  PREPOST_RETURN_IF_ERROR(nic_.ResetToInit(qpn, qp->takes_atomics));
  Status status = nic_.InitToReceive(qpn, node, remote.qpn);
  if (status.ok()) return nic_.ReceiveToSend(qpn, qp->rnr_retry);
  PREPOST_CHECK(nic_.ToReset(qpn).ok());
  return status;
}

Result<uint32_t> EmulatedDevice::RegisterMemory(std::span<const std::byte> memory,
                                                nic::Access access) {
  if (memory.empty()) return Rejected("memory of 0 bytes cannot be registered");
  ++counters_.objects;
  return nic_.AddMemory(memory, access);
}

void EmulatedDevice::RingDoorbell(uint64_t first_bytes) {
  ++counters_.doorbells;
  nic_.Doorbell(first_bytes);
}

Status EmulatedDevice::RequestEvent(uint32_t cqn) {
  PREPOST_RETURN_IF_ERROR(nic_.ArmForNext(cqn));
  ++counters_.event_requests;
  return {};
}

Status EmulatedDevice::RequestErrorEvent(uint32_t cqn) {
  PREPOST_RETURN_IF_ERROR(nic_.ArmForErrors(cqn));
  ++counters_.event_requests;
  return {};
}

uint64_t EmulatedDevice::AckEvents() {
  uint64_t count = 0;
  while (nic_.TakeEvent()) ++count;
  return count;
}

nic::DeviceCounters EmulatedDevice::counters() const {
  nic::DeviceCounters counters = counters_;
  for (const CqHost& cq : cqs_) counters.cqes_read += cq.cqes_read;
  return counters;
}

}  // namespace prepost::emulated
