// SPDX-License-Identifier: Apache-2.0
//
// RandomBytes: content for messages and files of tests.
#ifndef PREPOST_TESTS_SUPPORT_RANDOM_BYTES_H_
#define PREPOST_TESTS_SUPPORT_RANDOM_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace prepost::test {

/// Bytes that differ between any two places, so that a misplaced block cannot look right.
inline std::vector<std::byte> RandomBytes(size_t count, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0xff);
  return bytes;
}

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_RANDOM_BYTES_H_
