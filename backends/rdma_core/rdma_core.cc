// SPDX-License-Identifier: Apache-2.0
//
// The mlx5 cards of this machine: the table of calls (backends/mlx5/verbs.h), passed on to
// libibverbs and libmlx5, which are loaded when devices are first listed or opened. The only file
// that includes libmlx5's headers.
#include <fmt/format.h>
#include <infiniband/mlx5dv.h>
#include <sys/epoll.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "backends/mlx5/cards.h"
#include "backends/mlx5/prm.h"
#include "backends/mlx5/verbs.h"
#include "backends/rdma_core/devices.h"
#include "backends/verbs/libibverbs.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/base/shared_library.h"

#define PREPOST_MLX5DV_CALLS(X)        \
  X(mlx5dv_devx_alloc_uar)             \
  X(mlx5dv_devx_create_event_channel)  \
  X(mlx5dv_devx_destroy_event_channel) \
  X(mlx5dv_devx_free_uar)              \
  X(mlx5dv_devx_general_cmd)           \
  X(mlx5dv_devx_get_event)             \
  X(mlx5dv_devx_obj_create)            \
  X(mlx5dv_devx_obj_destroy)           \
  X(mlx5dv_devx_obj_modify)            \
  X(mlx5dv_devx_obj_query)             \
  X(mlx5dv_devx_query_eqn)             \
  X(mlx5dv_devx_subscribe_devx_event)  \
  X(mlx5dv_devx_umem_dereg)            \
  X(mlx5dv_devx_umem_reg)              \
  X(mlx5dv_init_obj)                   \
  X(mlx5dv_is_supported)               \
  X(mlx5dv_open_device)

namespace prepost::mlx5 {
namespace {

struct Mlx5dvCalls {
#define PREPOST_MEMBER(name) decltype(&::name) name = nullptr;
  PREPOST_MLX5DV_CALLS(PREPOST_MEMBER)
#undef PREPOST_MEMBER
};

Result<Mlx5dvCalls> Load() {
  PREPOST_RETURN_IF_ERROR(verbs::TheLibibverbs().status());
  const Result<SharedLibrary> library = SharedLibrary::Open("libmlx5.so.1", "ibverbs-providers");
  if (!library.ok()) return library.status();
  Mlx5dvCalls calls;
#define PREPOST_FIND(name) PREPOST_RETURN_IF_ERROR(library->Find(#name, &calls.name));
  PREPOST_MLX5DV_CALLS(PREPOST_FIND)
#undef PREPOST_FIND
  return calls;
}

const Result<Mlx5dvCalls>& Loaded() {
  static const Result<Mlx5dvCalls> loaded = Load();
  return loaded;
}

/// Whoever has a device has loaded them.
const Mlx5dvCalls& Calls() { return Loaded().value(); }

constexpr uint8_t kHopLimit = 64;

/// For functions that return an object or null with errno, which some forget to set.
int ErrnoOr(int fallback) { return errno != 0 ? errno : fallback; }

/// For functions that return 0, an errno value or -1 with errno.
int ErrorOf(int returned) { return returned < 0 ? ErrnoOr(EIO) : returned; }

/// Queues' memory, and a page of registers, may be mapped write-combining: what was written before
/// is to be there before what follows.
void StoreFence() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#elif defined(__aarch64__)
  asm volatile("dsb st" ::: "memory");
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

void StoreRegister(void* at, uint64_t bytes) {
  static_assert(sizeof(void*) == sizeof bytes, "one store of 8 bytes");
  StoreFence();
  *static_cast<volatile uint64_t*>(at) = bytes;
  StoreFence();
}

int AccessFlags(nic::Access access) {
  // Never relaxed ordering: a CQE must not overtake the payload that a WAIT is there for.
  int flags = 0;
  if (access.local_write || access.remote_write || access.remote_atomic)
    flags |= IBV_ACCESS_LOCAL_WRITE;
  if (access.remote_write) flags |= IBV_ACCESS_REMOTE_WRITE;
  if (access.remote_atomic) flags |= IBV_ACCESS_REMOTE_ATOMIC;
  if (access.remote_read) flags |= IBV_ACCESS_REMOTE_READ;
  return flags;
}

/// Events of DEVX objects, and a file that is readable while they or the device have some.
struct OpenChannel {
  explicit OpenChannel(mlx5dv_devx_event_channel* events_in) : events(events_in) {}
  ~OpenChannel() { Calls().mlx5dv_devx_destroy_event_channel(events); }
  OpenChannel(const OpenChannel&) = delete;
  OpenChannel& operator=(const OpenChannel&) = delete;

  mlx5dv_devx_event_channel* events;
  FileDescriptor either;
};

OpenChannel* ChannelOf(EventChannel channel) { return static_cast<OpenChannel*>(channel.handle); }

class OpenDevice final : public Verbs {
 public:
  explicit OpenDevice(ibv_context* context) : context_(context) {}
  ~OpenDevice() override { verbs::Calls().ibv_close_device(context_); }
  OpenDevice(const OpenDevice&) = delete;
  OpenDevice& operator=(const OpenDevice&) = delete;

  int GeneralCommand(Input in, Output out) override {
    return ErrorOf(
        Calls().mlx5dv_devx_general_cmd(context_, in.data(), in.size(), out.data(), out.size()));
  }

  int AllocUar(UarKind kind, Uar* uar) override {
    errno = 0;
    mlx5dv_devx_uar* made = Calls().mlx5dv_devx_alloc_uar(context_, kind == UarKind::kBlueFlame
                                                                        ? MLX5DV_UAR_ALLOC_TYPE_BF
                                                                        : MLX5DV_UAR_ALLOC_TYPE_NC);
    if (made == nullptr) return ErrnoOr(ENOMEM);
    *uar = {made, made->page_id};
    return 0;
  }
  int FreeUar(Uar uar) override {
    Calls().mlx5dv_devx_free_uar(static_cast<mlx5dv_devx_uar*>(uar.handle));
    return 0;
  }

  int RegisterUmem(std::span<std::byte> memory, Umem* umem) override {
    errno = 0;
    mlx5dv_devx_umem* made = Calls().mlx5dv_devx_umem_reg(context_, memory.data(), memory.size(),
                                                          IBV_ACCESS_LOCAL_WRITE);
    if (made == nullptr) return ErrnoOr(ENOMEM);
    *umem = {made, made->umem_id};
    return 0;
  }
  int DeregisterUmem(Umem umem) override {
    return ErrorOf(Calls().mlx5dv_devx_umem_dereg(static_cast<mlx5dv_devx_umem*>(umem.handle)));
  }

  int CreateObject(Input in, Output out, Object* object) override {
    errno = 0;
    object->handle =
        Calls().mlx5dv_devx_obj_create(context_, in.data(), in.size(), out.data(), out.size());
    return object->handle == nullptr ? ErrnoOr(EIO) : 0;
  }
  int ModifyObject(Object object, Input in, Output out) override {
    return ErrorOf(Calls().mlx5dv_devx_obj_modify(static_cast<mlx5dv_devx_obj*>(object.handle),
                                                  in.data(), in.size(), out.data(), out.size()));
  }
  int QueryObject(Object object, Input in, Output out) override {
    return ErrorOf(Calls().mlx5dv_devx_obj_query(static_cast<mlx5dv_devx_obj*>(object.handle),
                                                 in.data(), in.size(), out.data(), out.size()));
  }
  int DestroyObject(Object object) override {
    return ErrorOf(Calls().mlx5dv_devx_obj_destroy(static_cast<mlx5dv_devx_obj*>(object.handle)));
  }

  int QueryEqn(uint32_t* eqn) override {
    return ErrorOf(Calls().mlx5dv_devx_query_eqn(context_, /*vector=*/0, eqn));
  }

  int AllocPd(ProtectionDomain* pd) override {
    errno = 0;
    ibv_pd* made = verbs::Calls().ibv_alloc_pd(context_);
    if (made == nullptr) return ErrnoOr(ENOMEM);
    mlx5dv_pd numbers = {};
    mlx5dv_obj object = {};
    object.pd.in = made;
    object.pd.out = &numbers;
    if (const int error = Calls().mlx5dv_init_obj(&object, MLX5DV_OBJ_PD); error != 0) {
      verbs::Calls().ibv_dealloc_pd(made);
      return ErrorOf(error);
    }
    *pd = {made, numbers.pdn};
    return 0;
  }
  int FreePd(ProtectionDomain pd) override {
    return ErrorOf(verbs::Calls().ibv_dealloc_pd(static_cast<ibv_pd*>(pd.handle)));
  }

  int RegisterMemory(ProtectionDomain pd, std::span<const std::byte> memory, nic::Access access,
                     MemoryRegion* region) override {
    errno = 0;
    ibv_mr* made = verbs::Calls().ibv_reg_mr(static_cast<ibv_pd*>(pd.handle),
                                             const_cast<std::byte*>(memory.data()), memory.size(),
                                             AccessFlags(access));
    if (made == nullptr) return ErrnoOr(ENOMEM);
    *region = {made, made->lkey};  // mlx5: the rkey is the same
    return 0;
  }
  int DeregisterMemory(MemoryRegion region) override {
    return ErrorOf(verbs::Calls().ibv_dereg_mr(static_cast<ibv_mr*>(region.handle)));
  }

  int QueryPort(uint8_t port, PortAttributes* attributes) override {
    ibv_port_attr found = {};
    if (const int error = verbs::QueryPort(context_, port, &found); error != 0)
      return ErrorOf(error);
    const bool is_ethernet = found.link_layer == IBV_LINK_LAYER_ETHERNET;
    *attributes = {.is_active = found.state == IBV_PORT_ACTIVE,
                   .is_ethernet = is_ethernet,
                   .lid = found.lid,
                   .needs_grh = !is_ethernet && (found.flags & IBV_QPF_GRH_REQUIRED) != 0,
                   .mtu = static_cast<uint8_t>(found.active_mtu),
                   .gid_count = static_cast<uint32_t>(std::max(found.gid_tbl_len, 0))};
    return 0;
  }

  int QueryGid(uint8_t port, uint32_t index, GidEntry* entry) override {
    ibv_gid_entry found = {};
    if (const int error =
            verbs::Calls()._ibv_query_gid_ex(context_, port, index, &found, 0, sizeof found);
        error != 0) {
      return ErrorOf(error);
    }
    std::memcpy(entry->gid.data(), found.gid.raw, entry->gid.size());
    entry->is_roce_v2 = found.gid_type == IBV_GID_TYPE_ROCE_V2;
    return 0;
  }

  int ResolveMac(ProtectionDomain pd, uint8_t port, uint32_t gid_index, const Gid& remote,
                 MacAddress* mac) override {
    // An address handle is what makes the kernel look the neighbour up.
    ibv_ah_attr attributes = {};
    std::memcpy(attributes.grh.dgid.raw, remote.data(), remote.size());
    attributes.grh.sgid_index = static_cast<uint8_t>(gid_index);
    attributes.grh.hop_limit = kHopLimit;
    attributes.is_global = 1;
    attributes.port_num = port;
    errno = 0;
    ibv_ah* handle = verbs::Calls().ibv_create_ah(static_cast<ibv_pd*>(pd.handle), &attributes);
    if (handle == nullptr) return ErrnoOr(EHOSTUNREACH);
    mlx5dv_ah made = {};
    mlx5dv_obj object = {};
    object.ah.in = handle;
    object.ah.out = &made;
    const int error = Calls().mlx5dv_init_obj(&object, MLX5DV_OBJ_AH);
    if (error == 0) std::memcpy(mac->data(), made.av->rmac, mac->size());
    verbs::Calls().ibv_destroy_ah(handle);
    return ErrorOf(error);
  }

  int OpenEventChannel(EventChannel* channel) override {
    errno = 0;
    mlx5dv_devx_event_channel* events = Calls().mlx5dv_devx_create_event_channel(
        context_, MLX5DV_DEVX_CREATE_EVENT_CHANNEL_FLAGS_OMIT_EV_DATA);
    if (events == nullptr) return ErrnoOr(ENOMEM);
    auto made = std::make_unique<OpenChannel>(events);
    made->either = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
    if (!made->either.valid()) return errno;
    for (const int fd : {events->fd, context_->async_fd}) {
      if (const int error = WatchForReading(made->either.get(), fd); error != 0) return error;
    }
    const int fd = made->either.get();
    *channel = {made.release(), fd};
    return 0;
  }
  int CloseEventChannel(EventChannel channel) override {
    delete ChannelOf(channel);
    return 0;
  }
  int Subscribe(EventChannel channel, Object object, prm::EventType type,
                uint64_t cookie) override {
    // One call for each type: without event data only the cookie tells them apart.
    auto number = static_cast<uint16_t>(type);
    return ErrorOf(Calls().mlx5dv_devx_subscribe_devx_event(
        ChannelOf(channel)->events, static_cast<mlx5dv_devx_obj*>(object.handle), sizeof number,
        &number, cookie));
  }
  int TakeEvent(EventChannel channel, uint64_t* cookie) override {
    mlx5dv_devx_async_event_hdr event = {};
    errno = 0;
    const ssize_t bytes =
        Calls().mlx5dv_devx_get_event(ChannelOf(channel)->events, &event, sizeof event);
    if (bytes < 0) return ErrnoOr(EIO);
    *cookie = event.cookie;
    return 0;
  }
  int TakeDeviceEvent(EventChannel /*channel*/, DeviceEvent* event) override {
    ibv_async_event found = {};
    errno = 0;
    if (verbs::Calls().ibv_get_async_event(context_, &found) != 0) return ErrnoOr(EIO);
    *event = {};
    if (found.event_type == IBV_EVENT_DEVICE_FATAL) {
      event->kind = DeviceEvent::Kind::kFatal;
    } else if (found.event_type == IBV_EVENT_PORT_ERR) {
      *event = {DeviceEvent::Kind::kPortDown, static_cast<uint8_t>(found.element.port_num)};
    }
    verbs::Calls().ibv_ack_async_event(&found);
    return 0;
  }

  void StoreDoorbell(Uar uar, uint64_t bytes) override {
    StoreRegister(static_cast<mlx5dv_devx_uar*>(uar.handle)->reg_addr, bytes);
  }
  void StoreArm(Uar uar, uint64_t bytes) override {
    auto* page = static_cast<std::byte*>(static_cast<mlx5dv_devx_uar*>(uar.handle)->base_addr);
    StoreRegister(page + prm::kArmOffset, bytes);
  }

 private:
  ibv_context* context_;
};

class Library final : public VerbsLibrary {
 public:
  Result<std::vector<DeviceEntry>> Devices() override {
    PREPOST_RETURN_IF_ERROR(Loaded().status());
    const verbs::DeviceList list;
    PREPOST_RETURN_IF_ERROR(list.status());
    std::vector<DeviceEntry> entries;
    for (ibv_device* device : list.devices()) {
      entries.push_back(
          {verbs::Calls().ibv_get_device_name(device), Calls().mlx5dv_is_supported(device)});
    }
    std::ranges::sort(entries, {}, &DeviceEntry::name);
    return entries;
  }

  Result<std::unique_ptr<Verbs>> Open(const std::string& name) override {
    PREPOST_RETURN_IF_ERROR(Loaded().status());
    const verbs::DeviceList list;
    PREPOST_RETURN_IF_ERROR(list.status());
    for (ibv_device* device : list.devices()) {
      if (name != verbs::Calls().ibv_get_device_name(device)) continue;
      if (!Calls().mlx5dv_is_supported(device)) {
        return EnvironmentError(fmt::format("device {} is not one of mlx5", name));
      }
      mlx5dv_context_attr attributes = {};
      attributes.flags = MLX5DV_CONTEXT_FLAGS_DEVX;
      errno = 0;
      ibv_context* context = Calls().mlx5dv_open_device(device, &attributes);
      if (context != nullptr) return std::unique_ptr<Verbs>(std::make_unique<OpenDevice>(context));
      return SystemError(StatusCode::kEnvironment,
                         fmt::format("cannot open device {} with DEVX", name), ErrnoOr(ENODEV));
    }
    return EnvironmentError(fmt::format("there is no RDMA device {}", name));
  }
};

}  // namespace

}  // namespace prepost::mlx5

namespace prepost::rdma_core {

const DeviceKind& Devices() {
  static mlx5::Library library;
  static const mlx5::Cards cards(library);
  return cards;
}

}  // namespace prepost::rdma_core
