// SPDX-License-Identifier: Apache-2.0
//
// Depths: how many sends and receives of one channel an executor keeps open, for the checker and
// the machine under tests/.
#ifndef PREPOST_TESTS_SUPPORT_DEPTHS_H_
#define PREPOST_TESTS_SUPPORT_DEPTHS_H_

#include <cstdint>
#include <optional>

namespace prepost::test {

struct Depths {
  std::optional<uint32_t> send;  ///< the (i + send)-th send starts only after the i-th is delivered
  std::optional<uint32_t>
      recv;  ///< the (i + recv)-th receive is posted only after the i-th is delivered
};

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_DEPTHS_H_
