// SPDX-License-Identifier: Apache-2.0
//
// DevicePlayers: a member of a group plays its part over a NIC, either preposted or CPU-driven.
// Both kinds may be in one group: they make the same queue pairs, and put the same messages on
// them.
#ifndef PREPOST_BACKENDS_NIC_HOST_DEVICE_PLAYER_H_
#define PREPOST_BACKENDS_NIC_HOST_DEVICE_PLAYER_H_

#include <chrono>
#include <memory>

#include "backends/nic/device.h"
#include "backends/nic/program/device_profile.h"
#include "backends/nic/program/queue_program.h"
#include "ir/base/status.h"
#include "ir/plan.h"
#include "ir/verify/verify.h"
#include "runtime/executor/player.h"
#include "runtime/transport/peer_links.h"

namespace prepost::nic {

/// Everything on `device` for this node: its queues, connected with those of its peers (see
/// ExchangeAddresses(), of which `links` and `answer_max` are), filled, and validated against
/// `plan`. `program` is the node's of `plan`; they and `device` must outlive the player. Its end is
/// the final completion and the check of all that came; after an error all its QPs are in the error
/// state, so that nothing is forwarded any more. Errors: those of ArmedNode, ExchangeAddresses()
/// and ValidateArmed(). Arrivals and single ops are not observed: a NIC reports neither. Nor does
/// its host see anything move before the end, unless queues are written in parts: AskProgress()
/// asks the device (QueueWatch), and when nothing has moved Waiting() asks it what it stands at.
Result<std::unique_ptr<Player>> MakePrepostedPlayer(Device& device, const Plan& plan,
                                                    const NodeProgram& program, PeerLinks& links,
                                                    const PlayerContext& context,
                                                    std::chrono::milliseconds answer_max);

/// The CPU executor over `device`, which must outlive the player, as must `plan`. Rings and the CQ
/// are no longer than `limits` has them. Errors: those of DeviceEndpoint and ExchangeAddresses().
Result<std::unique_ptr<Player>> MakeDrivenPlayer(Device& device, const VerifiedPlan& plan,
                                                 NodeId node, PeerLinks& links,
                                                 const PlayerContext& context,
                                                 std::chrono::milliseconds answer_max,
                                                 const DeviceProfile& limits = {});

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_HOST_DEVICE_PLAYER_H_
