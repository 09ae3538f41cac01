// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/sweep_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "tools/report/ticker.h"

namespace prepost::tools {
namespace {

class SweepPool {
 public:
  SweepPool(const SweepFunction& run, std::vector<SweepRow>* rows)
      : run_(run), rows_(*rows), is_shown_(ShowsProgress()) {}

  /// Takes rows until none is left or one ends the sweep.
  void Work() {
    for (size_t i = next_++; i < rows_.size() && !is_over_; i = next_++) {
      Finish(i);
      Show(++done_);
    }
  }

  Status Outcome() const {
    if (is_shown_) std::cerr << "\r\033[K" << std::flush;
    for (const SweepRow& row : rows_) {
      if (EndsAll(row.status)) return row.status;
    }
    return {};
  }

 private:
  static bool EndsAll(const Status& status) {
    return !status.ok() && status.code() != StatusCode::kRejected;
  }

  void Finish(size_t index) {
    SweepRow& row = rows_[index];
    try {
      Result<nlohmann::ordered_json> found = run_(index);
      row.status = found.status();
      if (found.ok()) row.found = *std::move(found);
    } catch (const std::bad_alloc&) {
      row.status = EnvironmentError("out of memory");
    }
    if (EndsAll(row.status)) is_over_ = true;
  }

  void Show(size_t done) {
    if (!is_shown_) return;
    const std::lock_guard lock(mutex_);
    std::cerr << fmt::format("\r\033[Ksimulated {} of {}", done, rows_.size()) << std::flush;
  }

  const SweepFunction& run_;
  std::vector<SweepRow>& rows_;
  const bool is_shown_;
  std::mutex mutex_;  // of stderr
  std::atomic<size_t> next_ = 0;
  std::atomic<size_t> done_ = 0;
  std::atomic<bool> is_over_ = false;
};

}  // namespace

Status RunSweep(const SweepFunction& run, unsigned jobs, std::vector<SweepRow>* rows) {
  PREPOST_CHECK(jobs >= 1);
  SweepPool pool(run, rows);
  {
    std::vector<std::jthread> others;
    const size_t threads = std::min<size_t>(jobs, rows->size());
    for (size_t i = 1; i < threads; ++i) {
      try {
        others.emplace_back([&pool] { pool.Work(); });
      } catch (const std::system_error&) {
        break;  // fewer, then
      }
    }
    pool.Work();
  }
  return pool.Outcome();
}

}  // namespace prepost::tools
