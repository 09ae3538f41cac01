// SPDX-License-Identifier: Apache-2.0
#include "backends/emulated/fabric.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <iterator>

#include "backends/emulated/device.h"
#include "backends/emulated/nic_state.h"
#include "ir/plan.h"
#include "runtime/base/clock.h"
#include "runtime/base/thread.h"

namespace prepost::emulated {
namespace {

constexpr size_t kDoorbells = 1024;    // that can be rung at a time without allocating
constexpr uint64_t kBatchSteps = 256;  // between two checks of doorbells and limits
/// How often an idle engine checks whether a receive that a sender waits for has been posted.
constexpr std::chrono::microseconds kRnrTimer{200};

}  // namespace

Fabric::Fabric(uint32_t nodes, const EngineOptions& options)
    : Fabric(
          [&](const std::vector<ArenaPointer<NicState>>& nics) {
            return std::make_unique<Engine>(nics, options);
          },
          nodes) {}

Fabric::Fabric(const EngineFactory& make, uint32_t nodes) : engine_(make(states_)) {
  for (std::vector<Doorbell>* doorbells : {&taken_, &doorbells_}) doorbells->reserve(kDoorbells);
  for (uint32_t i = 0; i < nodes; ++i) {
    states_.push_back(arena_.Make<NicState>());
    states_.back()->node = NodeId(i);
    nics_.push_back(arena_.Make<Nic>(*this, *states_.back()));
    devices_.push_back(std::make_unique<EmulatedDevice>(*nics_.back()));
  }
}

Fabric::~Fabric() { Stop(); }

Status Fabric::MakeDevices(const nic::DeviceFactory& make) {
  for (size_t i = 0; i < nics_.size(); ++i) {
    Result<std::unique_ptr<nic::Device>> device = make(*nics_[i]);
    if (!device.ok()) return device.status();
    devices_[i] = *std::move(device);
  }
  return {};
}

nic::Device& Fabric::device(NodeId node) { return *devices_[node.index()]; }
Nic& Fabric::nic(NodeId node) { return *nics_[node.index()]; }

std::unique_lock<std::mutex> Fabric::HoldEngine() {
  if (engine_->is_alone()) return {};  // all hosts are on the engine's thread, which may be at work
  ++commands_waiting_;
  std::unique_lock lock(engine_mutex_);
  --commands_waiting_;
  return lock;
}

void Fabric::Poke() {
  const std::lock_guard lock(mutex_);
  poked_ = true;
  idle_ = false;
  for_engine_.notify_one();
}

void Fabric::Ring(NicState& nic, uint64_t first_bytes) {
  if (engine_->is_alone()) return engine_->Doorbell(nic, first_bytes);
  const std::lock_guard lock(mutex_);
  doorbells_.push_back({&nic, first_bytes});
  idle_ = false;
  for_engine_.notify_one();
}

/// Polls the doorbells once and runs a bounded number of steps. False when nothing is left to do.
bool Fabric::RunBatch(uint64_t steps) {
  taken_.clear();
  {
    const std::lock_guard lock(mutex_);
    taken_.swap(doorbells_);
  }
  while (commands_waiting_ != 0) std::this_thread::yield();
  const std::lock_guard hold(engine_mutex_);
  for (const Doorbell& it : taken_) engine_->Doorbell(*it.nic, it.first_bytes);
  const bool busy = engine_->Run(steps) || !taken_.empty();
  waits_for_receives_ = engine_->waits_for_receives();
  return busy;
}

/// The events since the last time, after telling the NICs' hosts.
std::vector<CqEvent> Fabric::SignalEvents() {
  std::vector<CqEvent> events = [this] {
    const std::lock_guard hold(engine_mutex_);
    return engine_->TakeEvents();
  }();
  for (const CqEvent& event : events) nics_[event.node.index()]->Signal(event.cqn);
  return events;
}

std::vector<CqEvent> Fabric::RunUntilIdle() {
  std::vector<CqEvent> events;
  bool busy = true;
  while (busy) {
    busy = RunBatch(kBatchSteps);
    std::ranges::copy(SignalEvents(), std::back_inserter(events));
  }
  return events;
}

bool Fabric::RunSome(uint64_t steps, std::vector<CqEvent>* events) {
  const bool busy = RunBatch(steps);
  std::vector<CqEvent> signalled = SignalEvents();
  if (events != nullptr) *events = std::move(signalled);
  return busy;
}

void Fabric::HoldTags(uint64_t block_bytes) {
  tags_.BeginMessage();
  for (const auto& state : states_) state->memory.HoldTags(block_bytes, tags_);
}

void Fabric::HoldAddresses() {
  for (const auto& state : states_) state->memory.HoldAddresses();
}

Status Fabric::Start(Until until) {
  PREPOST_CHECK(!thread_.joinable() && !engine_->is_alone());
  Result<EventFd> ended = EventFd::Make();
  if (!ended.ok()) return ended.status();
  ended_ = *std::move(ended);
  stop_ = idle_ = false;
  Result<std::thread> thread =
      StartThread("the thread of the NICs", [this, until] { Loop(until); });
  if (thread.ok()) thread_ = *std::move(thread);
  return thread.status();
}

void Fabric::Loop(Until until) {
  while (true) {
    const bool busy = RunBatch(kBatchSteps);
    SignalEvents();
    progress_.store(engine_->steps(), std::memory_order_relaxed);
    std::unique_lock lock(mutex_);
    idle_ = !busy && doorbells_.empty() && !std::exchange(poked_, false);
    if (idle_ && until == Until::kIdle) {
      ended_.Signal();
      return;
    }
    const auto called = [this] { return stop_ || poked_ || !doorbells_.empty(); };
    if (idle_ && waits_for_receives_) {
      for_engine_.wait_for(lock, kRnrTimer, called);
    } else if (idle_) {
      for_engine_.wait(lock, called);
    }
    if (stop_) return;
  }
}

bool Fabric::is_idle() const {
  const std::lock_guard lock(mutex_);
  return idle_;
}

uint64_t Fabric::engine_cpu_ns() {
  clockid_t clock = {};
  PREPOST_CHECK(pthread_getcpuclockid(thread_.native_handle(), &clock) == 0);
  return CpuNs(clock);
}

void Fabric::Stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    for_engine_.notify_one();
  }
  thread_.join();
}

}  // namespace prepost::emulated
