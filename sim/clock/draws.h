// SPDX-License-Identifier: Apache-2.0
//
// Draws: random numbers of a model, from a seed. The same on every machine, bit for bit: bits come
// from std::mt19937_64, which the standard fixes, and what is made of them here uses only whole
// numbers, comparisons and operations that IEEE 754 rounds in one way. The standard's
// distributions, and std::log or std::cos, differ between libraries in the last bit.
#ifndef PREPOST_SIM_CLOCK_DRAWS_H_
#define PREPOST_SIM_CLOCK_DRAWS_H_

#include <cstdint>
#include <memory>
#include <random>

namespace prepost::sim {

/// One thread. Small until the first draw: most cores of a cluster never need one.
class Draws {
 public:
  explicit Draws(uint64_t seed) : seed_(seed) {}

  /// In (0, 1], of 2^53 values.
  double Uniform();
  /// 0 or more, exponential with mean 1, to 2^-53 (von Neumann 1951, by comparisons alone).
  double Exponential();
  /// With mean 0 and deviation 1, about normal: no more than 6 away from 0 (12 uniform ones).
  double Normal();

 private:
  uint64_t Next() {
    if (bits_ == nullptr) bits_ = std::make_unique<std::mt19937_64>(seed_);
    return (*bits_)();
  }

  uint64_t seed_;
  std::unique_ptr<std::mt19937_64> bits_;  // null: nothing was drawn
};

}  // namespace prepost::sim

#endif  // PREPOST_SIM_CLOCK_DRAWS_H_
