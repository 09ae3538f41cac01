// SPDX-License-Identifier: Apache-2.0
//
// Fabric: n emulated NICs in one process, connected to each other, and the thread that they run on.
// Each has a nic::Device in front of it, an EmulatedDevice or what a factory makes. Tests run it on
// their own thread with RunUntilIdle(); executors Start() it and wait for events of its devices.
//
// Threads: each device has a host thread of its own; one thread may be the host of several. Objects
// may be made and destroyed while the engine runs. What the engine did may be read when it does
// not.
#ifndef PREPOST_BACKENDS_EMULATED_FABRIC_H_
#define PREPOST_BACKENDS_EMULATED_FABRIC_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "backends/emulated/engine.h"
#include "backends/emulated/nic.h"
#include "backends/emulated/page_arena.h"
#include "backends/nic/device.h"
#include "backends/nic/nic_model.h"
#include "backends/nic/program/pairing.h"
#include "runtime/base/event_fd.h"

namespace prepost::emulated {

class Fabric {
 public:
  /// When a started engine ends by itself.
  enum class Until : uint8_t {
    kStopped,  ///< never: hosts may ring doorbells at any time
    kIdle      ///< when nothing can happen any more: all doorbells were rung before
  };

  /// Makes the engine of NICs that are about to be made.
  using EngineFactory =
      std::function<std::unique_ptr<Engine>(const std::vector<ArenaPointer<NicState>>& nics)>;

  Fabric(uint32_t nodes, const EngineOptions& options);
  /// With an engine whose steps take modelled time.
  Fabric(const EngineFactory& make, uint32_t nodes);
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  /// Puts the device that `make` makes in front of each NIC instead of its EmulatedDevice. Before
  /// device() is called. Errors: those of `make`.
  Status MakeDevices(const nic::DeviceFactory& make);
  nic::Device& device(NodeId node);
  Nic& nic(NodeId node);

  /// Runs on the calling thread until nothing can happen. Events are signalled and returned.
  std::vector<CqEvent> RunUntilIdle();
  /// Runs on the calling thread for at most `steps`, fewer when an event occurs or nothing can
  /// happen; false in the last case. Events are signalled, and put into `events` unless it is null.
  bool RunSome(uint64_t steps, std::vector<CqEvent>* events = nullptr);
  /// Modelled time: memory that is registered from now on is another message's than what was
  /// before, and holds tags (memory_table.h).
  void HoldTags(uint64_t block_bytes);
  /// Modelled time, of what is no multicast: such memory is addresses alone (memory_table.h).
  void HoldAddresses();
  /// The first block of its memory that no tag has come for. When the fabric is stopped.
  std::optional<uint64_t> MissingBlock(NodeId node) const {
    return states_[node.index()]->memory.MissingBlock();
  }
  /// Starts the thread; not where hosts are on the engine's (Engine::is_alone()). Errors:
  /// kEnvironment.
  Status Start(Until until);
  /// Readable when an engine that was started until idle has ended.
  int ended_fd() const { return ended_.fd(); }
  /// True when nothing can happen any more without a doorbell or a receive that a host posts.
  bool is_idle() const;
  /// Rises while anything happens. From any thread.
  uint64_t progress() const { return progress_.load(std::memory_order_relaxed); }
  /// Processor time that the thread has used so far; only while it runs.
  uint64_t engine_cpu_ns();
  /// Ends and joins the thread. May be called again.
  void Stop();

  const Engine& engine() const { return *engine_; }
  const NicState& state(NodeId node) const { return *states_[node.index()]; }
  /// For what hosts keep; as long as the fabric.
  PageArena& memory() { return arena_; }

 private:
  friend class Nic;

  struct Doorbell {
    NicState* nic = nullptr;
    uint64_t first_bytes = 0;
  };

  /// Between two batches of the engine.
  std::unique_lock<std::mutex> HoldEngine();
  void Ring(NicState& nic, uint64_t first_bytes);
  void Loop(Until until);
  bool RunBatch(uint64_t steps);
  /// A command has changed something: lets the engine check what can happen now.
  void Poke();
  std::vector<CqEvent> SignalEvents();

  PageArena arena_;
  PageArena work_queues_;  // apart: rings that nobody has written to take no memory
  TagRange tags_;
  std::vector<ArenaPointer<NicState>> states_;
  std::vector<ArenaPointer<Nic>> nics_;
  std::mutex engine_mutex_;                     // held for each batch, and for each command
  std::atomic<uint32_t> commands_waiting_ = 0;  // for engine_mutex_: the engine lets them by
  std::unique_ptr<Engine> engine_;              // guarded by engine_mutex_
  bool waits_for_receives_ = false;             // the engine, after the last batch
  std::vector<Doorbell> taken_;                 // at work on these
  EventFd ended_;
  std::atomic<uint64_t> progress_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable for_engine_;
  std::vector<Doorbell> doorbells_;  // guarded by mutex_, as are the following
  bool idle_ = false;
  bool poked_ = false;
  bool stop_ = false;
  std::thread thread_;

  std::vector<std::unique_ptr<nic::Device>> devices_;  // use all of the above
};

}  // namespace prepost::emulated

#endif  // PREPOST_BACKENDS_EMULATED_FABRIC_H_
