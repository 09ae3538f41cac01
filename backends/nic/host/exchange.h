// SPDX-License-Identifier: Apache-2.0
//
// ExchangeAddresses: members of a group on several machines exchange the addresses of their QPs
// over connections that they have already (bootstrap.h), and connect these QPs.
#ifndef PREPOST_BACKENDS_NIC_HOST_EXCHANGE_H_
#define PREPOST_BACKENDS_NIC_HOST_EXCHANGE_H_

#include <chrono>
#include <span>

#include "backends/nic/program/pairing.h"
#include "ir/status.h"
#include "runtime/checkpoint.h"
#include "runtime/transport/tcp_mesh.h"

namespace prepost::nic {

/// Sends every peer of `own` this node's port address and the QPNs that are for it, receives the
/// same, and connects all QPs. `sockets` has at least one connection with each peer; of several the
/// first is used. Errors are a peer that plays another way, or has queues on other lanes. Calls `checkpoint` every
/// `interval` or so. Errors: a peer has not answered within `answer_max` (kRejected); those of
/// `checkpoint` and of Device::Connect(); kRejected with the peer: it sent something else, or its
/// connection broke.
Status ExchangeAddresses(const OpenNode& own, std::span<const TcpSocket> sockets,
                         const Checkpoint& checkpoint, std::chrono::milliseconds interval,
                         std::chrono::milliseconds answer_max);

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_HOST_EXCHANGE_H_
