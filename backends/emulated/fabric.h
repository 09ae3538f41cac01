// SPDX-License-Identifier: Apache-2.0
//
// Fabric: n emulated NICs in one process, connected to each other, and the thread that they run on.
// Each NIC is a nic::Device. Tests run it on their own thread with RunUntilIdle(); executors
// Start() it and Wait() for events.
//
// Threads: objects are made and memory is registered before Start() (or between runs). One thread
// at any time may ring doorbells, request events and wait. What the engine did may be read when it
// is not running.
#ifndef PREPOST_BACKENDS_EMULATED_FABRIC_H_
#define PREPOST_BACKENDS_EMULATED_FABRIC_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "prepost/backends/emulated/engine.h"
#include "prepost/backends/nic/device.h"

namespace prepost::emulated {

class Fabric {
 public:
  enum class Outcome : uint8_t {
    kEvents,    ///< some events, in order
    kIdle,      ///< nothing can happen any more without a doorbell
    kCancelled  ///< by Start()'s flag
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

  /// `cancel` ends the engine when it becomes true; not owned, may be null, looked at often.
  void Start(const std::atomic<bool>* cancel = nullptr);
  /// Sleeps until the engine has events or has ended. Returns from sleeping are counted: for each
  /// node that has an event and, when there is nothing, for all nodes.
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
  void CountWakeup(std::span<const CqEvent> events);

  std::vector<std::unique_ptr<NicState>> states_;
  std::vector<std::unique_ptr<Nic>> nics_;
  Engine engine_;
  const std::atomic<bool>* cancel_ = nullptr;

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
