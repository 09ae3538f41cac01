// SPDX-License-Identifier: Apache-2.0
#ifndef PREPOST_TESTS_DIFFERENTIAL_DEVICE_PLAY_H_
#define PREPOST_TESTS_DIFFERENTIAL_DEVICE_PLAY_H_

#include <functional>
#include <string>
#include <vector>

#include "ir/verify/verify.h"
#include "tests/support/random.h"

namespace prepost::test {

/// Plays all nodes over devices of this name, a thread and a device each, node i preposted if
/// `preposted[i]`, and compares all bytes; preposted hosts do nothing but start and wake up once.
/// `before_start` is called once, when all nodes are ready; it does not throw.
void Play(const VerifiedPlan& plan, const std::string& device, const std::vector<bool>& preposted,
          const std::function<void()>& before_start = [] {});

/// The same of another collective, driven at all nodes; outputs are what the inputs say. Of elements that
/// are 32-bit integers, where anything is combined.
void PlayCollective(const VerifiedPlan& plan, const std::string& device, Random& random);

}  // namespace prepost::test

#endif  // PREPOST_TESTS_DIFFERENTIAL_DEVICE_PLAY_H_
