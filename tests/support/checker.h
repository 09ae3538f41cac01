// SPDX-License-Identifier: Apache-2.0
//
// IndependentCheck: the rules of docs/plan.md a second time, written from their text and sharing no
// code with ir/'s verifier, to compare it with. It builds the graphs as they are defined and
// searches them; sizes up to a few thousand ops.
#ifndef PREPOST_TESTS_SUPPORT_CHECKER_H_
#define PREPOST_TESTS_SUPPORT_CHECKER_H_

#include <set>

#include "ir/diagnostic.h"
#include "ir/plan.h"
#include "tests/support/depths.h"

namespace prepost::test {

/// The rules that `plan` breaks. A plan without shape, or without match, breaks that one alone:
/// the others would have no meaning.
std::set<Rule> IndependentCheck(const Plan& plan, Depths depths = {});

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_CHECKER_H_
