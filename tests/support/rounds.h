// SPDX-License-Identifier: Apache-2.0
//
// Files of rounds for tests: those of a plan, random ones that are right, and their plans.
#ifndef PREPOST_TESTS_SUPPORT_ROUNDS_H_
#define PREPOST_TESTS_SUPPORT_ROUNDS_H_

#include <cstdint>
#include <string>

#include "compiler/rounds/rounds_reader.h"
#include "compiler/spec.h"
#include "ir/plan.h"
#include "ir/verify/verify.h"
#include "tests/support/random.h"

namespace prepost::test {

/// The transfers of `plan` as a text of rounds, with its collective but for a multicast, or as JSON
/// with nodes, root and blocks, too.
std::string RoundsText(const Plan& plan);
std::string RoundsJson(const Plan& plan);

struct RandomRounds {
  std::string text;
  uint32_t ports = 1;  ///< at most: blocks that a node sends, or receives, in a round
};
/// A multicast of 2 to `nodes_max` nodes and 1 to `blocks_max` blocks with any root, in which
/// transfers are made at random; with rounds without transfers, comments and blanks.
RandomRounds MakeRandomRounds(Random& random, uint32_t nodes_max, uint32_t blocks_max);

/// What `prepost compile --rounds` makes of `text`.
Result<VerifiedPlan> CompileRounds(const std::string& text, const RoundsOptions& options,
                                   const SpecReady& ready = {},
                                   const SpecSendWindow& send_window = {});

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_ROUNDS_H_
