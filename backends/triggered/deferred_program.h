// SPDX-License-Identifier: Apache-2.0
//
// DeferredProgram: one node's part of a plan as deferred work of libfabric (fi_trigger(3)): sends
// that a provider starts by itself when a counter reaches a threshold. A counter counts and knows
// no message, so that each channel has an endpoint of its own, whose counter says how many of the
// channel's ops have completed, in their order. DeferredLowering makes such programs from plans,
// ValidateDeferred() says what they make certain; nothing here calls libfabric.
#ifndef PREPOST_BACKENDS_TRIGGERED_DEFERRED_PROGRAM_H_
#define PREPOST_BACKENDS_TRIGGERED_DEFERRED_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "ir/ids.h"
#include "ir/plan.h"
#include "ir/verify/verify.h"
#include "runtime/device/channel_ends.h"

namespace prepost::triggered {

/// When a counter of the node has this value or more. Counters begin at 0 and only rise.
struct Trigger {
  uint32_t counter = 0;
  uint64_t threshold = 0;

  friend bool operator==(const Trigger&, const Trigger&) = default;
};

/// One unit of deferred work: a send, the addition of a number to a counter, or a message without
/// bytes to this node itself, a pulse, whose arrival adds 1 to a counter: later, where an addition
/// would come in the midst of what its own trigger does.
struct DeferredWork {
  enum class Kind : uint8_t { kSend, kAdd, kPulse };
  Kind kind = Kind::kSend;
  Trigger trigger;
  // kSend
  uint32_t end = 0;  ///< index of DeferredProgram::ends
  OpId op;
  uint32_t block = kNoBlock;
  // kAdd, kPulse
  uint32_t counter = 0;
  uint64_t value = 0;  ///< kPulse: 1

  friend bool operator==(const DeferredWork&, const DeferredWork&) = default;
};

/// Counters are numbered: first those of `ends`, which count their completed ops, then the fixed
/// ones, those of pulses, and those that join conditions.
struct DeferredProgram {
  static constexpr uint32_t kFixedCounters = 4;  ///< start, complete, done, thrown

  NodeId node;
  std::vector<ChannelEnd> ends;
  uint32_t counters = 0;
  uint32_t pulse_counters = 0;

  uint32_t start() const {
    return static_cast<uint32_t>(ends.size());
  }                                                  ///< the host adds 1 to begin
  uint32_t complete() const { return start() + 1; }  ///< of how many ends all ops have completed
  uint32_t done() const { return start() + 2; }      ///< 1: the host's one event, all is complete
  uint32_t thrown() const {
    return start() + 3;
  }  ///< pulses that were sent, which nobody waits for
  uint32_t first_pulse() const { return start() + kFixedCounters; }
  bool IsPulse(uint32_t counter) const {
    return counter >= first_pulse() && counter < first_pulse() + pulse_counters;
  }

  /// In the order in which it is queued: what one counter releases at one threshold starts in that
  /// order.
  std::vector<DeferredWork> works;

  /// That are posted before the start, those of pulses included.
  uint64_t receives() const;
  /// "received from 3 lane 0", "join 2", for listings and messages.
  std::string CounterName(uint32_t counter) const;
};

/// What a provider can hold, of one node's program.
struct DeferredLimits {
  uint32_t counters_max = 128;
  uint64_t value_max = 0x7fffffff;  ///< what a counter can have: 31 bits with the provider sockets
};

/// Lowers `node`'s part of `plan`. A send waits for the ops of its `after` and for what the sends
/// before it on its channel wait for, as they start in that order. Conditions on several counters
/// are joined by counters: at most as many per channel as there are others that its sends wait for,
/// whatever the number of blocks. Errors (kRejected): WhyNotPreposted(); more counters than the
/// limits have, or higher ones.
Result<DeferredProgram> LowerDeferred(const VerifiedPlan& plan, NodeId node,
                                      const DeferredLimits& limits = {});

/// Whether `program` is `plan`'s for its node, judged from its works alone, by what counters make
/// certain and not by how it was made: every op stands once, on its channel, in order; no send can
/// start before an op of its `after` has completed, or before the send before it on its channel, in
/// whatever order peers' messages come; and along one order of all ops that the plan allows every
/// send starts when its turn has come, so that if all nodes' programs are valid none waits for
/// ever, since more completions never take a start away. Linear in works for each counter. Errors
/// (kRejected): the first finding.
Status ValidateDeferred(const VerifiedPlan& plan, const DeferredProgram& program);

/// A line per endpoint and per unit of work, for people.
std::string ListDeferred(const Plan& plan, const DeferredProgram& program);

}  // namespace prepost::triggered

#endif  // PREPOST_BACKENDS_TRIGGERED_DEFERRED_PROGRAM_H_
