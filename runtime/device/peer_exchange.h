// SPDX-License-Identifier: Apache-2.0
//
// ExchangeRecords: members of a group tell each peer, over the links that they have already
// (peer_links.h), where their devices are: the addresses of queue pairs or endpoints.
#ifndef PREPOST_RUNTIME_DEVICE_PEER_EXCHANGE_H_
#define PREPOST_RUNTIME_DEVICE_PEER_EXCHANGE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "ir/ids.h"
#include "runtime/base/checkpoint.h"
#include "runtime/transport/peer_links.h"

namespace prepost {

/// Of one peer: what it is sent, and after the exchange what it has sent.
struct PeerRecord {
  NodeId peer;
  std::vector<std::byte> sent;
  std::vector<std::byte> received = {};
};

struct RecordExchange {
  NodeId node;                   ///< this one
  std::string what;              ///< for messages: "queue pairs"
  uint32_t bytes_max = 0;        ///< of a record; a longer one is an error
  PeerLinks& links;              ///< with each peer
  const Checkpoint& checkpoint;  ///< called every `interval` or so
  std::chrono::milliseconds interval{100};
  std::chrono::milliseconds answer_max{30000};
};

/// Sends every peer its record and receives the peer's, each behind its length. Nothing in it is
/// trusted but its size. Errors: a peer has not answered in time, closed its connection or sent too
/// much (kRejected, with the peer); those of the checkpoint.
Status ExchangeRecords(const RecordExchange& exchange, std::span<PeerRecord> records);

/// "node 2 cannot learn the queue pairs of node 3: ...", for what a record turns out to be.
Status NotLearned(const RecordExchange& exchange, NodeId peer, const std::string& why);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_DEVICE_PEER_EXCHANGE_H_
