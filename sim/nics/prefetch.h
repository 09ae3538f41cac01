// SPDX-License-Identifier: Apache-2.0
//
// Prefetching for the timed engine. With many hosts most of what an event touches is not in the
// cache; an event comes with its successors known, so that memory can be on its way before. It
// changes nothing but how long a run takes: with 512 nodes half as long, preposted, and a fifth
// less, CPU-driven (bench/virtual_bench).
#ifndef PREPOST_SIM_NICS_PREFETCH_H_
#define PREPOST_SIM_NICS_PREFETCH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace prepost::emulated {
struct NicState;
struct QpState;
}  // namespace prepost::emulated

namespace prepost::sim {

using emulated::NicState;
using emulated::QpState;

/// The cache line at `at`. GCC takes a function that only calls __builtin_prefetch for one without
/// effect, and drops calls of it; the empty instruction keeps them.
inline void PrefetchLine(const void* at) {
  __builtin_prefetch(at, 1);
  asm volatile("" : : "r"(at));
}

/// Of larger things, the first lines, which are those that count. Null: nothing.
inline void PrefetchLines(const void* at, size_t bytes) {
  constexpr size_t kLineBytes = 64;
  constexpr size_t kBytesMax = 256;
  if (at == nullptr) return;
  for (size_t line = 0; line < std::min(bytes, kBytesMax); line += kLineBytes) {
    PrefetchLine(static_cast<const std::byte*>(at) + line);
  }
}

/// What pointers in the QP lead to, which is in the cache itself.
void PrefetchQueue(const QpState& qp);
/// One step farther: CQs that the next WQEs wait for, where a message lands.
void PrefetchPeers(const QpState& qp);
/// Messages of these QPs (QpState) are about to arrive, or to be acknowledged.
void PrefetchLandings(std::span<void* const> qps);

// What an event needs, by stages: each needs what the one before has prefetched.
inline constexpr uint16_t kDoorbellStages = 3;
inline constexpr uint16_t kReturnStages = 4;
inline constexpr uint16_t kLandingStages = 5;
void PrefetchDoorbell(const NicState& nic, uint64_t first_bytes, size_t stage);
void PrefetchReturn(const QpState& qp, size_t stage);
void PrefetchLanding(const QpState& qp, size_t stage);

}  // namespace prepost::sim

#endif  // PREPOST_SIM_NICS_PREFETCH_H_
