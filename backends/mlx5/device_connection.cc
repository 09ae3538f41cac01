// SPDX-License-Identifier: Apache-2.0
//
// A device's port and its address, and the steps of a QP from reset to being connected.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "backends/mlx5/device.h"
#include "backends/nic/wqe.h"
#include "runtime/device/ack_timeout.h"

namespace prepost::mlx5 {
namespace {

using prm::Command;
using prm::In;
using prm::Set;

constexpr uint8_t kRetries = 7;
constexpr uint8_t kRnrTimer = 1;  // 10 us: a receiver that is not ready soon will be
constexpr uint8_t kHops = 64;
constexpr uint32_t kUdpPortMask = 0x3fff;

// A port's address.
namespace address {
constexpr uint32_t kTag = 0x6d6c7835;  // "mlx5"
constexpr size_t kTagAt = 0;           // 4 bytes
constexpr size_t kIsEthernet = 4;      // 1 byte
constexpr size_t kMtu = 5;             // 1 byte
constexpr size_t kLid = 6;             // 2 bytes
constexpr size_t kGid = 8;             // 16 bytes
}  // namespace address

prm::ObjectCommand ModifyCommand(Command command, uint32_t qpn) {
  prm::ObjectCommand in = {};
  Set(in, prm::in::kOpcode, static_cast<uint16_t>(command));
  Set(in, prm::in::kNumber, qpn);
  return in;
}

}  // namespace

Status Mlx5Device::FindAddress() {
  PortAttributes port;
  if (const int error = verbs_->QueryPort(options_.port, &port); error != 0) {
    return CallError(fmt::format("cannot query port {}", options_.port), error);
  }
  if (!port.is_active) return EnvironmentError(fmt::format("port {} is not active", options_.port));
  if (port.needs_grh) {
    return EnvironmentError(fmt::format(
        "port {} cannot be reached by its LID alone, as with virtual functions", options_.port));
  }
  is_ethernet_ = port.is_ethernet;
  mtu_ = port.mtu;
  std::byte* at = address_.bytes.data();
  nic::StoreBigEndian(at + address::kTagAt, address::kTag);
  nic::StoreBigEndian(at + address::kIsEthernet, static_cast<uint8_t>(is_ethernet_));
  nic::StoreBigEndian(at + address::kMtu, mtu_);
  nic::StoreBigEndian(at + address::kLid, port.lid);
  return is_ethernet_ ? ChooseGid(port.gid_count) : Status();
}

Status Mlx5Device::ChooseGid(uint32_t gid_count) {
  constexpr uint16_t kLinkLocal = 0xfe80;
  std::optional<Gid> chosen;
  const uint32_t first = options_.gid_index.value_or(0);
  constexpr uint32_t kGidsMax = 256;  // ads::kSrcAddrIndex
  if (first >= kGidsMax) return EnvironmentError(fmt::format("GID {} cannot be named", first));
  const uint32_t end = options_.gid_index ? first + 1 : std::min(gid_count, kGidsMax);
  for (uint32_t index = first; index < end; ++index) {
    GidEntry entry;
    const int error = verbs_->QueryGid(options_.port, index, &entry);
    if (error == ENODATA) continue;
    if (error != 0) return CallError(fmt::format("cannot query GID {}", index), error);
    if (!entry.is_roce_v2) continue;
    const bool is_local = nic::LoadBigEndian<uint16_t>(entry.gid.data()) == kLinkLocal;
    if (chosen && is_local) continue;
    chosen = entry.gid;
    gid_index_ = index;
    if (!is_local) break;
  }
  if (!chosen) {
    return EnvironmentError(
        options_.gid_index
            ? fmt::format("GID {} of port {} is not one of RoCE v2", first, options_.port)
            : fmt::format("port {} has no GID of RoCE v2", options_.port));
  }
  std::ranges::copy(*chosen, address_.bytes.begin() + address::kGid);
  return {};
}

Status Mlx5Device::ModifyQp(uint32_t qpn, Command command, Input in) {
  const Result<QpHost*> qp = FindQp(qpn);
  if (!qp.ok()) return qp.status();
  prm::Header out = {};
  const int error = verbs_->ModifyObject((*qp)->object, in, out);
  if (error == 0) return {};
  return CallError(fmt::format("{} of QP {:#x}", prm::Name(command), qpn), error, out);
}

Status Mlx5Device::Connect(uint32_t qpn, nic::QpAddress remote) {
  const Result<QpHost*> qp = FindQp(qpn);
  if (!qp.ok()) return qp.status();
  using namespace prm::qpc;
  prm::ObjectCommand init = ModifyCommand(Command::kRst2Init, qpn);
  Set(init, In(prm::kQpc, kPmState), prm::kPmMigrated);
  Set(init, In(prm::kPath, prm::ads::kVhcaPortNum), options_.port);
  Set(init, In(prm::kQpc, kRre), 1);
  Set(init, In(prm::kQpc, kRwe), 1);
  if ((*qp)->takes_atomics) {
    Set(init, In(prm::kQpc, kRae), 1);
    Set(init, In(prm::kQpc, kAtomicMode), prm::kAtomicModeInfiniBand);
  }
  PREPOST_RETURN_IF_ERROR(ModifyQp(qpn, Command::kRst2Init, init));

  Status status = InitToReceive(qpn, remote);
  if (status.ok()) status = ReceiveToSend(qpn, (*qp)->rnr_retry, remote.round_trip);
  if (status.ok()) return {};
  // Should this fail too, the first error explains more.
  std::ignore = ModifyQp(qpn, Command::k2Rst, CommandHeader(Command::k2Rst, 0, qpn));
  return status;
}

Status Mlx5Device::ReceiveToSend(uint32_t qpn, uint8_t rnr_retry,
                                 std::chrono::microseconds round_trip) {
  using namespace prm::qpc;
  prm::ObjectCommand send = ModifyCommand(Command::kRtr2Rts, qpn);
  Set(send, In(prm::kPath, prm::ads::kAckTimeout), AckTimeoutFor(round_trip, options_.ack_timeout));
  Set(send, In(prm::kQpc, kRetryCount), kRetries);
  Set(send, In(prm::kQpc, kRnrRetry), rnr_retry);
  return ModifyQp(qpn, Command::kRtr2Rts, send);
}

Status Mlx5Device::InitToReceive(uint32_t qpn, const nic::QpAddress& remote) {
  const std::byte* at = remote.port.bytes.data();
  if (nic::LoadBigEndian<uint32_t>(at + address::kTagAt) != address::kTag ||
      (nic::LoadBigEndian<uint8_t>(at + address::kIsEthernet) != 0) != is_ethernet_) {
    return Rejected("the address is not that of an mlx5 device on the same kind of link");
  }
  const uint8_t remote_mtu = nic::LoadBigEndian<uint8_t>(at + address::kMtu);
  if (remote_mtu == 0 || remote_mtu > 5) return Rejected("the address has no MTU");
  using namespace prm::qpc;
  prm::ObjectCommand in = ModifyCommand(Command::kInit2Rtr, qpn);
  Set(in, In(prm::kQpc, kMtu), std::min(mtu_, remote_mtu));
  Set(in, In(prm::kQpc, kLogMsgMax), prm::kLogMessageMax);
  Set(in, In(prm::kQpc, kRemoteQpn), remote.qpn & nic::kNumberMask);
  Set(in, In(prm::kQpc, kMinRnrNak), kRnrTimer);
  PREPOST_RETURN_IF_ERROR(SetPath(in, qpn, remote));
  return ModifyQp(qpn, Command::kInit2Rtr, in);
}

/// How packets get to `remote`.
Status Mlx5Device::SetPath(prm::ObjectCommand& in, uint32_t qpn, const nic::QpAddress& remote) {
  const auto set = [&in](prm::Field field, uint64_t value) {
    Set(in, In(prm::kPath, field), value);
  };
  using namespace prm::ads;
  set(kVhcaPortNum, options_.port);
  const bool is_loopback = remote.port == address_ && remote.qpn == qpn;
  if (is_loopback && is_ethernet_ && capabilities_.force_loopback) {
    set(kFl, 1);
    return {};
  }
  const std::byte* at = remote.port.bytes.data();
  if (!is_ethernet_) {
    set(kRlid, nic::LoadBigEndian<uint16_t>(at + address::kLid));
    set(kSl, options_.service_level & 0xf);
    return {};
  }
  Gid gid;
  std::copy_n(at + address::kGid, gid.size(), gid.begin());
  MacAddress mac = {};
  const int error = verbs_->ResolveMac(pd_, options_.port, gid_index_, gid, &mac);
  if (error != 0) return CallError("cannot find the Ethernet address of a peer", error);
  set(kSrcAddrIndex, gid_index_);
  set(kHopLimit, kHops);
  set(kEthPrio, options_.service_level & 7);
  set(kRgidHigh, nic::LoadBigEndian<uint64_t>(gid.data()));
  set(kRgidLow, nic::LoadBigEndian<uint64_t>(gid.data() + 8));
  set(kRmacHigh, nic::LoadBigEndian<uint16_t>(mac.data()));
  set(kRmacLow, nic::LoadBigEndian<uint32_t>(mac.data() + 2));
  // The same for a connection's life; others spread over the paths that switches choose by it.
  constexpr uint32_t kSpread = 0x9e3779b1;
  set(kUdpSport, prm::kUdpPortFirst | ((qpn * kSpread ^ remote.qpn * kSpread >> 7) & kUdpPortMask));
  return {};
}

Status Mlx5Device::MoveToError(uint32_t qpn) {
  return ModifyQp(qpn, Command::k2Err, CommandHeader(Command::k2Err, 0, qpn));
}

}  // namespace prepost::mlx5
