// SPDX-License-Identifier: Apache-2.0
//
// Addresses of this machine (127.0.0.0/8) that belong to the calling test process alone, so that
// tests which run at the same time never meet at a port.
#ifndef PREPOST_TESTS_SUPPORT_LOOPBACK_H_
#define PREPOST_TESTS_SUPPORT_LOOPBACK_H_

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <string>

namespace prepost::test {

/// The address of the index-th of up to 32 machines.
inline std::string LoopbackAddress(uint32_t index) {
  const auto pid = static_cast<uint32_t>(getpid());
  return fmt::format("127.{}.{}.{}", 32 * (1 + (pid >> 16) % 7) + index % 32, pid >> 8 & 255,
                     pid & 255);
}

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_LOOPBACK_H_
