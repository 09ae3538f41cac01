// SPDX-License-Identifier: Apache-2.0
//
// Fabric: n emulated NICs in one process, connected to each other, and the thread that they run on.
// Each NIC is a nic::Device. Tests run it on their own thread with RunUntilIdle(); executors
// Start() it and Wait() for events.
//
// Threads: objects are made and memory is registered before Start() (or between runs); doorbells
// may be rung from any one thread at any time. What the engine did may be read when it is not
// running.
#ifndef PREPOST_BACKENDS_EMULATED_FABRIC_H_
#define PREPOST_BACKENDS_EMULATED_FABRIC_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "prepost/backends/emulated/engine.h"
#include "prepost/backends/nic/device.h"

namespace prepost::emulated {

class Fabric {
 public:
  /// How long the engine may run: what ends it besides having nothing left to do.
  struct Limits {
    const std::atomic<bool>* cancel = nullptr;  ///< not owned; looked at often
    std::optional<std::chrono::steady_clock::time_point> deadline;
  };
  enum class Outcome : uint8_t {
    kEvents,     ///< some events, in order
    kIdle,       ///< nothing can happen any more without a doorbell
    kCancelled,  ///< by Limits::cancel
    kDeadline    ///< Limits::deadline has passed
  };
  struct Waited {
    Outcome outcome = Outcome::kIdle;
    std::vector<CqEvent> events;
  };

  Fabric(uint32_t nodes, const EngineOptions& options);
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  nic::Device& device(NodeId node);
  /// The verbs call that moves a QP to the error state; only while the engine is not running.
  void BreakQp(NodeId node, uint32_t qpn);

  /// Runs on the calling thread until nothing can happen. Events are returned.
  std::vector<CqEvent> RunUntilIdle();

  void Start(const Limits& limits);
  /// Sleeps until the engine has events or has ended. It is woken for nothing else.
  Waited Wait();
  /// Ends and joins the thread. May be called again.
  void Stop();

  const Engine& engine() const { return engine_; }

 private:
  class Nic;
  struct Doorbell {
    NicState* nic = nullptr;
    uint64_t first_bytes = 0;
  };

  void Ring(NicState& nic, uint64_t first_bytes);
  void Loop();
  bool RunBatch();

  std::vector<std::unique_ptr<NicState>> states_;
  std::vector<std::unique_ptr<Nic>> nics_;
  Engine engine_;
  Limits limits_;

  std::mutex mutex_;
  std::condition_variable for_engine_;
  std::condition_variable for_host_;
  std::vector<Doorbell> doorbells_;  // guarded by mutex_, as are the following
  std::vector<CqEvent> events_;
  bool idle_ = false;
  bool stop_ = false;
  std::optional<Outcome> ended_;
  std::thread thread_;
};

}  // namespace prepost::emulated

#endif  // PREPOST_BACKENDS_EMULATED_FABRIC_H_
