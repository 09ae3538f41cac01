// SPDX-License-Identifier: Apache-2.0
//
// Internal to the stand-in: its one port's addresses, and which node has them.
#ifndef PREPOST_BACKENDS_MLX5_STAND_IN_STAND_IN_ADDRESS_H_
#define PREPOST_BACKENDS_MLX5_STAND_IN_STAND_IN_ADDRESS_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "backends/mlx5/verbs.h"
#include "backends/nic/wqe.h"
#include "ir/ids.h"

namespace prepost::mlx5::stand_in {

inline constexpr uint8_t kPort = 1;
inline constexpr uint32_t kEqn = 7;

// InfiniBand: LID = node + 1, up to the last unicast one.
inline constexpr uint32_t kLidMax = 0xbfff;
inline std::optional<uint16_t> LidOf(NodeId node) {
  if (node.value >= kLidMax) return std::nullopt;
  return static_cast<uint16_t>(node.value + 1);
}

// Ethernet. The GID table, as machines have it: link-local for RoCE v1 and v2, a free entry, global
// for RoCE v2. The last four bytes are the node.
inline constexpr uint32_t kEmptyGid = 2;
inline constexpr uint32_t kGidCount = 4;
inline constexpr uint64_t kLinkLocalPrefix = uint64_t{0xfe80} << 48;
inline constexpr uint64_t kGlobalPrefix = uint64_t{0xfd50} << 48;
constexpr bool IsRoceV2(uint32_t gid_index) { return gid_index == 1 || gid_index == 3; }
inline Gid GidOf(NodeId node, uint32_t index) {
  Gid gid = {};
  nic::StoreBigEndian(gid.data(), index == 3 ? kGlobalPrefix : kLinkLocalPrefix);
  nic::StoreBigEndian(gid.data() + 8, uint64_t{node.value});
  return gid;
}
inline std::optional<NodeId> NodeOf(const Gid& gid) {
  const NodeId node(nic::LoadBigEndian<uint32_t>(gid.data() + 12));
  if (gid != GidOf(node, 1) && gid != GidOf(node, 3)) return std::nullopt;
  return node;
}
/// A locally administered address.
inline MacAddress MacOf(NodeId node) {
  MacAddress mac = {std::byte{0x02}, std::byte{0x50}};
  nic::StoreBigEndian(mac.data() + 2, node.value);
  return mac;
}

}  // namespace prepost::mlx5::stand_in

#endif  // PREPOST_BACKENDS_MLX5_STAND_IN_STAND_IN_ADDRESS_H_
