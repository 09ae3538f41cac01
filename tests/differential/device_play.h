// SPDX-License-Identifier: Apache-2.0
#ifndef PREPOST_TESTS_DIFFERENTIAL_DEVICE_PLAY_H_
#define PREPOST_TESTS_DIFFERENTIAL_DEVICE_PLAY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ir/verify/verify.h"

namespace prepost::test {

/// Plays all nodes over devices of this name, a thread and a device each, node i preposted if
/// `preposted[i]`, and compares all bytes; preposted hosts do nothing but start and wake up once.
/// `before_start` is called once, when all nodes are ready; it does not throw.
void Play(const VerifiedPlan& plan, const std::string& device, const std::vector<bool>& preposted,
          const std::function<void()>& before_start = [] {});

/// Small plans of all other collectives, driven at all nodes, one of `fewer` of a test's usual sample:
/// outputs are what the inputs say.
void PlayEveryCollective(const std::string& device, uint32_t fewer);

}  // namespace prepost::test

#endif  // PREPOST_TESTS_DIFFERENTIAL_DEVICE_PLAY_H_
