// SPDX-License-Identifier: Apache-2.0
//
// ExchangeAddresses: members of a group on several machines exchange the addresses of their QPs
// over the links that they have already (peer_links.h), and connect these QPs.
#ifndef PREPOST_BACKENDS_NIC_HOST_EXCHANGE_H_
#define PREPOST_BACKENDS_NIC_HOST_EXCHANGE_H_

#include <chrono>

#include "backends/nic/program/pairing.h"
#include "ir/base/status.h"
#include "runtime/base/checkpoint.h"
#include "runtime/transport/peer_links.h"

namespace prepost::nic {

/// Sends every peer of `own` this node's port address and the QPNs that are for it, receives the
/// same, and connects all QPs. `links`: with each peer. Errors are a peer that plays another way,
/// or has queues on other lanes. Calls `checkpoint` every `interval` or so. Errors: a peer has not
/// answered within `answer_max` (kRejected); those of `checkpoint` and of Device::Connect();
/// kRejected with the peer: it sent something else, or its connection broke.
Status ExchangeAddresses(const OpenNode& own, PeerLinks& links, const Checkpoint& checkpoint,
                         std::chrono::milliseconds interval, std::chrono::milliseconds answer_max);

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_HOST_EXCHANGE_H_
