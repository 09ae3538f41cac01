// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/memory_pool.h"

#include <fmt/format.h>
#include <unistd.h>

namespace prepost {

MemoryPool::Impl::Impl(Mapping memory, uint64_t buffer_bytes, uint64_t stride, uint32_t buffers)
    : memory_(std::move(memory)),
      buffer_bytes_(buffer_bytes),
      stride_(stride),
      is_taken_(buffers, false) {
  for (uint32_t i = buffers; i > 0; --i) free_.push_back(i - 1);
}

void* MemoryPool::Impl::Take(const void* who, std::function<void()> notify) {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    waiting_[who] = std::move(notify);
    return nullptr;
  }
  waiting_.erase(who);
  const uint32_t place = free_.back();
  free_.pop_back();
  is_taken_[place] = true;
  return memory_.bytes().data() + place * stride_;
}

void MemoryPool::Impl::Forget(const void* who) {
  const std::lock_guard lock(mutex_);
  waiting_.erase(who);
}

Status MemoryPool::Impl::Give(void* memory) {
  if (memory == nullptr) return {};
  if (is_inherited())
    return UsageError("the pool was made before this process was forked, and is its parent's");
  const auto first = reinterpret_cast<uintptr_t>(memory_.bytes().data());
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const std::lock_guard lock(mutex_);
  const uint64_t place = (address - first) / stride_;
  if (address < first || (address - first) % stride_ != 0 || place >= is_taken_.size())
    return UsageError("what is given back is no buffer of this pool");
  if (!is_taken_[place]) return UsageError("a buffer is given back that is free already");
  is_taken_[place] = false;
  free_.push_back(static_cast<uint32_t>(place));
  // All: whoever waits for a group that is over meanwhile would keep the buffer from the others.
  for (const auto& [who, notify] : waiting_) notify();
  return {};
}

uint32_t MemoryPool::Impl::free_buffers() {
  if (is_inherited()) return 0;
  const std::lock_guard lock(mutex_);
  return static_cast<uint32_t>(free_.size());
}

Result<std::shared_ptr<MemoryPool>> MemoryPool::Make(uint64_t buffer_bytes, uint32_t buffers) {
  if (buffer_bytes == 0 || buffers == 0)
    return UsageError("a pool has buffers, and these have bytes");
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (buffer_bytes > (UINT64_MAX - page) / buffers - page)
    return UsageError(fmt::format("{} buffers of {} bytes are more than there are addresses",
                                  buffers, buffer_bytes));
  const uint64_t stride = (buffer_bytes + page - 1) / page * page;
  Result<Mapping> memory = Mapping::Anonymous(stride * buffers);
  if (!memory.ok()) return memory.status();
  return std::shared_ptr<MemoryPool>(
      new MemoryPool(std::make_unique<Impl>(*std::move(memory), buffer_bytes, stride, buffers)));
}

MemoryPool::MemoryPool(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MemoryPool::~MemoryPool() = default;
Status MemoryPool::Give(void* memory) { return impl_->Give(memory); }
uint64_t MemoryPool::buffer_bytes() const { return impl_->buffer_bytes(); }
uint32_t MemoryPool::buffers() const { return impl_->buffers(); }
uint32_t MemoryPool::free_buffers() const { return impl_->free_buffers(); }

}  // namespace prepost
