// SPDX-License-Identifier: Apache-2.0
//
// The calls that are not firmware commands: what a kernel does for a process. The commands are in
// stand_in_commands.cc.
#include "backends/mlx5/stand_in/stand_in.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>

#include "backends/mlx5/device.h"
#include "backends/mlx5/stand_in/stand_in_address.h"
#include "backends/nic/wqe.h"
#include "ir/base/count.h"

namespace prepost::mlx5 {
namespace {

using prm::EventType;

}  // namespace

StandIn::~StandIn() {
  if (const std::string left = Leftovers(); !left.empty()) {
    nic_.ReportMisuse("mlx5: closed with objects left: " + left);
  }
  for (const auto& [id, qp] : qps_) PREPOST_CHECK(nic_.DestroyQp(qp.qpn).ok());
  for (const auto& [id, cq] : cqs_) PREPOST_CHECK(nic_.DestroyCq(cq.cqn).ok());
  for (const auto& [id, region] : regions_) PREPOST_CHECK(nic_.RemoveMemory(region.key).ok());
}

std::string StandIn::Leftovers() const {
  std::string left;
  const auto add = [&left](size_t count, const char* what) {
    if (count != 0) left += fmt::format("{}{} {}", left.empty() ? "" : ", ", count, what);
  };
  add(qps_.size(), "QPs");
  add(cqs_.size(), "CQs");
  add(umems_.size(), "umems");
  add(regions_.size(), "memory regions");
  add(uars_.size(), "doorbell pages");
  add(pds_.size(), "protection domains");
  add(channel_ != 0, "event channels");
  return left;
}

uint32_t StandIn::Memory::Load(size_t word) const {
  auto* words = reinterpret_cast<uint32_t*>(record.data());
  return std::atomic_ref(words[word]).load(std::memory_order_acquire);
}

int StandIn::Refuse(int error, std::string why) {
  last_refusal_ = std::move(why);
  return error;
}

int StandIn::AllocUar(UarKind kind, Uar* uar) {
  if (kind == UarKind::kBlueFlame && !options_.has_blue_flame) {
    return Refuse(EOPNOTSUPP, "no BlueFlame pages");
  }
  const uint32_t id = next_++;
  *uar = {HandleOf(id), id};
  uars_[id] = *uar;
  return 0;
}

int StandIn::FreeUar(Uar uar) {
  const uint32_t id = IdOf(uar.handle);
  const auto uses = [id](const auto& entry) { return entry.second.uar_page == id; };
  if (std::ranges::any_of(cqs_, uses) || std::ranges::any_of(qps_, uses)) {
    return Refuse(EBUSY, "the doorbell page is in use");
  }
  return uars_.erase(id) == 1 ? 0 : Refuse(EINVAL, "no such doorbell page");
}

int StandIn::RegisterUmem(std::span<std::byte> memory, Umem* umem) {
  // A kernel takes any memory, and then counts offsets from the start of its first page.
  if (memory.empty() || reinterpret_cast<uintptr_t>(memory.data()) % prm::kPageBytes != 0 ||
      memory.size() % prm::kPageBytes != 0) {
    return Refuse(EINVAL, "the memory is not whole pages");
  }
  const uint32_t id = next_++;
  umems_[id] = memory;
  *umem = {HandleOf(id), id};
  return 0;
}

bool StandIn::IsUmemUsed(uint32_t id) const {
  const auto uses = [id](const auto& entry) {
    return entry.second.memory.umem == id || entry.second.memory.record_umem == id;
  };
  return std::ranges::any_of(cqs_, uses) || std::ranges::any_of(qps_, uses);
}

int StandIn::DeregisterUmem(Umem umem) {
  const uint32_t id = IdOf(umem.handle);
  if (IsUmemUsed(id)) return Refuse(EBUSY, "a queue lies in the umem");
  return umems_.erase(id) == 1 ? 0 : Refuse(EINVAL, "no such umem");
}

int StandIn::DestroyObject(Object object) {
  const uint32_t id = IdOf(object.handle);
  if (const auto qp = qps_.find(id); qp != qps_.end()) {
    const Result<nic::QpCounters> now = nic_.QueryQp(qp->second.qpn);
    if (now.ok() &&
        (now->state == nic::QpState::kReadyToReceive || now->state == nic::QpState::kReadyToSend)) {
      nic_.ReportMisuse(fmt::format("mlx5: QP {:#x} is destroyed in state {}", qp->second.qpn,
                                    nic::Name(now->state)));
    }
    PREPOST_CHECK(nic_.DestroyQp(qp->second.qpn).ok());
    qps_.erase(qp);
    return 0;
  }
  const auto cq = cqs_.find(id);
  if (cq == cqs_.end()) return Refuse(EINVAL, "no such object");
  if (const Status status = nic_.DestroyCq(cq->second.cqn); !status.ok()) {
    return Refuse(EBUSY, status.message());
  }
  cqs_.erase(cq);
  return 0;
}

int StandIn::QueryEqn(uint32_t* eqn) {
  *eqn = stand_in::kEqn;
  return 0;
}

int StandIn::AllocPd(ProtectionDomain* pd) {
  const uint32_t id = next_++;
  *pd = {HandleOf(id), id};
  pds_[id] = *pd;
  return 0;
}

int StandIn::FreePd(ProtectionDomain pd) {
  const uint32_t id = IdOf(pd.handle);
  const auto uses = [id](const auto& entry) { return entry.second.pd == id; };
  if (std::ranges::any_of(qps_, uses) || std::ranges::any_of(regions_, uses)) {
    return Refuse(EBUSY, "the protection domain is in use");
  }
  return pds_.erase(id) == 1 ? 0 : Refuse(EINVAL, "no such protection domain");
}

int StandIn::RegisterMemory(ProtectionDomain pd, std::span<const std::byte> memory,
                            nic::Access access, MemoryRegion* region) {
  if (!pds_.contains(IdOf(pd.handle))) return Refuse(EINVAL, "no such protection domain");
  if (memory.empty()) return Refuse(EINVAL, "the memory is empty");
  if (access.remote_write && !access.local_write) {
    return Refuse(EINVAL, "remote write without local write");
  }
  for (const auto& [id, qp] : qps_) {
    if (qp.pd != IdOf(pd.handle)) return Refuse(EINVAL, "a QP is of another protection domain");
  }
  const uint32_t id = next_++;
  const uint32_t key = nic_.AddMemory(memory, access);
  regions_[id] = {IdOf(pd.handle), key};
  *region = {HandleOf(id), key};
  return 0;
}

int StandIn::DeregisterMemory(MemoryRegion region) {
  const auto found = regions_.find(IdOf(region.handle));
  if (found == regions_.end()) return Refuse(EINVAL, "no such memory region");
  PREPOST_CHECK(nic_.RemoveMemory(found->second.key).ok());
  regions_.erase(found);
  return 0;
}

int StandIn::QueryPort(uint8_t port, PortAttributes* attributes) {
  if (port != stand_in::kPort) return Refuse(EINVAL, "no such port");
  *attributes = {.is_active = options_.is_active,
                 .is_ethernet = options_.is_ethernet,
                 .needs_grh = options_.needs_grh,
                 .mtu = options_.mtu,
                 .gid_count = stand_in::kGidCount};
  if (options_.is_ethernet) return 0;
  const std::optional<uint16_t> lid = stand_in::LidOf(nic_.node());
  if (!lid) return Refuse(ENODEV, "there is no LID for so many nodes");
  attributes->lid = *lid;
  return 0;
}

int StandIn::QueryGid(uint8_t port, uint32_t index, GidEntry* entry) {
  if (port != stand_in::kPort || index >= stand_in::kGidCount) return Refuse(EINVAL, "no such GID");
  if (index == stand_in::kEmptyGid) return ENODATA;
  *entry = {.gid = stand_in::GidOf(nic_.node(), index), .is_roce_v2 = stand_in::IsRoceV2(index)};
  return 0;
}

int StandIn::ResolveMac(ProtectionDomain pd, uint8_t port, uint32_t gid_index, const Gid& remote,
                        MacAddress* mac) {
  if (!pds_.contains(IdOf(pd.handle)) || port != stand_in::kPort ||
      !stand_in::IsRoceV2(gid_index)) {
    return Refuse(EINVAL, "no such protection domain, port or GID");
  }
  const std::optional<NodeId> node = stand_in::NodeOf(remote);
  if (!node) return Refuse(EHOSTUNREACH, "nobody has this GID");
  *mac = stand_in::MacOf(*node);
  return 0;
}

int StandIn::OpenEventChannel(EventChannel* channel) {
  if (channel_ != 0) return Refuse(EBUSY, "there is an event channel");
  const Result<int> file = nic_.EventFile();
  if (!file.ok()) return Refuse(EMFILE, file.status().message());
  channel_ = next_++;
  *channel = {HandleOf(channel_), *file};
  return 0;
}

bool StandIn::IsChannel(EventChannel channel) const {
  return channel_ != 0 && IdOf(channel.handle) == channel_;
}

int StandIn::CloseEventChannel(EventChannel channel) {
  if (!IsChannel(channel)) return Refuse(EINVAL, "no such channel");
  channel_ = 0;
  for (auto& [id, cq] : cqs_) cq.cookies.clear();
  for (auto& [id, qp] : qps_) qp.cookies.clear();
  return 0;
}

/// Null when `object` is none that has such events.
StandIn::Cookies* StandIn::CookiesOf(Object object, EventType type) {
  const bool is_of_cq = type == EventType::kCompletion || type == EventType::kCqError;
  const uint32_t id = IdOf(object.handle);
  if (is_of_cq) {
    const auto cq = cqs_.find(id);
    return cq == cqs_.end() ? nullptr : &cq->second.cookies;
  }
  const auto qp = qps_.find(id);
  return qp == qps_.end() ? nullptr : &qp->second.cookies;
}

int StandIn::Subscribe(EventChannel channel, Object object, EventType type, uint64_t cookie) {
  Cookies* cookies = CookiesOf(object, type);
  if (!IsChannel(channel) || cookies == nullptr) {
    return Refuse(EINVAL, "no such channel, or no object with such events");
  }
  if (type != EventType::kCompletion && !options_.tells_errors) {
    return Refuse(EINVAL, "no events of errors");
  }
  if (cookies->contains(type)) return Refuse(EEXIST, "the events are subscribed to");
  (*cookies)[type] = cookie;
  return 0;
}

/// Nobody hears what is not subscribed to.
void StandIn::Queue(const Cookies& cookies, EventType type, std::deque<uint64_t>* events) {
  if (const auto found = cookies.find(type); found != cookies.end()) {
    events->push_back(found->second);
  }
}

void StandIn::SortErrors() {
  for (const nic::ErrorEvent& error : nic_.TakeErrors()) SortError(error);
}

void StandIn::SortError(const nic::ErrorEvent& error) {
  const auto of_qp = [&](EventType type) {
    if (const QpEntry* qp = FindQp(error.number)) Queue(qp->cookies, type, &object_events_);
  };
  switch (error.kind) {
    case nic::ErrorEvent::Kind::kErrorCqe:
      return;  // hardware reports a CQE, not which one
    case nic::ErrorEvent::Kind::kCqError:
      if (const CqEntry* cq = FindCq(error.number)) {
        Queue(cq->cookies, EventType::kCqError, &object_events_);
      }
      return;
    case nic::ErrorEvent::Kind::kQpFatal:
      return of_qp(EventType::kQpFatal);
    case nic::ErrorEvent::Kind::kQpRequest:
      return of_qp(EventType::kQpRequest);
    case nic::ErrorEvent::Kind::kQpAccess:
      return of_qp(EventType::kQpAccess);
    case nic::ErrorEvent::Kind::kDeviceFatal:
      return device_events_.push_back({.kind = DeviceEvent::Kind::kFatal});
    case nic::ErrorEvent::Kind::kPortDown:
      return device_events_.push_back(
          {.kind = DeviceEvent::Kind::kPortDown, .port = static_cast<uint8_t>(error.number)});
  }
}

int StandIn::TakeEvent(EventChannel channel, uint64_t* cookie) {
  if (!IsChannel(channel)) return Refuse(EINVAL, "no such channel");
  SortErrors();
  while (object_events_.empty()) {
    const std::optional<uint32_t> cqn = nic_.TakeEvent();
    if (!cqn) return EAGAIN;
    CqEntry* cq = FindCq(*cqn);
    if (cq == nullptr) continue;  // destroyed meanwhile
    ++cq->events;
    Queue(cq->cookies, EventType::kCompletion, &object_events_);
  }
  *cookie = object_events_.front();
  object_events_.pop_front();
  return 0;
}

int StandIn::TakeDeviceEvent(EventChannel channel, DeviceEvent* event) {
  if (!IsChannel(channel)) return Refuse(EINVAL, "no such channel");
  SortErrors();
  if (device_events_.empty()) return EAGAIN;
  *event = device_events_.front();
  device_events_.pop_front();
  return 0;
}

void StandIn::StoreDoorbell(Uar uar, uint64_t bytes) {
  std::byte store[sizeof bytes];
  std::memcpy(store, &bytes, sizeof bytes);
  const uint32_t qpn = nic::LoadBigEndian<uint32_t>(store + nic::control::kQpn) >> 8;
  if (const QpEntry* qp = FindQp(qpn); qp != nullptr && qp->uar_page != uar.page_id) {
    return nic_.ReportMisuse(fmt::format("mlx5: doorbell for QP {:#x} on page {:#x}, its is {:#x}",
                                         qpn, uar.page_id, qp->uar_page));
  }
  nic_.Doorbell(bytes);
}

void StandIn::StoreArm(Uar uar, uint64_t bytes) {
  const auto store = std::bit_cast<std::array<std::byte, sizeof bytes>>(bytes);
  const auto cqn = static_cast<uint32_t>(prm::Get(store, prm::arm::kCqn));
  const auto wrong = [&](const std::string& what) {
    nic_.ReportMisuse(fmt::format("mlx5: arming of CQ {:#x}: {}", cqn, what));
  };
  CqEntry* cq = FindCq(cqn);
  if (cq == nullptr) return wrong("it does not exist");
  if (cq->uar_page != uar.page_id) return wrong("on a page that is not its own");
  uint32_t upper = 0;
  std::memcpy(&upper, store.data(), sizeof upper);
  if (cq->memory.Load(prm::kArmRecord) != upper)
    return wrong("its doorbell record says something else");
  const uint64_t serial = prm::Get(store, prm::arm::kSerial);
  if (serial != (cq->events & 3u)) {
    return wrong(fmt::format("serial {} after {}", serial, Count(cq->events, "event")));
  }
  const auto consumer = static_cast<uint32_t>(prm::Get(store, prm::arm::kConsumer));
  const bool errors_only = prm::Get(store, prm::arm::kSolicitedOnly) != 0;
  PREPOST_CHECK((errors_only ? nic_.ArmForErrors(cqn) : nic_.Arm(cqn, consumer)).ok());
}

StandIn::CqEntry* StandIn::FindCq(uint64_t cqn) {
  return const_cast<CqEntry*>(std::as_const(*this).FindCq(cqn));
}

StandIn::QpEntry* StandIn::FindQp(uint64_t qpn) {
  const auto found =
      std::ranges::find_if(qps_, [qpn](const auto& entry) { return entry.second.qpn == qpn; });
  return found == qps_.end() ? nullptr : &found->second;
}

const StandIn::CqEntry* StandIn::FindCq(uint64_t cqn) const {
  const auto found =
      std::ranges::find_if(cqs_, [cqn](const auto& entry) { return entry.second.cqn == cqn; });
  return found == cqs_.end() ? nullptr : &found->second;
}

Result<std::unique_ptr<nic::Device>> OpenOnStandIn(nic::NicModel& nic,
                                                   const StandInOptions& options) {
  Result<std::unique_ptr<Mlx5Device>> device =
      Mlx5Device::Open(std::make_unique<StandIn>(nic, options));
  if (!device.ok()) return device.status();
  return std::unique_ptr<nic::Device>(*std::move(device));
}

}  // namespace prepost::mlx5
