// SPDX-License-Identifier: Apache-2.0
//
// Pairing: which QPs the nodes of a plan have, and connecting them. One RC QP per peer and lane, in
// both directions; whoever plays a plan on devices uses it, preposted or not.
#ifndef PREPOST_BACKENDS_NIC_PROGRAM_PAIRING_H_
#define PREPOST_BACKENDS_NIC_PROGRAM_PAIRING_H_

#include <cstdint>
#include <span>
#include <vector>

#include "backends/nic/device.h"
#include "ir/base/status.h"
#include "ir/plan.h"

namespace prepost::nic {

/// One QP of a node: the channels node>peer and peer>node of one lane.
struct Pair {
  NodeId peer;
  Lane lane = Lane::kBlocks;
  uint32_t sends = 0;  ///< ops of the node's program
  uint32_t receives = 0;
};

struct Pairing {
  std::vector<Pair> pairs;       ///< sorted by (peer, lane)
  std::vector<uint32_t> of_ops;  ///< by op: position in `pairs`
};

/// The QPs that `program`, of a verified plan, uses. Linear but for the sorting of its pairs.
Pairing PairUp(const Plan& plan, const Program& program);

/// A QP that is to be connected to its counterpart at `peer`.
struct OpenQp {
  NodeId peer;
  Lane lane = Lane::kBlocks;
  uint32_t qpn = 0;
  uint32_t peer_qpn = 0;  ///< what ConnectAll() has connected it to
};
/// One node's device and its QPs, sorted by (peer, lane).
struct OpenNode {
  NodeId node;
  Device* device = nullptr;  ///< not owned
  std::vector<OpenQp> qps;
};
/// Connects every QP, and notes to which one. `nodes` are in the order of node ids. Errors: those
/// of Device::Connect(); kRejected: a QP has no counterpart.
Status ConnectAll(std::span<OpenNode> nodes);

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_PROGRAM_PAIRING_H_
