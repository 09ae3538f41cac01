// SPDX-License-Identifier: Apache-2.0
//
// How long a group of a session takes to bring a message to all of its members, at the root: from
// Send() to the notice that all have it. One process per member; bench/network/run.py starts them
// in network namespaces, bench/host/run.py on this machine.
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
  bool receive = false;
};

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
    callbacks.delivered = [this](uint64_t message) {
      if (message == last_) delivered_.set_value();
    };
    callbacks.failed = [](const Status& cause, std::optional<uint32_t>) { Must(cause); };
    callbacks.complete = [this](uint64_t message, void*, uint64_t) {
      if (options_.receive && options_.self != 0 && message == last_) delivered_.set_value();
    };
    callbacks.closed = [this] { closed_.set_value(); };
    Must(session_->CreateGroup(1, all, 0,
                               {.algorithm = options.algorithm,
                                .block_bytes = options.block_bytes,
                                .notify_delivered = true,
                                .device = options.device},
                               callbacks));
  }

  void Run() {
    for (const uint64_t bytes : options_.bytes) {
      std::vector<double> seconds;
      double cpu = 0;
      for (uint32_t i = 0; i < options_.warm_up + options_.repeat; ++i) {
        if (options_.receive && options_.self != 0) {
          if (i == options_.warm_up) cpu = CpuSeconds();
          Receive();
          continue;
        }
        Barrier();
        if (i == options_.warm_up) cpu = CpuSeconds();
        if (options_.self != 0) continue;
        const double taken = SendAll(bytes);
        if (i >= options_.warm_up) seconds.push_back(taken / options_.burst);
      }
      if (!options_.receive) Barrier();  // all have it: what follows is not of this size
      Print(bytes, seconds, CpuSeconds() - cpu);
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
  /// Another member's part: says that messages may come, and waits for them.
  void Receive() {
    delivered_ = {};
    std::future<void> all = delivered_.get_future();
    last_ = next_ + options_.burst - 1;
    next_ += options_.burst;
    Must(session_->Barrier(1, [] {}));
    all.wait();
  }
  double SendAll(uint64_t bytes) {
    delivered_ = {};
    std::future<void> all = delivered_.get_future();
    last_ = next_ + options_.burst - 1;
    const Clock::time_point start = Clock::now();
    for (uint32_t i = 0; i < options_.burst; ++i) {
      Must(session_->Send(1, memory_.data(), bytes).status());
      ++next_;
    }
    all.wait();
    return std::chrono::duration<double>(Clock::now() - start).count();
  }
  void Print(uint64_t bytes, std::vector<double> seconds, double cpu) const {
    std::ranges::sort(seconds);
    nlohmann::ordered_json json = {
        {"bytes", bytes}, {"members", options_.members.size()}, {"cpu_seconds", cpu}};
    if (options_.self == 0) {
      json.update({{"algorithm", options_.algorithm},
                   {"block_bytes", options_.block_bytes},
                   {"min", seconds.front()},
                   {"median", seconds[seconds.size() / 2]},
                   {"max", seconds.back()},
                   {"seconds", seconds}});
    }
    std::cout << json.dump() << std::endl;
  }

  const Options options_;
  std::unique_ptr<Session> session_;
  std::vector<char> buffer_;
  std::span<char> memory_;  ///< at a page, as what Python sends from and receives into
  std::promise<void> delivered_;
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
  app.add_flag("--receive", options.receive,
               "members wait for each message before the next barrier");
  CLI11_PARSE(app, argc, argv);
  Bench(options).Run();
  return 0;
}
