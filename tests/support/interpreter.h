// SPDX-License-Identifier: Apache-2.0
//
// The interpreter decides what a plan does when everything is as late, or as early, as the plan
// allows: whether it is harmful. It knows nothing of the verifier's rules; the mutation test holds
// the rules against it.
//
//   Judge     exact. The machine is monotone, so "b always happens after a" is: b is not in the
//   largest run without a. Explore   the same by brute force over every interleaving, for tiny
//   plans: it checks Judge. Play      one run under a random scheduler that starves some events: a
//   lower bound for Judge on larger plans.
#ifndef PREPOST_TESTS_SUPPORT_INTERPRETER_H_
#define PREPOST_TESTS_SUPPORT_INTERPRETER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "ir/plan.h"
#include "tests/support/depths.h"
#include "tests/support/random.h"

namespace prepost::test {

enum class Harm : uint8_t {
  kNone,
  kUnplayable,  ///< no meaning at all: see Machine::Make
  kBytes,       ///< the blocks of the header do not cover the message
  kWrongBlock,  ///< a receive gets another block, or a credit, than it names
  kMissing,     ///< a node never receives some block
  kTwice,       ///< a node receives a block that it already has
  kDeadlock,    ///< some op never completes
  kNotHeld,     ///< a node can send, or combine with, a block that it does not have
  kNotPosted,   ///< a block can be sent before its receive is posted, and the mode does not retry
  kRace,        ///< bytes can be read or written while something else writes them
  kWrongValue,  ///< a node ends with a contribution missing, or counted twice where that matters
  kDisagree     ///< copies are combined in different orders, or not in that of ranks, as they must
};
const char* Name(Harm harm);

struct Judgement {
  Harm harm = Harm::kNone;
  std::string detail;  ///< for people

  bool harmful() const { return harm != Harm::kNone; }
};

/// The exact answer. Time O(messages x plan).
Judgement Judge(const Plan& plan, Depths depths = {});

/// Every interleaving; none if there are more than `states_max` states. Posts that no harm depends
/// on (of credits, and all in the modes barrier and retry) are not delayed.
std::optional<Judgement> Explore(const Plan& plan, size_t states_max, Depths depths = {});

/// One run: each of the events has a random weight, and a few have nearly none.
Judgement Play(const Plan& plan, Random& random, Depths depths = {});

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_INTERPRETER_H_
