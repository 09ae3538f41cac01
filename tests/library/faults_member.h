// SPDX-License-Identifier: Apache-2.0
//
// A member of a group in which faults_test.cc has a fault strike, as a process of its own.
#ifndef PREPOST_TESTS_LIBRARY_FAULTS_MEMBER_H_
#define PREPOST_TESTS_LIBRARY_FAULTS_MEMBER_H_

#include <cstdint>

#include "tests/library/faults_scene.h"

namespace prepost::faults_test {

/// Until the group has failed and the next one is over, or, where nothing fails, for a while.
/// Writes what happens to `out`, a line each: first "ready", after which it waits for the end of
/// `gate`.
void RunMember(const Scene& scene, uint32_t self, int gate, int out);

/// A signal's handler: once, as soon as there is one, a connection of this member is closed behind
/// its back, and "struck" with the time is written as above.
void CloseOneConnection(int signal);

}  // namespace prepost::faults_test

#endif  // PREPOST_TESTS_LIBRARY_FAULTS_MEMBER_H_
