// SPDX-License-Identifier: Apache-2.0
//
// The oracle: what bytes each node holds after a plan, by the plainest interpretation. Tests of the
// executors compare with it. It moves real bytes and trusts nothing: buffers start out wrong, so a
// block that is sent before it has come, or never comes, shows.
#ifndef PREPOST_TESTS_SUPPORT_ORACLE_H_
#define PREPOST_TESTS_SUPPORT_ORACLE_H_

#include <cstddef>
#include <span>
#include <vector>

#include "ir/plan.h"
#include "tests/support/random.h"

namespace prepost::test {

/// [node][byte]: the root has `message` (of header.payload.bytes), the others what reached them, in
/// some order of events that the plan allows and `random` picks. Each byte of a send is read when
/// it starts. Fails when the plan cannot be played, or not to its end, or a receive gets another
/// block than it names.
Result<std::vector<std::vector<std::byte>>> Deliver(const Plan& plan,
                                                    std::span<const std::byte> message,
                                                    Random& random);

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_ORACLE_H_
