// SPDX-License-Identifier: Apache-2.0
//
// One page of doorbell registers serves all queues: a WAIT may only name a CQ whose page is its own
// queue's. A queue's memory is one registered piece of whole pages: for a CQ its ring and its
// doorbell record, for a QP its receive ring, its send ring (which hardware expects directly behind
// it) and its doorbell record. CQEs never hold payload (cs_req, cs_res), so that what a WAIT waited
// for is in the buffer that the next send reads.
//
// Which fields go into which command follows rdma-core (providers/mlx5/dr_devx.c) and DPDK
// (drivers/common/mlx5/mlx5_devx_cmds.c), whose QPs of this kind run on hardware; that the counters
// of a new CQ or QP may start elsewhere than at 0 is in neither.
#include "backends/mlx5/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "backends/nic/wqe.h"

namespace prepost::mlx5 {
namespace {

using prm::Command;
using prm::EventType;
using prm::In;
using prm::Set;

constexpr size_t kDoorbellRecordBytes = nic::kWqebbBytes;  // a cache line of its own

uint8_t Log2(uint32_t power) { return static_cast<uint8_t>(std::countr_zero(power)); }

Status CheckLog(const char* what, uint32_t entries, uint8_t log_max) {
  if (Log2(entries) <= log_max) return {};
  return Rejected(fmt::format("{} entries of a {}: the device takes {}", entries, what,
                              uint64_t{1} << log_max));
}

std::optional<nic::QpState> StateOf(uint64_t state) {
  switch (static_cast<prm::QpcState>(state)) {
    case prm::QpcState::kReset:
      return nic::QpState::kReset;
    case prm::QpcState::kInit:
      return nic::QpState::kInit;
    case prm::QpcState::kRtr:
      return nic::QpState::kReadyToReceive;
    case prm::QpcState::kRts:
      return nic::QpState::kReadyToSend;
    case prm::QpcState::kError:
      return nic::QpState::kError;
  }
  return std::nullopt;
}

/// Zeroed whole pages, freed with the last reference.
std::shared_ptr<std::byte> AllocatePages(size_t bytes) {
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(prm::kPageBytes, bytes));
  if (memory == nullptr) return nullptr;
  std::memset(memory, 0, bytes);
  return {memory, std::free};
}

uint32_t* RecordAt(std::span<std::byte> memory, size_t offset) {
  return reinterpret_cast<uint32_t*>(memory.data() + offset);
}

}  // namespace

/// Where a QP's parts lie in its memory.
struct Mlx5Device::QpShape {
  explicit QpShape(const nic::QpConfig& config)
      : rq_wqes(config.rq_wqes), sq_bytes(config.sq_wqebbs * nic::kWqebbBytes) {
    // The send ring must begin at a basic block.
    if (rq_wqes != 0) {
      const auto wqes_min = static_cast<uint32_t>(nic::kWqebbBytes) / config.rq_stride;
      rq_wqes = std::max(rq_wqes, wqes_min);
    }
    rq_bytes = size_t{rq_wqes} * config.rq_stride;
  }
  size_t record_at() const { return rq_bytes + sq_bytes; }

  uint32_t rq_wqes;
  size_t rq_bytes = 0;
  size_t sq_bytes;
};

Result<std::unique_ptr<Mlx5Device>> Mlx5Device::Open(std::unique_ptr<Verbs> verbs,
                                                     const Mlx5Options& options) {
  std::unique_ptr<Mlx5Device> device(new Mlx5Device(std::move(verbs), options));
  PREPOST_RETURN_IF_ERROR(device->Prepare());
  return device;
}

Status Mlx5Device::Prepare() {
  PREPOST_CHECK(options_.ack_timeout < 32);
  Result<Capabilities> capabilities = QueryCapabilities(*verbs_);
  if (!capabilities.ok()) return capabilities.status();
  capabilities_ = *capabilities;
  const std::string missing = options_.needs_cross_channel ? WhatIsMissing(capabilities_) : "";
  if (!missing.empty()) {
    return EnvironmentError("the device lacks " + missing);
  }
  PREPOST_RETURN_IF_ERROR(FindAddress());
  if (const int error = verbs_->AllocPd(&pd_); error != 0) {
    return CallError("cannot allocate a protection domain", error);
  }
  teardown_.Push([this] { verbs_->FreePd(pd_); });
  PREPOST_RETURN_IF_ERROR(UarOf(0).status());
  const int error = verbs_->QueryEqn(&eqn_);
  return error == 0 ? OpenChannel() : CallError("cannot find the event queue", error);
}

Result<Uar> Mlx5Device::UarOf(uint32_t doorbell_page) {
  const auto known = uars_.find(doorbell_page);
  if (known != uars_.end()) return known->second;
  Uar uar;
  int error = verbs_->AllocUar(UarKind::kBlueFlame, &uar);
  if (error != 0) error = verbs_->AllocUar(UarKind::kNonCached, &uar);
  if (error != 0) return CallError("cannot allocate a doorbell page", error);
  teardown_.Push([this, doorbell_page, uar] {
    verbs_->FreeUar(uar);
    uars_.erase(doorbell_page);
  });
  return uars_[doorbell_page] = uar;
}

/// Registers `bytes` of new memory, rounded up to whole pages, for one queue.
Result<Umem> Mlx5Device::MakeQueueMemory(size_t bytes, std::span<std::byte>* memory) {
  const size_t whole = (bytes + prm::kPageBytes - 1) / prm::kPageBytes * prm::kPageBytes;
  std::shared_ptr<std::byte> pages = AllocatePages(whole);
  if (pages == nullptr) return EnvironmentError(fmt::format("no memory for {} bytes", whole));
  *memory = {pages.get(), whole};
  Umem umem;
  if (const int error = verbs_->RegisterUmem(*memory, &umem); error != 0) {
    return CallError("cannot register the memory of a queue", error);
  }
  teardown_.Push([this, umem, pages] { verbs_->DeregisterUmem(umem); });
  return umem;
}

/// Completes the header of `in`.
Result<Object> Mlx5Device::Create(Command command, prm::ObjectCommand& in, uint32_t* number) {
  Set(in, prm::in::kOpcode, static_cast<uint16_t>(command));
  prm::Header out = {};
  Object object;
  if (const int error = verbs_->CreateObject(in, out, &object); error != 0) {
    return CallError(prm::Name(command), error, out);
  }
  teardown_.Push([this, object] { verbs_->DestroyObject(object); });
  *number = static_cast<uint32_t>(prm::Get(out, prm::out::kNumber));
  ++counters_.objects;
  return object;
}

Result<nic::Cq> Mlx5Device::CreateCq(const nic::CqConfig& config) {
  const size_t before = teardown_.size();
  Result<nic::Cq> cq = MakeCq(config);
  if (!cq.ok()) teardown_.UnwindTo(before);
  return cq;
}

Result<nic::Cq> Mlx5Device::MakeCq(const nic::CqConfig& config) {
  PREPOST_RETURN_IF_ERROR(nic::CheckSizes(config));
  PREPOST_RETURN_IF_ERROR(CheckLog("CQ", config.entries, capabilities_.log_max_cq_sz));
  const Result<Uar> uar = UarOf(config.doorbell_page);
  if (!uar.ok()) return uar.status();
  const size_t ring_bytes = size_t{config.entries} * nic::kCqeBytes;
  std::span<std::byte> memory;
  const Result<Umem> umem = MakeQueueMemory(ring_bytes + kDoorbellRecordBytes, &memory);
  if (!umem.ok()) return umem.status();
  for (size_t at = nic::cqe::kOpcodeOwner; at < ring_bytes; at += nic::kCqeBytes) {
    memory[at] = std::byte{nic::cqe::kInvalid};
  }
  CqHost host{.uar = *uar,
              .doorbell_record = RecordAt(memory, ring_bytes),
              .producer_base = config.producer_base};
  host.doorbell_record[nic::kConsumerRecord] = nic::BigEndian(config.producer_base);

  prm::ObjectCommand in = {};
  using namespace prm::cqc;
  Set(in, In(prm::kCqc, kOi), config.ignore_overrun);
  Set(in, In(prm::kCqc, kCc), config.collapsed);
  Set(in, In(prm::kCqc, kLogCqSize), Log2(config.entries));
  Set(in, In(prm::kCqc, kUarPage), uar->page_id);
  Set(in, In(prm::kCqc, kEqn), eqn_);
  Set(in, In(prm::kCqc, kConsumerCounter), config.producer_base);
  Set(in, In(prm::kCqc, kProducerCounter), config.producer_base);
  Set(in, In(prm::kCqc, kDbrUmemValid), 1);
  Set(in, In(prm::kCqc, kDbrUmemId), umem->id);
  Set(in, In(prm::kCqc, kDbrAddr), ring_bytes);
  Set(in, prm::cq_command::kCqUmemId, umem->id);
  Set(in, prm::cq_command::kCqUmemValid, 1);
  uint32_t number = 0;
  Result<Object> object = Create(Command::kCreateCq, in, &number);
  if (!object.ok()) return object.status();
  host.object = *object;
  for (const EventType type : {EventType::kCompletion, EventType::kCqError}) {
    PREPOST_RETURN_IF_ERROR(Subscribe(*object, type, number));
  }
  CqHost& kept = cqs_[number] = host;
  return nic::Cq{.number = number,
                 .ring = memory.first(ring_bytes),
                 .doorbell_record = kept.doorbell_record,
                 .producer_base = config.producer_base,
                 .cqes_read = &kept.cqes_read};
}

Result<nic::Qp> Mlx5Device::CreateQp(const nic::QpConfig& config) {
  const size_t before = teardown_.size();
  Result<nic::Qp> qp = MakeQp(config);
  if (!qp.ok()) teardown_.UnwindTo(before);
  return qp;
}

Result<nic::Qp> Mlx5Device::MakeQp(const nic::QpConfig& config) {
  PREPOST_RETURN_IF_ERROR(nic::CheckSizes(config));
  PREPOST_RETURN_IF_ERROR(FindCq(config.send_cq).status());
  PREPOST_RETURN_IF_ERROR(FindCq(config.recv_cq).status());
  const Result<Uar> uar = UarOf(config.doorbell_page);
  if (!uar.ok()) return uar.status();
  const QpShape shape(config);
  PREPOST_RETURN_IF_ERROR(CheckLog("send queue", config.sq_wqebbs, capabilities_.log_max_qp_sz));
  if (shape.rq_wqes != 0) {
    PREPOST_RETURN_IF_ERROR(CheckLog("receive queue", shape.rq_wqes, capabilities_.log_max_qp_sz));
  }
  std::span<std::byte> memory;
  const Result<Umem> umem = MakeQueueMemory(shape.record_at() + kDoorbellRecordBytes, &memory);
  if (!umem.ok()) return umem.status();
  QpHost host{.uar = *uar,
              .doorbell_record = RecordAt(memory, shape.record_at()),
              .rnr_retry = config.rnr_retry,
              .takes_atomics = config.takes_atomics};
  host.doorbell_record[nic::kSendRecord] = nic::BigEndian(uint32_t{config.sq_base});
  prm::ObjectCommand in = CreateQpCommand(config, shape, umem->id, uar->page_id);
  uint32_t number = 0;
  Result<Object> object = Create(Command::kCreateQp, in, &number);
  if (!object.ok()) return object.status();
  host.object = *object;
  // A queue that stands at a WAIT never drains by itself. Should this fail, destroying it reports
  // why.
  teardown_.Push([this, number, of = *object] {
    prm::Header out = {};
    std::ignore = verbs_->ModifyObject(of, CommandHeader(Command::k2Rst, 0, number), out);
  });
  for (const EventType type : {EventType::kQpFatal, EventType::kQpRequest, EventType::kQpAccess}) {
    PREPOST_RETURN_IF_ERROR(Subscribe(*object, type, number));
  }
  qps_[number] = host;
  return nic::Qp{.number = number,
                 .sq = memory.subspan(shape.rq_bytes, shape.sq_bytes),
                 .rq = memory.first(shape.rq_bytes),
                 .doorbell_record = host.doorbell_record};
}

prm::ObjectCommand Mlx5Device::CreateQpCommand(const nic::QpConfig& config, const QpShape& shape,
                                               uint32_t umem_id, uint32_t page_id) const {
  prm::ObjectCommand in = {};
  using namespace prm::qpc;
  const auto set = [&in](prm::Field field, uint64_t value) {
    Set(in, In(prm::kQpc, field), value);
  };
  set(kPmState, prm::kPmMigrated);
  set(kPd, pd_.number);
  set(kUarPage, page_id);
  if (capabilities_.cqe_version != 0) set(kUserIndex, prm::kDefaultUserIndex);
  set(kTsFormat, capabilities_.default_ts_format);
  set(kCqnSend, config.send_cq);
  set(kCqnReceive, config.recv_cq);
  set(kLogSqSize, Log2(config.sq_wqebbs));
  if (shape.rq_wqes == 0) {
    set(kRqType, static_cast<uint8_t>(prm::RqType::kNone));
  } else {
    set(kLogRqSize, Log2(shape.rq_wqes));
    set(kLogRqStride, Log2(config.rq_stride) - Log2(nic::kSegmentBytes));
  }
  set(kCdMaster, config.cd_master);
  set(kCdSlaveSend, config.managed_send);
  set(kCdSlaveReceive, config.managed_recv);
  set(kHwSqWqebbCounter, config.sq_base);
  set(kSwSqWqebbCounter, config.sq_base);
  set(kDbrUmemValid, 1);
  set(kDbrUmemId, umem_id);
  set(kDbrAddr, shape.record_at());
  Set(in, prm::qp_command::kWqUmemId, umem_id);
  Set(in, prm::qp_command::kWqUmemValid, 1);
  return in;
}

Result<Mlx5Device::CqHost*> Mlx5Device::FindCq(uint32_t cqn) {
  const auto found = cqs_.find(cqn);
  if (found == cqs_.end()) return Rejected(fmt::format("CQ {:#x} does not exist", cqn));
  return &found->second;
}

Result<Mlx5Device::QpHost*> Mlx5Device::FindQp(uint32_t qpn) {
  const auto found = qps_.find(qpn);
  if (found == qps_.end()) return Rejected(fmt::format("QP {:#x} does not exist", qpn));
  return &found->second;
}

Result<prm::ObjectCommand> Mlx5Device::Query(Command command, const char* what, Object object,
                                             uint32_t number) {
  prm::ObjectCommand out = {};
  const int error = verbs_->QueryObject(object, CommandHeader(command, 0, number), out);
  if (error == 0) return out;
  return CallError(fmt::format("{} of {} {:#x}", prm::Name(command), what, number), error, out);
}

Result<nic::QpCounters> Mlx5Device::QueryQp(uint32_t qpn) {
  const Result<QpHost*> qp = FindQp(qpn);
  if (!qp.ok()) return qp.status();
  const Result<prm::ObjectCommand> out = Query(Command::kQueryQp, "QP", (*qp)->object, qpn);
  if (!out.ok()) return out.status();
  using namespace prm::qpc;
  const auto get = [&out](prm::Field field) { return prm::Get(*out, In(prm::kQpc, field)); };
  const std::optional<nic::QpState> state = StateOf(get(kState));
  if (!state) {
    return EnvironmentError(
        fmt::format("QP {:#x} is in state {}, which is not known", qpn, get(kState)));
  }
  return nic::QpCounters{.state = *state,
                         .sq_posted = static_cast<uint16_t>(get(kSwSqWqebbCounter)),
                         .sq_fetched = static_cast<uint16_t>(get(kHwSqWqebbCounter)),
                         .rq_posted = static_cast<uint16_t>(get(kSwRqCounter)),
                         .rq_taken = static_cast<uint16_t>(get(kHwRqCounter))};
}

Result<nic::CqCounters> Mlx5Device::QueryCq(uint32_t cqn) {
  const Result<CqHost*> cq = FindCq(cqn);
  if (!cq.ok()) return cq.status();
  const Result<prm::ObjectCommand> out = Query(Command::kQueryCq, "CQ", (*cq)->object, cqn);
  if (!out.ok()) return out.status();
  using namespace prm::cqc;
  const auto get = [&out](prm::Field field) { return prm::Get(*out, In(prm::kCqc, field)); };
  return nic::CqCounters{
      .producer = static_cast<uint32_t>(get(kProducerCounter)),
      .consumer = static_cast<uint32_t>(get(kConsumerCounter)),
      .is_overrun = get(kStatus) == static_cast<uint8_t>(prm::CqcStatus::kOverflow)};
}

Result<uint32_t> Mlx5Device::RegisterMemory(std::span<const std::byte> memory, nic::Access access) {
  if (memory.empty()) return Rejected("memory of 0 bytes cannot be registered");
  MemoryRegion region;
  if (const int error = verbs_->RegisterMemory(pd_, memory, access, &region); error != 0) {
    return CallError(fmt::format("cannot register {} bytes of memory", memory.size()), error);
  }
  regions_[region.key] = region;
  teardown_.Push([this, key = region.key] { std::ignore = DeregisterMemory(key); });
  ++counters_.objects;
  return region.key;
}

Status Mlx5Device::DeregisterMemory(uint32_t key) {
  const auto region = regions_.find(key);
  if (region == regions_.end()) return Rejected(fmt::format("key {:#x} does not exist", key));
  const int error = verbs_->DeregisterMemory(region->second);
  regions_.erase(region);
  return error == 0 ? Status() : CallError(fmt::format("cannot deregister key {:#x}", key), error);
}

}  // namespace prepost::mlx5
