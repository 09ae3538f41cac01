// SPDX-License-Identifier: Apache-2.0
//
// How long a group of a session takes to bring a message to all of its members: from Send() at the
// root, 200 us behind a barrier, to when the slowest member has it, by the clock that all processes
// of one machine have in common. The root prints when it began, the others when they had it, and
// bench/peers/members.py takes the one from the other. One process per member; bench/network/run.py
// starts them in network namespaces, bench/host/run.py on this machine.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "bench/session_program.h"
#include "prepost/prepost.h"

namespace {

using prepost::GroupCallbacks;
using prepost::Session;
using prepost::Status;
using prepost::bench::CpuSeconds;
using prepost::bench::Must;
using Clock = std::chrono::steady_clock;

constexpr size_t kPage = 4096;

struct Options {
  uint32_t self = 0;
  std::vector<std::string> members;
  std::vector<uint64_t> bytes;
  uint32_t repeat = 5;
  uint32_t warm_up = 1;
  uint32_t burst = 1;  ///< messages that are sent at once and timed together
  std::string algorithm = "auto";
  uint64_t block_bytes = 0;
  std::string waiting = "hybrid";
  bool is_polled = false;  ///< by this program's thread, instead of one of the session's
  std::string device;      // empty: none
  bool no_local_copies = false;
  std::vector<std::string> sites;
  prepost::PathOptions paths;
};

/// Once.
class Event {
 public:
  void Set() {
    is_set_.store(true);
    is_set_.notify_all();
  }
  bool is_set() const { return is_set_.load(); }
  void Wait() const { is_set_.wait(false); }

 private:
  std::atomic<bool> is_set_ = false;
};

/// By the clock that all processes of this machine have in common.
double Now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

/// What this process has of the machine.
struct Holdings {
  int64_t resident_bytes = 0;
  int64_t descriptors = 0;

  static Holdings Now() {
    int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages >> pages;  // the second is what is resident
    const std::filesystem::directory_iterator open("/proc/self/fd");
    return {.resident_bytes = pages * int64_t{kPage},
            .descriptors = std::distance(begin(open), end(open))};
  }
};

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options) {
    prepost::SessionOptions session =
        prepost::bench::SessionOf(options.self, options.members, options.waiting);
    session.local_copies = !options.no_local_copies;
    session.sites = options.sites;
    session.paths = options.paths;
    session.own_thread = !options.is_polled;
    auto opened = Session::Open(session);
    Must(opened.status());
    session_ = *std::move(opened);
    const uint64_t most = *std::ranges::max_element(options.bytes);
    buffer_.resize(most + kPage);
    const auto address = reinterpret_cast<uintptr_t>(buffer_.data());
    memory_ = std::span(buffer_).subspan(kPage - address % kPage, most);
    for (size_t i = 0; i < memory_.size(); ++i)
      memory_[i] = static_cast<char>(i * 2654435761u >> 13);
    std::vector<uint32_t> all;
    for (uint32_t i = 0; i < options.members.size(); ++i) all.push_back(i);
    GroupCallbacks callbacks;
    callbacks.incoming = [this](uint64_t, uint64_t) { return memory_.data(); };
    callbacks.failed = [](const Status& cause, std::optional<uint32_t>) { Must(cause); };
    callbacks.complete = [this](uint64_t message, void*, uint64_t) {
      if (message != last_) return;
      end_ = Now();
      complete_->Set();
    };
    callbacks.closed = [this] { closed_.Set(); };
    Must(session_->CreateGroup(1, all, 0,
                               {.algorithm = options.algorithm,
                                .block_bytes = options.block_bytes,
                                .device = options.device},
                               callbacks));
  }

  void Run() {
    for (const uint64_t bytes : options_.bytes) {
      std::vector<double> times;  // when the root began, or when another member had it
      double cpu = 0;
      Holdings held;
      for (uint32_t i = 0; i < options_.warm_up + options_.repeat; ++i) {
        if (i == options_.warm_up) {
          cpu = CpuSeconds();
          held = Holdings::Now();
        }
        const double time = options_.self == 0 ? SendAll(bytes) : Receive();
        if (i >= options_.warm_up) times.push_back(time);
      }
      Print(bytes, times, CpuSeconds() - cpu, held);
    }
    Must(session_->DestroyGroup(1));
    Wait(closed_);
  }

 private:
  void Wait(const Event& event) {
    if (!options_.is_polled) return event.Wait();
    while (!event.is_set()) Must(session_->Poll(std::chrono::milliseconds(1000)));
  }
  void Barrier() {
    Event passed;
    Must(session_->Barrier(1, [&passed] { passed.Set(); }));
    Wait(passed);
  }
  /// Behind a barrier, which others leave later, and before the next, so that what a member does
  /// there is not in the time of another.
  void Settle() const {
    constexpr std::chrono::microseconds kPause{200};
    if (!options_.is_polled) return std::this_thread::sleep_for(kPause);
    const auto end = Clock::now() + kPause;
    while (Clock::now() < end) {
      Must(session_->Poll(std::chrono::milliseconds(0)));
      std::this_thread::yield();
    }
  }
  /// From now on `complete` of the last message of the next burst is awaited.
  void Await() {
    complete_.emplace();
    last_ = next_ + options_.burst - 1;
    next_ += options_.burst;
  }
  /// Another member's part: says that messages may come, and waits for them. When it had the last.
  double Receive() {
    Await();
    Must(session_->Barrier(1, [] {}));
    Wait(*complete_);
    Settle();
    return end_;
  }
  /// When the root began: all have had the messages before.
  double SendAll(uint64_t bytes) {
    Await();
    Barrier();
    Settle();
    const double start = Now();
    for (uint32_t i = 0; i < options_.burst; ++i)
      Must(session_->Send(1, memory_.data(), bytes).status());
    Wait(*complete_);
    Settle();
    return start;
  }
  void Print(uint64_t bytes, const std::vector<double>& times, double cpu,
             const Holdings& before) const {
    const Holdings now = Holdings::Now();
    const nlohmann::ordered_json json = {
        {"bytes", bytes},
        {"members", options_.members.size()},
        {"cpu_seconds", cpu},
        {"burst", options_.burst},
        {"grown_bytes", now.resident_bytes - before.resident_bytes},
        {"grown_descriptors", now.descriptors - before.descriptors},
        {options_.self == 0 ? "begun" : "had", times}};
    std::cout << json.dump() << std::endl;
  }

  const Options options_;
  std::unique_ptr<Session> session_;
  std::vector<char> buffer_;
  std::span<char> memory_;  ///< at a page, as what Python sends from and receives into
  std::optional<Event> complete_;
  double end_ = 0;
  Event closed_;
  std::atomic<uint64_t> last_ = UINT64_MAX;
  uint64_t next_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("How long a group takes to bring messages to all members.");
  app.add_option("self", options.self, "this member's number; 0 sends")->required();
  app.add_option("members", options.members, "HOST[:PORT] of each, with commas")
      ->required()
      ->delimiter(',');
  app.add_option("--bytes", options.bytes, "sizes, with commas")
      ->required()
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--repeat", options.repeat, "measurements of each size");
  app.add_option("--warm-up", options.warm_up, "messages before those");
  app.add_option("--burst", options.burst, "messages sent at once, whose time is shared out");
  app.add_option("--algorithm", options.algorithm, "as GroupOptions");
  app.add_option("--sites", options.sites, "the site of each member, with commas")->delimiter(',');
  app.add_option("--streams", options.paths.streams, "as PathOptions");
  app.add_option("--pace", options.paths.pace, "bytes/s");
  app.add_option("--congestion", options.paths.congestion, "as PathOptions");
  app.add_option("--block-bytes", options.block_bytes, "as GroupOptions")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--waiting", options.waiting, "polling, hybrid, interrupt");
  app.add_flag("--polled", options.is_polled, "by the thread of the program");
  app.add_option("--device", options.device, "as GroupOptions");
  app.add_flag("--no-local-copies", options.no_local_copies, "TCP also on one machine");
  CLI11_PARSE(app, argc, argv);
  Bench(options).Run();
  return 0;
}
