// SPDX-License-Identifier: Apache-2.0
//
// How long a group of a session takes to bring a message to all of its members: from Send() at the
// root, behind a barrier, to when the slowest member has it, by the clock that all processes of one
// machine have in common. The root prints when it began, the others when they had it, and
// bench/peers/members.py takes the one from the other. One process per member; bench/network/run.py
// starts them in network namespaces, bench/host/run.py on this machine.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
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
  std::string device;  // empty: none
  bool no_local_copies = false;
  std::vector<std::string> sites;
  prepost::PathOptions paths;
};

/// By the clock that all processes of this machine have in common.
double Now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options) {
    prepost::SessionOptions session =
        prepost::bench::SessionOf(options.self, options.members, options.waiting);
    session.local_copies = !options.no_local_copies;
    session.sites = options.sites;
    session.paths = options.paths;
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
      complete_.set_value();
    };
    callbacks.closed = [this] { closed_.set_value(); };
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
      for (uint32_t i = 0; i < options_.warm_up + options_.repeat; ++i) {
        if (i == options_.warm_up) cpu = CpuSeconds();
        const double time = options_.self == 0 ? SendAll(bytes) : Receive();
        if (i >= options_.warm_up) times.push_back(time);
      }
      Print(bytes, times, CpuSeconds() - cpu);
    }
    Must(session_->DestroyGroup(1));
    closed_.get_future().wait();
  }

 private:
  void Barrier() {
    std::promise<void> passed;
    Must(session_->Barrier(1, [&passed] { passed.set_value(); }));
    passed.get_future().wait();
  }
  /// From now on `complete` of the last message of the next burst is awaited.
  std::future<void> Await() {
    complete_ = {};
    last_ = next_ + options_.burst - 1;
    next_ += options_.burst;
    return complete_.get_future();
  }
  /// Another member's part: says that messages may come, and waits for them. When it had the last.
  double Receive() {
    const std::future<void> complete = Await();
    Must(session_->Barrier(1, [] {}));
    complete.wait();
    return end_;
  }
  /// When the root began: all have had the messages before.
  double SendAll(uint64_t bytes) {
    const std::future<void> complete = Await();
    Barrier();
    const double start = Now();
    for (uint32_t i = 0; i < options_.burst; ++i)
      Must(session_->Send(1, memory_.data(), bytes).status());
    complete.wait();
    return start;
  }
  void Print(uint64_t bytes, const std::vector<double>& times, double cpu) const {
    const nlohmann::ordered_json json = {{"bytes", bytes},
                                         {"members", options_.members.size()},
                                         {"cpu_seconds", cpu},
                                         {"burst", options_.burst},
                                         {options_.self == 0 ? "begun" : "had", times}};
    std::cout << json.dump() << std::endl;
  }

  const Options options_;
  std::unique_ptr<Session> session_;
  std::vector<char> buffer_;
  std::span<char> memory_;  ///< at a page, as what Python sends from and receives into
  std::promise<void> complete_;
  double end_ = 0;
  std::promise<void> closed_;
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
  app.add_option("--device", options.device, "as GroupOptions");
  app.add_flag("--no-local-copies", options.no_local_copies, "TCP also on one machine");
  CLI11_PARSE(app, argc, argv);
  Bench(options).Run();
  return 0;
}
