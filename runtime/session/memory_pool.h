// SPDX-License-Identifier: Apache-2.0
//
// MemoryPool::Impl: the buffers of a MemoryPool (prepost.h), and who waits for one.
#ifndef PREPOST_RUNTIME_SESSION_MEMORY_POOL_H_
#define PREPOST_RUNTIME_SESSION_MEMORY_POOL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "ir/base/status.h"
#include "prepost/prepost.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/base/mapping.h"

namespace prepost {

/// Functions may be called by any thread.
class MemoryPool::Impl {
 public:
  /// `memory` has `buffers` places, `stride` bytes apart.
  Impl(Mapping memory, uint64_t buffer_bytes, uint64_t stride, uint32_t buffers);

  /// A buffer, or null: then `notify` is called when one may be free, by the thread that gives it
  /// back, under a lock. `who` waits once; taking one ends that.
  void* Take(const void* who, std::function<void()> notify);
  /// `who` waits no more; its `notify` is not called when this has returned.
  void Forget(const void* who);
  Status Give(void* memory);

  /// All of it.
  std::span<std::byte> memory() const { return memory_.bytes(); }
  uint64_t buffer_bytes() const { return buffer_bytes_; }
  uint32_t buffers() const { return static_cast<uint32_t>(is_taken_.size()); }
  uint32_t free_buffers();
  /// The pool is of a process that this one was forked from, which may have left it in any state.
  bool is_inherited() const { return depth_ != ForkDepth(); }

 private:
  const uint32_t depth_ = ForkDepth();
  const Mapping memory_;
  const uint64_t buffer_bytes_;
  const uint64_t stride_;
  std::mutex mutex_;
  std::vector<uint32_t> free_;  ///< places; the last is taken first, while it is in the caches
  std::vector<bool> is_taken_;  ///< by place
  std::map<const void*, std::function<void()>> waiting_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_SESSION_MEMORY_POOL_H_
