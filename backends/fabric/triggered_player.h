// SPDX-License-Identifier: Apache-2.0
//
// A node whose part of a plan is deferred work: the provider starts every send when its counters
// say so, and the host sleeps until all is complete.
#ifndef PREPOST_BACKENDS_FABRIC_TRIGGERED_PLAYER_H_
#define PREPOST_BACKENDS_FABRIC_TRIGGERED_PLAYER_H_

#include <memory>

#include "backends/fabric/domain.h"
#include "backends/triggered/deferred_program.h"
#include "ir/base/status.h"
#include "runtime/device/player_device.h"

namespace prepost::fabric {

/// Everything in `domain` for `program`, which is `task`'s node's: endpoints, connected with those
/// of its peers, receives posted, counters, and the work queued, after it was validated against the
/// plan (ValidateDeferred()). Its start adds 1 to a counter; its end is the first change of another
/// one, and the check of all that came. Single ops are not observed. `domain` and `program` must
/// outlive the player, and `domain` has no other player with queued work when this one ends.
/// Errors: the provider's (kEnvironment), the findings (kRejected), those of Endpoints::Connect().
Result<std::unique_ptr<Player>> MakeTriggeredPlayer(const Domain& domain,
                                                    const triggered::DeferredProgram& program,
                                                    PlayerDevice::Task task);

}  // namespace prepost::fabric

#endif  // PREPOST_BACKENDS_FABRIC_TRIGGERED_PLAYER_H_
