// SPDX-License-Identifier: Apache-2.0
//
// Lower: a plan becomes queue programs, in one of two modes.
//   inline   every data send queue holds WAIT, WAIT, SEND, WAIT, SEND ..., each WAIT directly
//            before its own send. The order of a send queue is its channel's order, which the plan
//            already has, so lowering adds no edge to the plan graph: an acyclic plan cannot
//            deadlock in it.
//   managed  data send queues hold sends only and are managed; a loopback master holds WAIT and
//            SEND_EN in the plan's id order, which the verifier's rule `order` shows to be free of
//            cycles. One doorbell per master starts everything.
// Queues that are longer than the device's rings are written in parts (queue_program.h).
#ifndef PREPOST_BACKENDS_NIC_PROGRAM_LOWER_H_
#define PREPOST_BACKENDS_NIC_PROGRAM_LOWER_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "backends/nic/program/device_profile.h"
#include "backends/nic/program/queue_program.h"
#include "ir/base/status.h"
#include "ir/plan.h"
#include "ir/verify/verify.h"

namespace prepost::nic {

/// Which managed queues share a master. A WAIT holds up all that stands behind it on its master:
/// more masters hold up less, and cost a QP and a doorbell each.
enum class Masters : uint8_t {
  kNode,  ///< one for all
  kLane,  ///< one per lane: blocks do not hold up credits
  kQueue  ///< one per data queue
};
inline constexpr std::array<std::string_view, 3> kMastersNames = {"node", "lane", "queue"};
constexpr std::string_view Name(Masters masters) {
  return kMastersNames[static_cast<size_t>(masters)];
}

struct LowerOptions {
  LoweringMode mode = LoweringMode::kInline;
  Masters masters = Masters::kNode;  ///< managed mode
  DeviceProfile profile = {};
  std::optional<NodeId> node;  ///< only this node; programs of nodes do not depend on each other
};

/// Verifies `plan` and lowers it. Linear in its ops and `after` entries. Errors (kRejected): a plan
/// that is not valid or that no NIC carries out (WhyNotPreposted()), a node that does not exist, or
/// one that does not fit the profile, with node, queue, what is needed and the limit.
Result<QueueProgram> Lower(const VerifiedPlan& plan, const LowerOptions& options = {});

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_PROGRAM_LOWER_H_
