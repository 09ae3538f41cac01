// SPDX-License-Identifier: Apache-2.0
//
// HostThread: the thread of a host that plays one node of a plan, CPU-driven, in virtual time. It
// stands between the real executor and its real endpoint as an Endpoint of its own: what the
// executor does takes a core's time, and each request is posted when the thread has come to it.
#ifndef PREPOST_SIM_HOSTS_HOST_THREAD_H_
#define PREPOST_SIM_HOSTS_HOST_THREAD_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "backends/emulated/growing_ring.h"
#include "backends/nic/host/device_endpoint.h"
#include "ir/plan.h"
#include "runtime/executor/endpoint.h"
#include "runtime/executor/executor.h"
#include "sim/causes/time_trail.h"
#include "sim/clock/clock.h"
#include "sim/hosts/cpu_core.h"
#include "sim/hosts/host_costs.h"

namespace prepost::sim {

/// What one thread has done.
struct HostWork {
  uint64_t polls = 0;        ///< that found something
  uint64_t completions = 0;  ///< CQEs taken
  uint64_t posts = 0;        ///< since the start
  uint64_t doorbells = 0;    ///< of these, sends
  uint64_t wakeups = 0;      ///< interrupts
  Picoseconds busy = 0;      ///< of its core; polls in vain do not count

  friend bool operator==(const HostWork&, const HostWork&) = default;
};

/// One thread. Whoever owns it lets it Start() and PollOnce(), at the clock's time and not before
/// until(), and calls MakePosts() on the event kPostDue.
class alignas(64) HostThread final : public Endpoint {
 public:
  /// The event at which requests are due; the subject is the thread.
  static constexpr uint16_t kPostDue = 0;

  /// Where is recorded what takes the thread's time, and as whose. It changes nothing.
  struct Observed {
    TimeTrail* trail = nullptr;  ///< null: nobody
    uint32_t group = 0;
    NodeId node;
  };

  /// All must outlive the thread. `begins`: it knows of the transfer from the
  /// start, as a multicast's root and every member of another collective; `part`: its part of the
  /// plan.
  HostThread(const HostCosts& costs, CpuCore& core, Clock& clock, TimeHandler& handler,
             nic::DeviceEndpoint& endpoint, const Plan& part, bool begins);

  /// What bytes take on the wire alone, from one node of the plan to another.
  using TimeOnWire = std::function<Picoseconds(const Channel&, uint64_t bytes)>;
  /// Before Start(). Where copies overlap with the wire, it must be known how long that takes.
  void KnowWire(TimeOnWire wire) { wire_ = std::move(wire); }
  /// Before Start().
  void Observe(const Observed& observed) { observed_ = observed; }
  /// What the next Start() or PollOnce() comes after, at the same time.
  void BeginAt(StepId step) { step_ = step; }
  /// What ends at until().
  StepId step() const { return step_; }
  /// Starts the executor, whose endpoint this is.
  void Start(CpuExecutor& executor);
  /// Polls once and does what follows. False: it found nothing, and that took no time: another
  /// thread may have the core. Errors: the executor's.
  Result<bool> PollOnce(CpuExecutor& executor);
  /// When it is through with that.
  Picoseconds until() const { return until_; }
  /// It has not seen all that was there; or not polled since the start.
  bool may_find_more() const { return may_find_more_; }
  /// Posts what is due now.
  void MakePosts();
  /// For the executor, while it polls or prepares: takes the time of combining, or of copying, so
  /// many bytes. `is_result`: into the output.
  void Combine(uint64_t bytes);
  void CopyBlocks(uint64_t bytes, bool is_result);
  /// When it was through with the last combine, or copy into the output; 0: there was none.
  Picoseconds result_at() const { return result_at_; }
  /// It sleeps, and will have been woken up `at`.
  void CountWakeup(Picoseconds at) {
    ++work_.wakeups;
    if (observed_.trail != nullptr)
      observed_.trail->NoteWakeup(observed_.group, observed_.node, at);
  }
  const HostWork& work() const { return work_; }

  // For the executor.
  void PostRecv(const RecvRequest& request) override;
  void PostSend(const SendRequest& request) override;
  Result<PollOutcome> Poll(std::span<OpId> completed, std::chrono::milliseconds timeout) override;
  Status Flush() override { return endpoint_.Flush(); }
  bool quiet() const override { return posts_left_ == 0 && endpoint_.quiet(); }
  std::optional<NodeId> lost_peer() const override { return endpoint_.lost_peer(); }
  EndpointCounters counters() const override { return endpoint_.counters(); }
  void Stop() override { endpoint_.Stop(); }

 private:
  struct Post {
    Picoseconds at = 0;
    StepId step = kFirstStep;
    std::variant<SendRequest, RecvRequest> request;

    bool is_send() const { return std::holds_alternative<SendRequest>(request); }
    OpId op() const {
      return std::visit([](const auto& it) { return it.op; }, request);
    }
    ChannelId channel() const {
      return std::visit([](const auto& it) { return it.channel; }, request);
    }
  };

  struct Part {
    Picoseconds cost = 0;
    TimeCause cause = TimeCause::kOther;
  };

  TimedEvent PostEvent() { return {.subject = this, .value = 0, .what = kPostDue}; }
  void Spend(Picoseconds cost);
  Picoseconds CostOf(const CpuExecutor::PostedOp& op);
  void Note(std::initializer_list<Part> parts, OpId op);
  void NoteCompletion(OpId id, bool is_first);
  bool overlaps() const { return costs_.segment_bytes != 0 && costs_.system_copy_rate != 0; }
  Picoseconds SpendOnReceive(const Channel& channel, uint64_t bytes);
  Picoseconds SpendOnSend(const Channel& channel, uint64_t bytes);
  void CopyFirstBlock();
  void NoteResult();
  void PostLater(const Post& post);
  void MakePost(const Post& post);

  // What is used for each poll comes first, and what is used together stands in a cache line.
  Picoseconds until_ = 0;
  Clock& clock_;
  nic::DeviceEndpoint& endpoint_;
  CpuCore& core_;
  const HostCosts& costs_;
  const CpuExecutor* executor_ = nullptr;  // the one that polls
  Observed observed_;

  HostWork work_;
  uint32_t found_ = 0;       // by the last poll
  uint32_t posts_left_ = 0;  // of which the first, if any, is next_post_
  StepId step_ = kFirstStep;
  bool may_find_more_ = true;
  bool is_started_ = false;
  bool is_set_up_;  // for the message
  const bool begins_;

  Post next_post_;

  emulated::GrowingRing<Post> later_posts_;
  TimeHandler& handler_;
  std::span<const Channel> channels_;
  uint64_t first_block_bytes_ = 0;  // still to be copied
  uint64_t copied_before_ = 0;      // before the start, for which it takes the time then
  Picoseconds result_at_ = 0;
  Picoseconds copy_ = 0;  // of the last receive, what of its copying was left when it had come
  TimeOnWire wire_;
};

}  // namespace prepost::sim

#endif  // PREPOST_SIM_HOSTS_HOST_THREAD_H_
