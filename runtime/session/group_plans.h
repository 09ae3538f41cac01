// SPDX-License-Identifier: Apache-2.0
//
// GroupPlans: which plan a group plays for a message of which size. The engine of a session asks
// it; who makes plans stands elsewhere (library/), because making them is the compiler's business.
#ifndef PREPOST_RUNTIME_SESSION_GROUP_PLANS_H_
#define PREPOST_RUNTIME_SESSION_GROUP_PLANS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "ir/verify/verify.h"
#include "runtime/executor/playable.h"
#include "runtime/files/plan_hash.h"
#include "runtime/session/group_call.h"
#include "runtime/transport/tcp/tcp_mesh.h"

namespace prepost {

/// Where the peers of a group's root are, and so what bounds its messages: a port of the network,
/// the processors of one machine over TCP, or its memory, where members copy from each other.
enum class GroupReach : uint8_t { kNetwork, kMachine, kMemory };

/// Of one group and one of its nodes, where nodes are the places of the group's members. Used by
/// one thread. All members must have equal ones: what For() gives is decided by size and variant
/// alone.
class GroupPlans {
 public:
  virtual ~GroupPlans() = default;

  /// The connections that any of the plans uses at any node, sorted. A group for calls has none: it
  /// opens them when a call first uses them.
  virtual const std::vector<TcpConnection>& connections() const = 0;
  /// Equal where For() gives equal plans.
  virtual PlanHash Hash() const = 0;
  /// Whether there is a plan for `bytes` bytes, as far as that can be said without making it; by
  /// any thread. Errors (kUsage): which sizes there are plans for.
  virtual Status CheckSize(uint64_t /*bytes*/) const { return {}; }
  /// At the root: which of its plans for `bytes` bytes is best where `rate` bytes/s are what
  /// messages had so far; 0: not known.
  virtual uint16_t Choose(uint64_t /*bytes*/, double /*rate*/, GroupReach /*reach*/) { return 0; }
  /// Whether short messages may go down the EagerTree instead (session/eager_lane.h): nobody has
  /// said how messages are to go. The same at all members.
  virtual bool HasEager() const { return false; }
  /// At the root, if so: up to how many bytes they are short, at most kEagerBytesMax; the rest as
  /// for Choose().
  virtual uint64_t EagerBytesMax(double /*rate*/, GroupReach /*reach*/) { return 0; }
  /// What whoever runs the program may want to know of the plans, a sentence each.
  virtual std::vector<std::string> Notes() const { return {}; }
  /// Whether all members have all blocks from the root, by this plan; then it knows from its sends
  /// that they have the message.
  virtual bool IsDirect(uint16_t /*variant*/) const { return false; }
  /// Whether the root sends each block to all of them before the next one: then they may be kept
  /// close to each other.
  virtual bool IsInStep(uint16_t /*variant*/) const { return false; }
  /// Verified, for `bytes` bytes, as the root has chosen it; valid until the next For(). Errors
  /// (kRejected): no plan for this size, no such variant.
  virtual Result<Playable> For(uint64_t bytes, uint16_t variant) = 0;
  /// Of a group for calls: the plan of one, where this node's blocks lie by it (null of a
  /// multicast), and whom it has channels with, valid until the next. Errors (kRejected): what the
  /// collective lacks.
  struct OfCall {
    const VerifiedPlan* plan = nullptr;
    const BlockPlaces* places = nullptr;
    std::span<const NodeId> peers = {};
  };
  virtual Result<OfCall> ForCall(const CallShape& /*call*/) {
    return Rejected("the group is for messages");
  }
  /// Whether there is a plan, as far as that can be said without making it; by any thread. Errors
  /// (kUsage).
  virtual Status CheckCall(const CallShape& /*call*/) const {
    return UsageError("the group is for messages, not for calls (GroupOptions::calls)");
  }
  /// The flat plan of all nodes for a message of `bytes`, for a device. It depends on nothing but
  /// that size. Needs plans that were made for a device.
  virtual Result<std::shared_ptr<const VerifiedPlan>> FlatFor(uint64_t bytes) = 0;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_SESSION_GROUP_PLANS_H_
