// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/file_sync.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "runtime/base/file_descriptor.h"
#include "runtime/base/thread.h"
#include "runtime/transport/tcp/tcp_wire.h"

namespace prepost {
namespace {

Status SyncPages(std::span<const std::byte> memory) {
  if (memory.empty()) return {};
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  const uintptr_t first = address / page * page;
  if (msync(reinterpret_cast<void*>(first), address - first + memory.size(), MS_SYNC) != 0)
    return SystemError(StatusCode::kEnvironment, "cannot write it to its file", errno);
  // Of pages that a file has no more msync() says nothing.
  if (IsThere({.iov_base = const_cast<std::byte*>(memory.data()), .iov_len = memory.size()}))
    return {};
  return EnvironmentError("cannot write it to its file, which was truncated meanwhile");
}

}  // namespace

Result<std::unique_ptr<FileSync>> FileSync::Start(std::function<void()> notify) {
  std::unique_ptr<FileSync> sync(new FileSync(std::move(notify)));
  Result<std::thread> thread =
      StartThread("the thread that writes messages to files", [raw = sync.get()] { raw->Run(); });
  if (!thread.ok()) return thread.status();
  sync->thread_ = *std::move(thread);
  return sync;
}

FileSync::~FileSync() {
  if (!thread_.joinable()) return;
  End();
  thread_.join();
}

void FileSync::Add(std::span<const std::byte> memory) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(memory);
  }
  changed_.notify_one();
}

std::vector<Status> FileSync::TakeResults() {
  const std::lock_guard lock(mutex_);
  return std::exchange(results_, {});
}

void FileSync::End() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_one();
}

bool FileSync::is_over() {
  const std::lock_guard lock(mutex_);
  return is_over_;
}

void FileSync::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_ending_ || !waiting_.empty(); });
    if (is_ending_) break;
    const std::span<const std::byte> next = waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    Status status = SyncPages(next);
    lock.lock();
    if (is_ending_) break;
    results_.push_back(std::move(status));
    notify_();
  }
  is_over_ = true;
}

}  // namespace prepost
