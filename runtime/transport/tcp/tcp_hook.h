// SPDX-License-Identifier: Apache-2.0
//
// TcpHook: stands between an endpoint and its connections, for tests: what moves in small pieces,
// what has to wait while other connections go on, which connection breaks.
#ifndef PREPOST_RUNTIME_TRANSPORT_TCP_TCP_HOOK_H_
#define PREPOST_RUNTIME_TRANSPORT_TCP_TCP_HOOK_H_

#include <cstddef>
#include <cstdint>

#include "ir/ids.h"
#include "ir/plan.h"

namespace prepost {

/// One way of a connection of an endpoint.
struct TcpWay {
  NodeId self;
  NodeId peer;
  Lane lane = Lane::kBlocks;
  uint16_t stream = 0;
  bool is_send = false;
  bool is_copy = false;  ///< from the peer's memory, of a block whose record the connection brought
  bool is_eager = false;  ///< the connection is of an EagerLane
};

/// Called by the threads of all endpoints that have it.
class TcpHook {
 public:
  /// The connection is to break now.
  static constexpr size_t kCut = SIZE_MAX;

  virtual ~TcpHook() = default;
  /// How many of `bytes`, at least 1, may be moved now; 0: none, and the endpoint asks again.
  virtual size_t Limit(const TcpWay& way, size_t bytes) = 0;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRANSPORT_TCP_TCP_HOOK_H_
