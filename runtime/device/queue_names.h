// SPDX-License-Identifier: Apache-2.0
//
// ExchangeQueueNames: members learn by what name each peer's queue, of the other end of a channel,
// can be reached: an endpoint's address, a queue pair's numbers.
#ifndef PREPOST_RUNTIME_DEVICE_QUEUE_NAMES_H_
#define PREPOST_RUNTIME_DEVICE_QUEUE_NAMES_H_

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "runtime/device/channel_ends.h"
#include "runtime/device/peer_exchange.h"

namespace prepost {

/// A name is at most so long.
inline constexpr size_t kQueueNameBytesMax = 512;

struct QueueNames {
  std::string
      over;  ///< what queues are of, of at most 255 bytes; peers must have the same: "libfabric"
  const ChannelEnds& ends;
  /// By end, for its peer; empty: the peer needs none.
  std::span<const std::vector<std::byte>> own;
  /// Called with each of the peers' names, or an empty one where a peer has none, once for each
  /// end. The message of its error is what is wrong with the name.
  std::function<Status(uint32_t end, std::span<const std::byte> name)> learn;
};

/// `exchange`: its limit of bytes is set here. Errors: as ExchangeRecords(), and those of `learn`
/// (kRejected), with the peer.
Status ExchangeQueueNames(RecordExchange exchange, const QueueNames& names);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_DEVICE_QUEUE_NAMES_H_
