// SPDX-License-Identifier: Apache-2.0
//
// Asking for memory ahead of use. In virtual time a large fabric's queues and hosts are used in turn,
// each access to another one's memory, and every one would have to be waited for.
#ifndef PREPOST_BACKENDS_EMULATED_PREFETCH_H_
#define PREPOST_BACKENDS_EMULATED_PREFETCH_H_

#include <algorithm>
#include <cstddef>
#include <span>

#include "ir/prefetch.h"

namespace prepost::emulated {

/// Entry `index` of a ring will be needed soon.
inline void Prefetch(std::span<const std::byte> ring, size_t index, size_t stride) {
  PrefetchLine(ring.data() + (index * stride & (ring.size() - 1)));
}

/// Of larger ones, the first lines, which are those that count. Null: nothing.
inline void PrefetchLines(const void* at, size_t bytes) {
  if (at == nullptr) return;
  for (size_t line = 0; line < std::min<size_t>(bytes, 256); line += 64) {
    PrefetchLine(static_cast<const std::byte*>(at) + line);
  }
}

template <typename T>
void PrefetchObject(const T& object) {
  PrefetchLines(&object, sizeof object);
}

}  // namespace prepost::emulated

#endif  // PREPOST_BACKENDS_EMULATED_PREFETCH_H_
