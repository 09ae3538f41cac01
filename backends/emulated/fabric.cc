// SPDX-License-Identifier: Apache-2.0
#include "prepost/backends/emulated/fabric.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <iterator>
#include <system_error>

#include "prepost/runtime/clock.h"

namespace prepost::emulated {
namespace {

constexpr size_t kDoorbells = 1024;    // that can be rung at a time without allocating
constexpr uint64_t kBatchSteps = 256;  // between two looks at doorbells and limits
/// How often an idle engine looks whether a receive that a sender waits for has been posted.
constexpr std::chrono::microseconds kRnrTimer{200};

Status CheckPowerOfTwo(const char* what, uint32_t value, uint32_t limit) {
  if (std::has_single_bit(value) && value <= limit) return {};
  return Rejected(fmt::format("{} must be a power of two up to {}, not {}", what, limit, value));
}

uint32_t LoadRecord(const uint32_t& record) {
  return nic::BigEndian(
      std::atomic_ref(const_cast<uint32_t&>(record)).load(std::memory_order_acquire));
}

nic::QpState NameOf(QpState::State state) {
  switch (state) {
    case QpState::State::kReset:
      return nic::QpState::kReset;
    case QpState::State::kReady:
      return nic::QpState::kReadyToSend;
    case QpState::State::kError:
      return nic::QpState::kError;
  }
  PREPOST_CHECK(false);
  return {};
}

}  // namespace

/// One NIC as its host sees it.
class Fabric::Nic : public nic::Device {
 public:
  Nic(Fabric& fabric, NicState& state) : fabric_(fabric), state_(state) {}

  Result<nic::Cq> CreateCq(const nic::CqConfig& config) override {
    PREPOST_RETURN_IF_ERROR(CheckPowerOfTwo("CQ entries", config.entries, 1u << 22));
    const auto number = NicState::kFirstCqn + static_cast<uint32_t>(state_.cqs.size());
    auto made = std::make_unique<CqState>(number, config);
    for (size_t i = 0; i < config.entries; ++i) {
      made->ring.bytes()[i * nic::kCqeBytes + nic::cqe::kOpcodeOwner] =
          std::byte{nic::cqe::kInvalid};
    }
    made->doorbell_record[nic::kConsumerRecord] = nic::BigEndian(config.producer_base);
    nic::Cq cq{.number = number,
               .ring = made->ring.bytes(),
               .doorbell_record = made->doorbell_record.data(),
               .producer_base = config.producer_base,
               .cqes_read = &made->cqes_read};
    state_.cqs.push_back(std::move(made));
    return cq;
  }

  Result<nic::Qp> CreateQp(const nic::QpConfig& config) override {
    PREPOST_RETURN_IF_ERROR(CheckPowerOfTwo("SQ WQEBBs", config.sq_wqebbs, 32768));
    if (config.rq_wqes != 0) {
      PREPOST_RETURN_IF_ERROR(CheckPowerOfTwo("RQ WQEs", config.rq_wqes, 32768));
      PREPOST_RETURN_IF_ERROR(CheckPowerOfTwo("RQ stride", config.rq_stride, 2048));
      if (config.rq_stride < nic::kSegmentBytes) return Rejected("RQ stride is below 16 bytes");
    }
    CqState* send_cq = state_.FindCq(config.send_cq);
    CqState* recv_cq = state_.FindCq(config.recv_cq);
    if (send_cq == nullptr || recv_cq == nullptr)
      return Rejected("the QP names a CQ that does not exist");
    const auto number = NicState::kFirstQpn + static_cast<uint32_t>(state_.qps.size());
    auto made = std::make_unique<QpState>(state_, number, config, *send_cq, *recv_cq);
    nic::Qp qp{.number = number,
               .sq = made->sq.bytes(),
               .rq = made->rq.bytes(),
               .doorbell_record = made->doorbell_record.data()};
    state_.qps.push_back(std::move(made));
    return qp;
  }

  Status Connect(uint32_t qpn, nic::QpAddress remote) override {
    QpState* qp = state_.FindQp(qpn);
    if (qp == nullptr) return Rejected(fmt::format("QP {:#x} does not exist", qpn));
    if (qp->state != QpState::State::kReset)
      return Rejected(fmt::format("QP {:#x} is connected", qpn));
    if (remote.node.index() >= fabric_.states_.size()) {
      return Rejected(fmt::format("node {} does not exist", remote.node.value));
    }
    qp->remote = fabric_.states_[remote.node.index()]->FindQp(remote.qpn);
    if (qp->remote == nullptr) {
      return Rejected(fmt::format("node {} has no QP {:#x}", remote.node.value, remote.qpn));
    }
    qp->rnr_left = qp->config.rnr_retry;
    qp->state = QpState::State::kReady;
    return {};
  }

  Result<uint32_t> RegisterMemory(std::span<const std::byte> memory, nic::Access access) override {
    if (memory.empty()) return Rejected("memory of 0 bytes cannot be registered");
    return state_.memory.Add(memory, access);
  }

  void RingDoorbell(uint64_t first_bytes) override {
    ++doorbells_;
    fabric_.Ring(state_, first_bytes);
  }

  Status MoveToError(uint32_t qpn) override {
    const auto hold = fabric_.HoldEngine();
    QpState* qp = state_.FindQp(qpn);
    if (qp == nullptr) return Rejected(fmt::format("QP {:#x} does not exist", qpn));
    fabric_.engine_.BreakQp(*qp);
    fabric_.Poke();
    return {};
  }

  Result<nic::QpCounters> QueryQp(uint32_t qpn) override {
    const auto hold = fabric_.HoldEngine();
    const QpState* qp = state_.FindQp(qpn);
    if (qp == nullptr) return Rejected(fmt::format("QP {:#x} does not exist", qpn));
    const uint32_t posted = LoadRecord(qp->doorbell_record[nic::kReceiveRecord]);
    return nic::QpCounters{.state = NameOf(qp->state),
                           .sq_posted = qp->config.managed_send ? qp->sq_enabled : qp->sq_posted,
                           .sq_fetched = qp->sq_next,
                           .rq_posted = static_cast<uint16_t>(posted),
                           .rq_taken = qp->rq_next};
  }

  Result<nic::CqCounters> QueryCq(uint32_t cqn) override {
    const auto hold = fabric_.HoldEngine();
    const CqState* cq = state_.FindCq(cqn);
    if (cq == nullptr) return Rejected(fmt::format("CQ {:#x} does not exist", cqn));
    const uint32_t consumer = LoadRecord(cq->doorbell_record[nic::kConsumerRecord]);
    return nic::CqCounters{.producer = cq->producer,
                           .consumer = consumer & nic::kCqIndexMask,
                           .is_overrun = cq->overrun};
  }

  Status RequestEvent(uint32_t cqn) override { return Request(cqn, kAnyEvent); }
  Status RequestErrorEvent(uint32_t cqn) override { return Request(cqn, kErrorEvent); }

  std::vector<nic::ErrorEvent> TakeErrors() override {
    if (!state_.has_errors.load(std::memory_order_acquire)) return {};
    const std::lock_guard lock(state_.error_mutex);
    state_.has_errors.store(false, std::memory_order_relaxed);
    return std::exchange(state_.errors, {});
  }

  Result<int> EventFile() override {
    if (!state_.events.valid()) {
      Result<EventFd> events = EventFd::Make();
      if (!events.ok()) return events.status();
      state_.events = *std::move(events);
    }
    return state_.events.fd();
  }

  uint64_t AckEvents() override { return state_.events.Take(); }
  void CountWakeup() override { ++wakeups_; }

  nic::DeviceCounters counters() const override {
    nic::DeviceCounters counters{
        .doorbells = doorbells_,
        .event_requests = event_requests_,
        .wakeups = wakeups_,
        .objects = state_.cqs.size() + state_.qps.size() + state_.memory.size()};
    for (const std::unique_ptr<CqState>& cq : state_.cqs) counters.cqes_read += cq->cqes_read;
    return counters;
  }

 private:
  Status Request(uint32_t cqn, EventRequest request) {
    CqState* cq = state_.FindCq(cqn);
    if (cq == nullptr) return Rejected(fmt::format("CQ {:#x} does not exist", cqn));
    ++event_requests_;
    // See Engine::WriteCqe; the greater request stands.
    cq->event_requested.fetch_or(request, std::memory_order_acq_rel);
    return {};
  }

  Fabric& fabric_;
  NicState& state_;
  uint64_t doorbells_ = 0;  // these are the host thread's
  uint64_t event_requests_ = 0;
  uint64_t wakeups_ = 0;
};

Fabric::Fabric(uint32_t nodes, const EngineOptions& options) : engine_(states_, options) {
  for (std::vector<Doorbell>* doorbells : {&taken_, &doorbells_}) doorbells->reserve(kDoorbells);
  for (uint32_t i = 0; i < nodes; ++i) {
    states_.push_back(std::make_unique<NicState>());
    states_.back()->node = NodeId(i);
    nics_.push_back(std::make_unique<Nic>(*this, *states_.back()));
  }
}

Fabric::~Fabric() { Stop(); }

nic::Device& Fabric::device(NodeId node) { return *nics_[node.index()]; }

std::unique_lock<std::mutex> Fabric::HoldEngine() {
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
  const std::lock_guard lock(mutex_);
  doorbells_.push_back({&nic, first_bytes});
  idle_ = false;
  for_engine_.notify_one();
}

/// One look at the doorbells and a bounded number of steps. False when nothing is left to do.
bool Fabric::RunBatch(uint64_t steps) {
  taken_.clear();
  {
    const std::lock_guard lock(mutex_);
    taken_.swap(doorbells_);
  }
  while (commands_waiting_ != 0) std::this_thread::yield();
  const std::lock_guard hold(engine_mutex_);
  for (const Doorbell& it : taken_) engine_.Doorbell(*it.nic, it.first_bytes);
  return engine_.Run(steps) || !taken_.empty();
}

/// The events since the last time, after telling the NICs' hosts.
std::vector<CqEvent> Fabric::SignalEvents() {
  std::vector<CqEvent> events = [this] {
    const std::lock_guard hold(engine_mutex_);
    return engine_.TakeEvents();
  }();
  for (const CqEvent& event : events) {
    const EventFd& channel = states_[event.node.index()]->events;
    if (channel.valid()) channel.Signal();
  }
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

bool Fabric::RunSome(uint64_t steps) {
  const bool busy = RunBatch(steps);
  SignalEvents();
  return busy;
}

Status Fabric::Start(Until until) {
  PREPOST_CHECK(!thread_.joinable());
  Result<EventFd> ended = EventFd::Make();
  if (!ended.ok()) return ended.status();
  ended_ = *std::move(ended);
  stop_ = idle_ = false;
  try {
    thread_ = std::thread([this, until] { Loop(until); });
  } catch (const std::system_error& error) {
    return EnvironmentError(fmt::format("cannot start a thread: {}", error.code().message()));
  }
  return {};
}

void Fabric::Loop(Until until) {
  while (true) {
    const bool busy = RunBatch(kBatchSteps);
    SignalEvents();
    progress_.store(engine_.steps(), std::memory_order_relaxed);
    std::unique_lock lock(mutex_);
    idle_ = !busy && doorbells_.empty() && !std::exchange(poked_, false);
    if (idle_ && until == Until::kIdle) {
      ended_.Signal();
      return;
    }
    const auto called = [this] { return stop_ || poked_ || !doorbells_.empty(); };
    if (idle_ && engine_.waits_for_receives()) {
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
