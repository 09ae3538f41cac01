// SPDX-License-Identifier: Apache-2.0
#ifndef PREPOST_IR_PREFETCH_H_
#define PREPOST_IR_PREFETCH_H_

namespace prepost {

/// The cache line at `at`, any address, will be needed soon. GCC takes a function that does nothing but
/// __builtin_prefetch for one without effect, and drops calls of it; the empty instruction keeps them.
inline void PrefetchLine(const void* at) {
  __builtin_prefetch(at, 1);
  asm volatile("" : : "r"(at));
}

}  // namespace prepost

#endif  // PREPOST_IR_PREFETCH_H_
