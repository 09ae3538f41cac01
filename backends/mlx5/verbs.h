// SPDX-License-Identifier: Apache-2.0
//
// Verbs: the calls into libibverbs and libmlx5 that the mlx5 device makes, one thin method each,
// with neutral types. RdmaCore (backends/rdma_core/rdma_core.cc) passes them on; StandIn
// (stand_in.h) answers them in software; tests make them fail. Whoever made something undoes it;
// nothing here undoes anything by itself.
//
// Calls that return an int return 0 or an errno value; EREMOTEIO: the firmware refused a command,
// and its output has status and syndrome. One thread at a time.
#ifndef PREPOST_BACKENDS_MLX5_VERBS_H_
#define PREPOST_BACKENDS_MLX5_VERBS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/mlx5/prm.h"
#include "backends/nic/device.h"
#include "ir/base/status.h"

namespace prepost::mlx5 {

using Input = std::span<const std::byte>;
using Output = std::span<std::byte>;

// Handles are the implementation's business; null: none.

/// A page of doorbell registers.
struct Uar {
  void* handle = nullptr;
  uint32_t page_id = 0;
};
enum class UarKind : uint8_t { kBlueFlame, kNonCached };
/// Memory of the process that queues may lie in.
struct Umem {
  void* handle = nullptr;
  uint32_t id = 0;
};
/// A CQ or QP.
struct Object {
  void* handle = nullptr;
};
struct ProtectionDomain {
  void* handle = nullptr;
  uint32_t number = 0;
};
struct MemoryRegion {
  void* handle = nullptr;
  uint32_t key = 0;  ///< lkey and rkey
};
struct EventChannel {
  void* handle = nullptr;
  int fd = -1;  ///< readable while there are events, of objects or of the device
};
/// An event of the device as a whole.
struct DeviceEvent {
  enum class Kind : uint8_t { kFatal, kPortDown, kOther };
  Kind kind = Kind::kOther;
  uint8_t port = 0;  ///< kPortDown
};

using Gid = std::array<std::byte, 16>;
using MacAddress = std::array<std::byte, 6>;

struct PortAttributes {
  bool is_active = false;
  bool is_ethernet = false;
  uint16_t lid = 0;        ///< InfiniBand
  bool needs_grh = false;  ///< InfiniBand: others have the same LID, only a GID tells them apart
  uint8_t mtu = 0;         ///< 1: 256 bytes ... 5: 4096
  uint32_t gid_count = 0;  ///< size of the GID table
};
struct GidEntry {
  Gid gid = {};
  bool is_roce_v2 = false;
};

/// One opened device.
class Verbs {
 public:
  virtual ~Verbs() = default;

  [[nodiscard]] virtual int GeneralCommand(Input in, Output out) = 0;
  [[nodiscard]] virtual int AllocUar(UarKind kind, Uar* uar) = 0;
  virtual int FreeUar(Uar uar) = 0;
  /// Whole pages.
  [[nodiscard]] virtual int RegisterUmem(std::span<std::byte> memory, Umem* umem) = 0;
  virtual int DeregisterUmem(Umem umem) = 0;
  [[nodiscard]] virtual int CreateObject(Input in, Output out, Object* object) = 0;
  [[nodiscard]] virtual int ModifyObject(Object object, Input in, Output out) = 0;
  [[nodiscard]] virtual int QueryObject(Object object, Input in, Output out) = 0;
  virtual int DestroyObject(Object object) = 0;
  /// The number of the event queue of completion vector 0.
  [[nodiscard]] virtual int QueryEqn(uint32_t* eqn) = 0;
  [[nodiscard]] virtual int AllocPd(ProtectionDomain* pd) = 0;
  virtual int FreePd(ProtectionDomain pd) = 0;
  [[nodiscard]] virtual int RegisterMemory(ProtectionDomain pd, std::span<const std::byte> memory,
                                           nic::Access access, MemoryRegion* region) = 0;
  virtual int DeregisterMemory(MemoryRegion region) = 0;

  [[nodiscard]] virtual int QueryPort(uint8_t port, PortAttributes* attributes) = 0;
  /// ENODATA: the entry is empty.
  [[nodiscard]] virtual int QueryGid(uint8_t port, uint32_t index, GidEntry* entry) = 0;
  /// The Ethernet address by which the local GID reaches `remote`.
  [[nodiscard]] virtual int ResolveMac(ProtectionDomain pd, uint8_t port, uint32_t gid_index,
                                       const Gid& remote, MacAddress* mac) = 0;

  [[nodiscard]] virtual int OpenEventChannel(EventChannel* channel) = 0;
  virtual int CloseEventChannel(EventChannel channel) = 0;
  /// Events of this type of the CQ or QP come with `cookie`, until it is destroyed.
  [[nodiscard]] virtual int Subscribe(EventChannel channel, Object object, prm::EventType type,
                                      uint64_t cookie) = 0;
  // The oldest event, of an object or of the device. Never wait; EAGAIN: there is none; any other
  // error: there will be none any more.
  [[nodiscard]] virtual int TakeEvent(EventChannel channel, uint64_t* cookie) = 0;
  [[nodiscard]] virtual int TakeDeviceEvent(EventChannel channel, DeviceEvent* event) = 0;

  // The two stores to a doorbell page, of 8 bytes as they stand in memory. What this thread wrote
  // before, the NIC sees before.
  virtual void StoreDoorbell(Uar uar, uint64_t bytes) = 0;
  virtual void StoreArm(Uar uar, uint64_t bytes) = 0;
};

/// A device as its library lists it.
struct DeviceEntry {
  std::string name;
  bool is_mlx5 = false;
};

/// Where devices come from.
class VerbsLibrary {
 public:
  virtual ~VerbsLibrary() = default;

  /// In the order of names. Errors: kEnvironment.
  virtual Result<std::vector<DeviceEntry>> Devices() = 0;
  /// With DEVX. Errors: kEnvironment: there is none of this name, no permission, no DEVX.
  virtual Result<std::unique_ptr<Verbs>> Open(const std::string& name) = 0;
};

}  // namespace prepost::mlx5

#endif  // PREPOST_BACKENDS_MLX5_VERBS_H_
