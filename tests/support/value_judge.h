// SPDX-License-Identifier: Apache-2.0
//
// What a plan does to memory: which op reads and writes which place of its node, whether two of
// them can meet there, and what the values are in the end. Part of the interpreter.
#ifndef PREPOST_TESTS_SUPPORT_VALUE_JUDGE_H_
#define PREPOST_TESTS_SUPPORT_VALUE_JUDGE_H_

#include <span>

#include "tests/support/interpreter.h"
#include "tests/support/machine.h"
#include "tests/support/random.h"

namespace prepost::test {

/// Exact, for a machine that plays to its end. Without races every run gives the same values, and
/// one shows them. Time O(events x plan).
Judgement JudgeValues(const Machine& machine);

/// The values of one run, `taken`, under a memory that does its worst: bytes of a send are read
/// when it starts or when it is delivered, and those of a receive are torn from the one to the
/// other.
Judgement PlayValues(const Machine& machine, std::span<const Event> taken, Random& random);

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_VALUE_JUDGE_H_
