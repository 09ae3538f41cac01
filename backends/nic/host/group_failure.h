// SPDX-License-Identifier: Apache-2.0
//
// FailGroup: the end of a group of which some host has seen something wrong. Whoever is the host of
// all its nodes calls it once.
#ifndef PREPOST_BACKENDS_NIC_HOST_GROUP_FAILURE_H_
#define PREPOST_BACKENDS_NIC_HOST_GROUP_FAILURE_H_

#include <span>

#include "backends/nic/host/armed_node.h"
#include "ir/base/status.h"

namespace prepost::nic {

/// Finds the first cause, which need not be what was seen first: a QP that breaks shows at its peer
/// and behind every WAIT, too. Then moves all QPs of all nodes to the error state: from there on
/// nothing is forwarded. `nodes` are in the order of node ids. Ok, and nothing is moved, when
/// nothing is wrong anywhere; otherwise kRejected.
Status FailGroup(std::span<ArmedNode> nodes);

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_HOST_GROUP_FAILURE_H_
