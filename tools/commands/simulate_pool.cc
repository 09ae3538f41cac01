// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/simulate_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "planning/text/messages.h"
#include "runtime/base/thread.h"

namespace prepost::tools {
namespace {

class SimulatePool {
 public:
  SimulatePool(size_t count, const std::function<Status(size_t)>& run)
      : run_(run), outcomes_(count), ticker_(Progress(0)) {}

  /// Takes one after the other until none is left or one ends all.
  void Work() {
    for (size_t i = next_++; i < outcomes_.size() && !is_over_; i = next_++) {
      try {
        outcomes_[i] = run_(i);
      } catch (const std::bad_alloc&) {
        outcomes_[i] = EnvironmentError("out of memory");
      }
      if (!outcomes_[i].ok()) is_over_ = true;
      ticker_.Say(Progress(++done_));
    }
  }

  Status Outcome() const {
    const auto failed =
        std::ranges::find_if(outcomes_, [](const Status& status) { return !status.ok(); });
    return failed == outcomes_.end() ? Status() : *failed;
  }

 private:
  std::string Progress(size_t done) const {
    return fmt::format("simulated {} of {}", done, outcomes_.size());
  }

  const std::function<Status(size_t)>& run_;
  std::vector<Status> outcomes_;
  Ticker ticker_;
  std::atomic<size_t> next_ = 0;
  std::atomic<size_t> done_ = 0;
  std::atomic<bool> is_over_ = false;
};

}  // namespace

Status RunEach(size_t count, unsigned jobs, const std::function<Status(size_t)>& run) {
  PREPOST_CHECK(jobs >= 1);
  SimulatePool pool(count, run);
  {
    std::vector<std::jthread> others;
    const size_t threads = std::min<size_t>(jobs, count);
    for (size_t i = 1; i < threads; ++i) {
      Result<std::jthread> thread =
          StartThread<std::jthread>("a thread of the sweep", [&pool] { pool.Work(); });
      if (!thread.ok()) break;  // fewer, then
      others.push_back(*std::move(thread));
    }
    pool.Work();
  }
  return pool.Outcome();
}

}  // namespace prepost::tools
