// SPDX-License-Identifier: Apache-2.0
//
// PlayingNodes: the nodes of a plan in one process, each with a thread, a PlayerDevice and
// connections with its peers (runtime/device/player_device.h).
#ifndef PREPOST_TESTS_SUPPORT_PLAYING_NODES_H_
#define PREPOST_TESTS_SUPPORT_PLAYING_NODES_H_

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/registry.h"
#include "runtime/transport/tcp/tcp_links.h"
#include "runtime/transport/tcp/tcp_mesh.h"

namespace prepost::test {

/// A thread that does one thing after the other, as a node's does: devices are of one thread.
class Worker {
 public:
  Worker() : thread_([this] { Run(); }) {}
  ~Worker() {
    Do([this] {
      is_over_ = true;
      return Status();
    }).wait();
    thread_.join();
  }

  std::future<Status> Do(std::function<Status()> work) {
    std::packaged_task<Status()> task(std::move(work));
    std::future<Status> done = task.get_future();
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_all();
    return done;
  }

 private:
  void Run() {
    while (!is_over_) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !tasks_.empty(); });
      std::packaged_task<Status()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<Status()>> tasks_;  ///< under mutex_
  bool is_over_ = false;                            ///< the thread's own
  std::thread thread_;
};

/// One node, all of whose functions are called by its worker.
class PlayingNode {
 public:
  struct Options {
    bool is_kept = false;
    bool is_as_before = false;
    std::chrono::milliseconds answer_max{30000};
    Checkpoint checkpoint = {};
    OpObserver observer = {};
  };

  PlayingNode(NodeId node, std::unique_ptr<PlayerDevice> device, std::vector<TcpSocket> sockets,
              bool is_preposted)
      : node_(node),
        is_preposted_(is_preposted),
        device_(std::move(device)),
        links_(std::make_unique<TcpLinks>(std::move(sockets))) {}
  ~PlayingNode() { End(); }

  Worker& worker() { return worker_; }
  PlayerDevice& device() { return *device_; }
  Player& player() { return *player_; }
  /// The same device, over other connections.
  void Reconnect(std::vector<TcpSocket> sockets) {
    links_ = std::make_unique<TcpLinks>(std::move(sockets));
  }

  /// `plan` must outlive the player.
  Status Make(const VerifiedPlan& plan, const NodeMemory& memory, const Options& options) {
    player_ = nullptr;
    auto links = links_->Copy();
    if (!links.ok()) return links.status();
    PlayerDevice::Task task = {.plan = plan,
                               .node = node_,
                               .links = *std::move(links),
                               .context = {.memory = memory,
                                           .checkpoint = options.checkpoint,
                                           .observer = options.observer,
                                           .checkpoint_interval = std::chrono::milliseconds(10)},
                               .is_kept = options.is_kept,
                               .is_as_before = options.is_as_before,
                               .answer_max = options.answer_max};
    if (is_preposted_ && !options.is_as_before) {
      auto lowered = device_->Lower(plan, node_);
      if (!lowered.ok()) return lowered.status();
      program_ = *std::move(lowered);
    }
    auto made = MakeDevicePlayer(*device_, program_.get(), std::move(task));
    if (made.ok()) player_ = *std::move(made);
    return made.status();
  }
  /// After Start(), until it is done, or `is_over` says so, which is asked every `wait_max`.
  Status Poll(
      const std::function<bool()>& is_over = [] { return false; },
      std::chrono::milliseconds wait_max = std::chrono::milliseconds(1)) {
    const auto due = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!player_->done() && !is_over()) {
      PREPOST_RETURN_IF_ERROR(player_->Poll(wait_max));
      if (std::chrono::steady_clock::now() > due)
        return Rejected("it hangs: " + player_->Waiting(9));
    }
    return {};
  }
  /// For so long, or to an error.
  Status PollFor(std::chrono::milliseconds time) {
    const auto due = std::chrono::steady_clock::now() + time;
    return Poll([due] { return std::chrono::steady_clock::now() > due; });
  }
  Status StartAndPoll() {
    player_->Start();
    return Poll();
  }
  void EndPlayer() { player_ = nullptr; }
  void CloseLinks() { links_ = nullptr; }
  /// It goes away with all that it has.
  void End() {
    worker_
        .Do([this] {
          Leave();
          return Status();
        })
        .wait();
  }
  void Leave() {
    player_ = nullptr;
    device_ = nullptr;
    links_ = nullptr;
  }

 private:
  const NodeId node_;
  const bool is_preposted_;
  std::unique_ptr<PlayerDevice> device_;
  std::unique_ptr<TcpLinks> links_;
  std::shared_ptr<const PlayerDevice::Program> program_;  ///< null: driven
  std::unique_ptr<Player> player_;
  Worker worker_;
};

/// What each node opens its devices from, by node.
using NodesDevices = std::vector<std::unique_ptr<GroupDevices>>;

/// As the members of a group open them. Errors: the registry's.
inline Result<NodesDevices> OpenDevices(const std::string& device, uint32_t nodes,
                                        bool needs_offload = false) {
  NodesDevices all;
  std::string place;
  for (uint32_t node = 0; node < nodes; ++node) {
    auto opened = OpenGroupDevices(
        {.device = device, .needs_offload = needs_offload, .nodes = nodes, .self = NodeId(node)});
    if (!opened.ok()) return opened.status();
    all.push_back(*std::move(opened));
    if (node != 0) {
      PREPOST_RETURN_IF_ERROR(all.back()->Join(place));
      continue;
    }
    Result<std::string> found = all.back()->Found();
    if (!found.ok()) return found.status();
    place = *std::move(found);
  }
  return all;
}

/// The nodes of a plan, each with a thread, a device and connections with its peers.
class PlayingNodes {
 public:
  /// Opens a node's device.
  using Open = std::function<Result<std::unique_ptr<PlayerDevice>>(uint32_t node)>;
  /// Node i is preposted if `preposted[i]`. Errors: those of `open`, kEnvironment.
  static Result<std::unique_ptr<PlayingNodes>> Make(const Open& open, const VerifiedPlan& plan,
                                                    const std::vector<bool>& preposted) {
    Result<TcpMesh> mesh = MakeTcpMesh(plan);
    if (!mesh.ok()) return mesh.status();
    auto made = std::make_unique<PlayingNodes>();
    for (uint32_t node = 0; node < plan.header().nodes; ++node) {
      auto device = open(node);
      if (!device.ok()) return device.status();
      made->nodes_.push_back(std::make_unique<PlayingNode>(
          NodeId(node), *std::move(device), std::move((*mesh)[node]), preposted[node]));
    }
    return made;
  }

  /// All at a time, as closing a library's device takes a while.
  ~PlayingNodes() {
    static_cast<void>(All([](uint32_t, PlayingNode& its) {
      its.Leave();
      return Status();
    }));
  }

  PlayingNode& operator[](uint32_t node) { return *nodes_[node]; }

  using Work = std::function<Status(uint32_t node, PlayingNode& its)>;
  std::future<Status> Begin(uint32_t node, const Work& work) {
    return nodes_[node]->worker().Do([this, node, work] { return work(node, *nodes_[node]); });
  }
  Status At(uint32_t node, const Work& work) { return Begin(node, work).get(); }
  std::vector<std::future<Status>> BeginAll(const Work& work) {
    std::vector<std::future<Status>> all;
    for (uint32_t node = 0; node < nodes_.size(); ++node) all.push_back(Begin(node, work));
    return all;
  }
  /// All at a time. The errors of all that have one.
  testing::AssertionResult All(const Work& work) { return AllOf(BeginAll(work)); }
  /// Where a node must be polled to its end, no player goes before all are done.
  void EndPlayers() {
    static_cast<void>(All([](uint32_t, PlayingNode& its) {
      its.EndPlayer();
      return Status();
    }));
  }
  static testing::AssertionResult AllOf(std::vector<std::future<Status>> all) {
    std::string errors;
    for (size_t node = 0; node < all.size(); ++node) {
      const Status status = all[node].get();
      if (!status.ok()) errors += fmt::format("\n  node {}: {}", node, status.ToString());
    }
    if (errors.empty()) return testing::AssertionSuccess();
    return testing::AssertionFailure() << errors;
  }

 private:
  std::vector<std::unique_ptr<PlayingNode>> nodes_;
};

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_PLAYING_NODES_H_
