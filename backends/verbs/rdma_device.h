// SPDX-License-Identifier: Apache-2.0
//
// Device: a device of libibverbs, opened: one of its ports, the address there that peers reach it
// at, and what queue pairs are made of.
#ifndef PREPOST_BACKENDS_VERBS_RDMA_DEVICE_H_
#define PREPOST_BACKENDS_VERBS_RDMA_DEVICE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/verbs/libibverbs.h"
#include "ir/base/status.h"

namespace prepost::verbs {

/// What a device's name selects: "rxe0", "mlx5_0,port=2,gid=3,pkey=0x8001".
struct Selection {
  std::string device;
  uint8_t port = 1;
  /// Of the port's GID table; none: RoCE: that of the address that peers know this machine by, else
  /// the first of RoCE v2 that is not link-local; InfiniBand: the LID is enough.
  std::optional<uint32_t> gid_index = {};
  std::optional<uint16_t> pkey = {};  ///< none: the default partition

  friend bool operator==(const Selection&, const Selection&) = default;
};
/// Errors (kRejected): it is none, with what is wrong.
Result<Selection> ParseSelection(const std::string& text);

struct SurveyedDevice {
  std::string name;
  bool is_hardware = true;
  std::string what;  ///< its first port and its limits, or what is in the way
};
/// Devices of this machine, in the order of names. Errors (kEnvironment): there is no libibverbs.
Result<std::vector<SurveyedDevice>> Survey();

/// How packets find a port.
struct PortAddress {
  enum class Link : uint8_t { kInfiniBand = 0, kRoceV1 = 1, kRoceV2 = 2 };
  Link link = Link::kInfiniBand;
  uint8_t mtu = 0;  ///< 1: 256 bytes ... 5: 4096
  uint16_t lid = 0;
  ibv_gid gid = {};
};

/// Used by one thread; so is all that is made of it, which goes before it does.
class Device {
 public:
  /// `host`: the numeric address that peers know this machine by; "": none. Errors (kEnvironment):
  /// there is no such device, port, GID or P_Key, or the port is not active.
  static Result<std::unique_ptr<Device>> Open(const Selection& selection, const std::string& host);

  ibv_context* context() const { return context_.get(); }
  ibv_pd* domain() const { return domain_.get(); }
  const ibv_device_attr& limits() const { return limits_; }
  uint64_t message_bytes_max() const { return message_bytes_max_; }
  const Selection& selection() const { return selection_; }
  const PortAddress& address() const { return address_; }
  uint16_t pkey_index() const { return pkey_index_; }
  /// How a QP reaches a port at `remote`.
  ibv_ah_attr PathTo(const PortAddress& remote) const;

  /// Registers memory that messages will be received into; may be empty. Errors: kEnvironment.
  Status Keep(std::span<std::byte> memory);
  /// The key of memory that is kept; none: it is not.
  std::optional<uint32_t> KeyOf(std::span<const std::byte> memory) const;

  /// Takes what the device reports. A QP or a CQ that it names has a Status as context, which
  /// becomes an error. Errors (kRejected), from then on: of the device or its port.
  Status TakeEvents();
  /// The same before a message begins: a port that has come back is one again.
  Status TakeEventsBefore();

 private:
  explicit Device(Selection selection) : selection_(std::move(selection)) {}
  Status FindPort();
  Status ChooseGid(const std::string& host);
  Status FindPkey(uint16_t pkeys);
  void Note(const ibv_async_event& event);

  const Selection selection_;
  Context context_;
  Domain domain_;
  ibv_device_attr limits_ = {};
  uint64_t message_bytes_max_ = 0;
  PortAddress address_;
  bool needs_gid_ = false;
  uint8_t gid_index_ = 0;
  uint16_t pkey_index_ = 0;
  std::span<std::byte> kept_;
  Region kept_region_;
  Status failure_;  ///< of the device
  Status port_failure_;
};

}  // namespace prepost::verbs

#endif  // PREPOST_BACKENDS_VERBS_RDMA_DEVICE_H_
