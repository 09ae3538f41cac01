// SPDX-License-Identifier: Apache-2.0
//
// Exponential: of numbers drawn one after the other, u1 >= u2 >= ... >= un < u(n+1). With u1 = x, n
// is m or more with probability x^(m-1) / (m-1)!, so it is odd with 1 - x + x^2/2 - ... = exp(-x).
// Then x is a draw from the part of the distribution in [0, 1); and if n is even, which it is with
// probability 1/e, the draw is 1 later, and so on. 4.3 numbers are drawn on the average.
//
// Source: J. von Neumann, Various techniques used in connection with random digits, 1951.
#include "sim/clock/draws.h"

#include <cfloat>

namespace prepost::sim {

static_assert(FLT_EVAL_METHOD == 0, "doubles are rounded after each operation");

double Draws::Uniform() { return static_cast<double>((Next() >> 11) + 1) * 0x1p-53; }

double Draws::Exponential() {
  for (uint32_t whole = 0;; ++whole) {
    const uint64_t first = Next();
    uint64_t last = first;
    bool is_odd = true;
    for (uint64_t next = Next(); next <= last; next = Next()) {
      last = next;
      is_odd = !is_odd;
    }
    if (is_odd) return static_cast<double>(whole) + static_cast<double>(first >> 11) * 0x1p-53;
  }
}

double Draws::Normal() {
  uint64_t sum = 0;  // of whole numbers below 2^48: exact as a double
  for (int i = 0; i < 12; ++i) sum += Next() >> 16;
  return static_cast<double>(sum) * 0x1p-48 - 6;
}

}  // namespace prepost::sim
