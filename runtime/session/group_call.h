// SPDX-License-Identifier: Apache-2.0
//
// GroupCall: a call of a collective in a group, as the engine plays it; CallShape: what of it must
// be the same at all members, which is also how its plan is found.
#ifndef PREPOST_RUNTIME_SESSION_GROUP_CALL_H_
#define PREPOST_RUNTIME_SESSION_GROUP_CALL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <tuple>

#include "ir/base/status.h"
#include "ir/collective.h"
#include "ir/combine.h"
#include "ir/ids.h"
#include "runtime/executor/block_places.h"
#include "runtime/executor/combine_blocks.h"
#include "runtime/executor/message_endpoint.h"

namespace prepost {

/// A value.
struct CallShape {
  CollectiveKind kind = CollectiveKind::kBarrier;
  NodeId root;             ///< node 0 where there is none
  Combine combine;         ///< none where nothing is combined
  uint64_t bytes = 0;      ///< of a part, at most kGroupMessageBytesMax
  bool is_uneven = false;  ///< an alltoall whose parts have sizes of their own; `bytes` is 1

  friend bool operator==(const CallShape&, const CallShape&) = default;
  friend bool operator<(const CallShape& a, const CallShape& b) {
    const auto key = [](const CallShape& it) {
      return std::tuple(it.kind, it.root, it.combine.op, it.combine.type, it.bytes, it.is_uneven);
    };
    return key(a) < key(b);
  }
};

/// "allreduce sum:float32 of 400 bytes", "alltoall of parts of 8 bytes", "barrier".
std::string Describe(const CallShape& shape);

/// How call `number` begins on connections, and what such a start says: none, if it is no call's.
MessageStart StartOf(const CallShape& shape, uint32_t number);
std::optional<CallShape> CallOf(const MessageStart& start);

struct GroupCall {
  CallShape shape;
  std::span<const std::byte> input;  ///< of NodeBytesOf(), or as `places` says
  std::span<std::byte> output;
  CombineFunction combine = {};             ///< of a user's operation
  std::optional<UnevenParts> uneven = {};   ///< of an uneven alltoall
  std::function<void(const Status&)> done;  ///< called once; may be empty
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_SESSION_GROUP_CALL_H_
