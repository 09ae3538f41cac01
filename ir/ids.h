// SPDX-License-Identifier: Apache-2.0
//
// Strong integer types for the dense ids of a plan, so that a node is never passed where an op is
// meant. An id is a position: NodeId among the plan's nodes, ChannelId among its channels, OpId
// within ONE node's program.
#ifndef PREPOST_IR_IDS_H_
#define PREPOST_IR_IDS_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace prepost {

template <typename Tag>
struct Id {
  uint32_t value = 0;

  constexpr Id() = default;
  constexpr explicit Id(uint32_t v) : value(v) {}
  /// For containers whose size is already known to fit 32 bits.
  static constexpr Id FromIndex(size_t index) { return Id(static_cast<uint32_t>(index)); }
  constexpr size_t index() const { return value; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

using NodeId = Id<struct NodeTag>;
using ChannelId = Id<struct ChannelTag>;
using OpId = Id<struct OpTag>;

}  // namespace prepost

template <typename Tag>
struct std::hash<prepost::Id<Tag>> {
  size_t operator()(prepost::Id<Tag> id) const noexcept { return id.value; }
};

#endif  // PREPOST_IR_IDS_H_
