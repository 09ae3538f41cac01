// SPDX-License-Identifier: Apache-2.0
#include "backends/verbs/rdma_device.h"

#include <endian.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include "runtime/base/file_descriptor.h"
#include "runtime/transport/tcp/tcp_address.h"

namespace prepost::verbs {
namespace {

constexpr uint8_t kHops = 64;
constexpr uint16_t kDefaultPkey = 0xffff;
constexpr uint16_t kPkeyMask = 0x7fff;  // the uppermost bit tells full from limited members
constexpr uint32_t kGidsMax = 256;      // ibv_global_route::sgid_index
constexpr size_t kGidsOfDeviceMax =
    2047;  // more than 64 KiB of them the kernel's interface does not take

/// A decimal number, or a hexadecimal one behind 0x.
template <typename Number>
bool ReadNumber(std::string_view text, Number* number) {
  const bool is_hex = text.starts_with("0x");
  if (is_hex) text.remove_prefix(2);
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, *number, is_hex ? 16 : 10);
  return error == std::errc() && rest == end;
}

/// As RoCE has it: of an IPv4 address the mapped one.
std::optional<ibv_gid> GidOfHost(const std::string& host) {
  const std::optional<TcpAddress> address = host.empty() ? std::nullopt : NumericAddress(host);
  if (!address) return std::nullopt;
  ibv_gid gid = {};
  if (address->storage.ss_family == AF_INET) {
    gid.raw[10] = gid.raw[11] = 0xff;
    std::memcpy(gid.raw + 12, &reinterpret_cast<const sockaddr_in*>(address->generic())->sin_addr,
                4);
  } else {
    std::memcpy(gid.raw, &reinterpret_cast<const sockaddr_in6*>(address->generic())->sin6_addr, 16);
  }
  return gid;
}

bool IsSame(const ibv_gid& a, const ibv_gid& b) { return std::memcmp(a.raw, b.raw, 16) == 0; }
bool IsLinkLocal(const ibv_gid& gid) { return gid.raw[0] == 0xfe && gid.raw[1] == 0x80; }

/// Queue pairs of iWARP are not connected by their numbers, and others have no such at all.
constexpr char kIsOther[] = "it is neither InfiniBand nor RoCE";
bool IsOther(const ibv_context* context) {
  return context->device->transport_type != IBV_TRANSPORT_IB;
}

/// Whether a driver makes it in software, as that of SoftRoCE does: no bus has it.
bool IsVirtual(const char* sysfs_folder) {
  std::error_code error;
  const std::string folder = std::filesystem::canonical(sysfs_folder, error).string();
  return !error && folder.find("/devices/virtual/") != std::string::npos;
}

std::string PortText(ibv_context* context, const ibv_device_attr& limits) {
  if (IsOther(context)) return kIsOther;
  ibv_port_attr port = {};
  if (QueryPort(context, 1, &port) != 0) return "its port 1 cannot be queried";
  return fmt::format(
      "{}, port 1 of {} {}, MTU {}; queues of up to {} entries, messages of up to {} bytes",
      port.link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE" : "InfiniBand", limits.phys_port_cnt,
      port.state == IBV_PORT_ACTIVE
          ? "active"
          : fmt::format("not active ({})", Calls().ibv_port_state_str(port.state)),
      128u << port.active_mtu, limits.max_qp_wr, port.max_msg_sz);
}

}  // namespace

Result<Selection> ParseSelection(const std::string& text) {
  Selection selection;
  std::string_view rest = text;
  const auto next = [&rest] {
    const size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
    return part;
  };
  selection.device = next();
  if (selection.device.empty()) return UsageError("it names no device of libibverbs");
  if (text.ends_with(',')) return UsageError("an option is missing behind the last comma");
  std::set<std::string_view> seen;
  while (!rest.empty()) {
    const std::string_view part = next();
    const size_t equals = part.find('=');
    const std::string_view key = part.substr(0, equals);
    if (!seen.insert(key).second) return UsageError(fmt::format("it has two of \"{}\"", key));
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1);
    bool is_right = false;
    if (key == "port") {
      is_right = ReadNumber(value, &selection.port) && selection.port != 0;
    } else if (key == "gid") {
      is_right =
          ReadNumber(value, &selection.gid_index.emplace()) && *selection.gid_index < kGidsMax;
    } else if (key == "pkey") {
      is_right = ReadNumber(value, &selection.pkey.emplace()) && (*selection.pkey & kPkeyMask) != 0;
    }
    if (!is_right) {
      return UsageError(
          fmt::format("\"{}\" is none of port=1..255, gid=0..255, pkey=0x1..0xffff", part));
    }
  }
  return selection;
}

Result<std::vector<SurveyedDevice>> Survey() {
  PREPOST_RETURN_IF_ERROR(TheLibibverbs().status());
  const DeviceList list;
  PREPOST_RETURN_IF_ERROR(list.status());
  std::vector<SurveyedDevice> devices;
  for (ibv_device* const device : list.devices()) {
    SurveyedDevice& found = devices.emplace_back();
    found.name = Calls().ibv_get_device_name(device);
    found.is_hardware = !IsVirtual(device->ibdev_path);
    errno = 0;
    const Context context(Calls().ibv_open_device(device));
    ibv_device_attr limits = {};
    if (context == nullptr) {
      found.what = CallFailed("open it").message();
    } else if (Calls().ibv_query_device(context.get(), &limits) != 0) {
      found.what = "it cannot be queried";
    } else {
      found.what = PortText(context.get(), limits);
    }
  }
  std::ranges::sort(devices, {}, &SurveyedDevice::name);
  return devices;
}

Result<std::unique_ptr<Device>> Device::Open(const Selection& selection, const std::string& host) {
  PREPOST_RETURN_IF_ERROR(TheLibibverbs().status());
  const DeviceList list;
  PREPOST_RETURN_IF_ERROR(list.status());
  const auto found = std::ranges::find_if(list.devices(), [&](ibv_device* device) {
    return selection.device == Calls().ibv_get_device_name(device);
  });
  if (found == list.devices().end())
    return EnvironmentError("libibverbs has no such device here (see prepost devices)");
  std::unique_ptr<Device> device(new Device(selection));
  errno = 0;
  device->context_.reset(Calls().ibv_open_device(*found));
  if (device->context_ == nullptr) return CallFailed("open it");
  ibv_context* const context = device->context_.get();
  if (IsOther(context)) return EnvironmentError(kIsOther);
  if (const int error = Calls().ibv_query_device(context, &device->limits_); error != 0)
    return SystemError(StatusCode::kEnvironment, "cannot query it", error);
  // Events are taken as they come.
  const int flags = fcntl(context->async_fd, F_GETFL);
  if (flags < 0 || fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK) != 0)
    return CallFailed("read its events without waiting");
  PREPOST_RETURN_IF_ERROR(device->FindPort());
  PREPOST_RETURN_IF_ERROR(device->ChooseGid(host));
  errno = 0;
  device->domain_.reset(Calls().ibv_alloc_pd(context));
  if (device->domain_ == nullptr) return CallFailed("make a protection domain");
  return device;
}

Status Device::FindPort() {
  if (selection_.port > limits_.phys_port_cnt) {
    return EnvironmentError(
        fmt::format("it has no port {}, only {}", selection_.port, limits_.phys_port_cnt));
  }
  ibv_port_attr port = {};
  if (const int error = QueryPort(context_.get(), selection_.port, &port); error != 0) {
    return SystemError(StatusCode::kEnvironment,
                       fmt::format("cannot query port {}", selection_.port), error);
  }
  if (port.state != IBV_PORT_ACTIVE) {
    return EnvironmentError(fmt::format("port {} is not active: {}", selection_.port,
                                        Calls().ibv_port_state_str(port.state)));
  }
  const bool is_ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
  address_.link = is_ethernet ? PortAddress::Link::kRoceV2 : PortAddress::Link::kInfiniBand;
  address_.mtu = static_cast<uint8_t>(port.active_mtu);
  address_.lid = port.lid;
  message_bytes_max_ = port.max_msg_sz;
  needs_gid_ =
      is_ethernet || selection_.gid_index.has_value() || (port.flags & IBV_QPF_GRH_REQUIRED) != 0;
  return FindPkey(port.pkey_tbl_len);
}

Status Device::FindPkey(uint16_t pkeys) {
  const uint16_t wanted = selection_.pkey.value_or(kDefaultPkey);
  std::optional<uint16_t> limited;
  for (uint16_t index = 0; index < pkeys; ++index) {
    uint16_t stored = 0;
    if (Calls().ibv_query_pkey(context_.get(), selection_.port, index, &stored) != 0) continue;
    const uint16_t pkey = be16toh(stored);
    if ((pkey & kPkeyMask) != (wanted & kPkeyMask)) continue;
    if (pkey == wanted) {
      pkey_index_ = index;
      return {};
    }
    if (!limited) limited = index;
  }
  if (!limited && selection_.pkey) {
    return EnvironmentError(
        fmt::format("port {} is not in the partition of P_Key {:#06x}", selection_.port, wanted));
  }
  pkey_index_ = limited.value_or(0);
  return {};
}

Status Device::ChooseGid(const std::string& host) {
  std::vector<ibv_gid_entry> entries(kGidsOfDeviceMax);
  const ssize_t count = Calls()._ibv_query_gid_table(context_.get(), entries.data(), entries.size(),
                                                     0, sizeof(ibv_gid_entry));
  if (count < 0) {
    if (!needs_gid_) return {};
    return SystemError(StatusCode::kEnvironment, "cannot query its GIDs", static_cast<int>(-count));
  }
  entries.resize(static_cast<size_t>(count));
  std::erase_if(entries, [&](const ibv_gid_entry& entry) {
    return entry.port_num != selection_.port || entry.gid_index >= kGidsMax ||
           (selection_.gid_index && entry.gid_index != *selection_.gid_index);
  });
  if (entries.empty() && !needs_gid_) return {};
  if (entries.empty()) {
    return EnvironmentError(
        selection_.gid_index
            ? fmt::format("port {} has no GID {}", selection_.port, *selection_.gid_index)
            : fmt::format("port {} has no GID", selection_.port));
  }
  const std::optional<ibv_gid> of_host = GidOfHost(host);
  const auto rank = [&](const ibv_gid_entry& entry) {
    const bool is_roce_v2 = entry.gid_type == IBV_GID_TYPE_ROCE_V2;
    return std::pair(!is_roce_v2, of_host && IsSame(entry.gid, *of_host) ? 0
                                  : IsLinkLocal(entry.gid)               ? 2
                                                                         : 1);
  };
  const ibv_gid_entry& best = *std::ranges::min_element(entries, {}, rank);
  gid_index_ = static_cast<uint8_t>(best.gid_index);
  address_.gid = best.gid;  // also where none is needed here: the peer may need it
  if (address_.link != PortAddress::Link::kInfiniBand) {
    address_.link = best.gid_type == IBV_GID_TYPE_ROCE_V2 ? PortAddress::Link::kRoceV2
                                                          : PortAddress::Link::kRoceV1;
  }
  return {};
}

Status Device::Keep(std::span<std::byte> memory) {
  if (memory.empty()) return {};
  errno = 0;
  kept_region_.reset(
      Calls().ibv_reg_mr(domain_.get(), memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE));
  if (kept_region_ == nullptr) return CallFailed("register the memory of a pool");
  kept_ = memory;
  return {};
}

std::optional<uint32_t> Device::KeyOf(std::span<const std::byte> memory) const {
  const bool is_inside = !kept_.empty() && memory.data() >= kept_.data() &&
                         memory.data() + memory.size() <= kept_.data() + kept_.size();
  return is_inside ? std::optional(kept_region_->lkey) : std::nullopt;
}

ibv_ah_attr Device::PathTo(const PortAddress& remote) const {
  ibv_ah_attr path = {};
  path.port_num = selection_.port;
  path.dlid = remote.lid;
  if (needs_gid_) {
    path.is_global = 1;
    path.grh.dgid = remote.gid;
    path.grh.sgid_index = gid_index_;
    path.grh.hop_limit = kHops;
  }
  return path;
}

void Device::Note(const ibv_async_event& event) {
  const char* const what = Calls().ibv_event_type_str(event.event_type);
  const auto failed = [what](void* context) {
    *static_cast<Status*>(context) = Rejected(fmt::format("the device reports: {}", what));
  };
  switch (event.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      failed(event.element.qp->qp_context);
      break;
    case IBV_EVENT_CQ_ERR:
      failed(event.element.cq->cq_context);
      break;
    case IBV_EVENT_DEVICE_FATAL:
      failed(&failure_);
      break;
    case IBV_EVENT_PORT_ERR:
      if (event.element.port_num == selection_.port)
        port_failure_ = Rejected(
            fmt::format("port {} of device {} went down", selection_.port, selection_.device));
      break;
    default:
      break;
  }
}

Status Device::TakeEvents() {
  ibv_async_event event = {};
  while (Calls().ibv_get_async_event(context_.get(), &event) == 0) {
    Note(event);
    Calls().ibv_ack_async_event(&event);
  }
  return failure_.ok() ? port_failure_ : failure_;
}

Status Device::TakeEventsBefore() {
  const Status status = TakeEvents();
  if (status.ok() || !failure_.ok()) return status;
  ibv_port_attr port = {};
  const bool is_back =
      QueryPort(context_.get(), selection_.port, &port) == 0 && port.state == IBV_PORT_ACTIVE;
  if (is_back) port_failure_ = Status();
  return port_failure_;
}

}  // namespace prepost::verbs
