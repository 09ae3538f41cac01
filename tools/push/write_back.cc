// SPDX-License-Identifier: Apache-2.0
#include "tools/push/write_back.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <future>
#include <system_error>
#include <utility>

#include "runtime/base/file_descriptor.h"

namespace prepost::tools {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kDiskPoll{100};
constexpr std::chrono::seconds kSilentWriteMax{10};  ///< then it says what it waits for

Status WriteBackError(const std::string& name, int error) {
  return SystemError(StatusCode::kRejected, fmt::format("cannot write {}", name), error);
}

}  // namespace

Status WriteBack::Advance(int file, uint64_t offset, const std::string& name) {
  if (!has_ranges_ || offset - started_ < kStepBytes) return {};
  int error = 0;
  const auto sync_range = [&](uint64_t begin, uint64_t end, unsigned flags) {
    if (error == 0 && begin < end &&
        options_.calls.sync_range(file, static_cast<off64_t>(begin),
                                  static_cast<off64_t>(end - begin), flags) != 0)
      error = errno;
  };
  const Status status = WaitFor(
      [&] {
        // First the new one, so that the disk has something to do all the time.
        sync_range(started_, offset, SYNC_FILE_RANGE_WRITE);
        sync_range(
            waited_, started_,
            SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
      },
      name);
  waited_ = std::exchange(started_, offset);
  PREPOST_RETURN_IF_ERROR(status);
  if (error == EINVAL || error == ENOSYS || error == ESPIPE || error == EOPNOTSUPP) {
    has_ranges_ = false;  // Finish() does it all
    return {};
  }
  return error == 0 ? Status() : WriteBackError(name, error);
}

Status WriteBack::Finish(int file, const std::string& name) {
  int error = 0;
  const Status status = WaitFor(
      [&] {
        if (options_.calls.sync(file) != 0) error = errno;
      },
      name);
  started_ = waited_ = 0;
  PREPOST_RETURN_IF_ERROR(status);
  return error == 0 ? Status() : WriteBackError(name, error);
}

Status WriteBack::WaitFor(const std::function<void()>& call, const std::string& name) {
  const Clock::time_point began = Clock::now();
  std::future<void> done;
  try {
    done = std::async(std::launch::async, call);
  } catch (const std::system_error&) {  // no thread
    call();
    return Check(options_.checkpoint);
  }
  Status status;
  while (done.wait_for(kDiskPoll) != std::future_status::ready) {
    const auto waited = Clock::now() - began;
    if (status.ok() && waited < options_.answer_max) status = Check(options_.checkpoint);
    if (waited < kSilentWriteMax || !options_.waiting || std::exchange(has_said_, true)) continue;
    options_.waiting(fmt::format("waits for its disk to write {}", name));
  }
  done.get();
  return status;
}

}  // namespace prepost::tools
