// SPDX-License-Identifier: Apache-2.0
#include "backends/fabric/triggered_player.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "backends/fabric/endpoints.h"
#include "runtime/base/file_descriptor.h"

namespace prepost::fabric {
namespace {

using triggered::DeferredProgram;
using triggered::DeferredWork;

class TriggeredPlayer final : public Player {
 public:
  TriggeredPlayer(const Domain& domain, const DeferredProgram& program,
                  const PlayerContext& context)
      : domain_(domain),
        program_(program),
        bytes_(context.memory.target.size()),
        wake_fd_(context.wake_fd),
        observer_(context.observer) {}
  ~TriggeredPlayer() override { Stop(); }

  Status Prepare(PlayerDevice::Task& task);

  void Start() override {
    fi_cntr_add(counters_[program_.start()], 1);
    ++posts_;
  }
  Status Poll(std::chrono::milliseconds timeout) override;
  bool done() const override { return is_done_; }
  bool woken() const override { return is_woken_; }
  NodeReport report() const override {
    return {.node = program_.node,
            .host_posts = posts_,
            .host_wakeups = wakeups_,
            .host_completions = completions_,
            .bytes_received = is_done_ ? bytes_ : 0};
  }
  uint64_t progress() const override { return is_done_ ? 1 : 0; }
  uint64_t AskProgress() override;
  std::string Waiting(size_t ops_max) const override;
  void Stop() override;
  std::optional<NodeId> lost_peer() const override { return lost_peer_; }

 private:
  Status PostReceives();
  Status MakeCounters();
  Status MakePulses();
  Status Queue();
  Status Failed(const Status& status) {
    lost_peer_ = endpoints_->lost_peer();
    return status;
  }
  Status ReadCompletions();
  Status CheckErrors();
  std::optional<OpId> OpOf(const void* context) const;
  Status Finish();

  const Domain& domain_;
  const DeferredProgram& program_;
  const uint64_t bytes_;
  const int wake_fd_;
  const OpObserver observer_;             // may be empty; gets wake-ups
  std::shared_ptr<Endpoints> endpoints_;  // null: stopped
  std::vector<Fid<fid_cntr>> own_counters_;
  std::vector<fid_cntr*> counters_;  // by number
  int done_file_ = -1;
  Fid<fid_ep> pulse_source_;
  std::vector<Fid<fid_ep>> pulse_targets_;  // by pulse counter
  std::vector<fi_addr_t> pulse_addresses_;
  uint64_t pulse_tag_ = 0;
  std::vector<fi_context2> pulse_contexts_;  // of receives
  // What queued work refers to, by index of the program's works. Does not move.
  std::vector<iovec> pieces_;
  std::vector<void*> keys_;
  std::vector<fi_op_tagged> sends_;
  std::vector<fi_op_cntr> additions_;
  std::vector<fi_deferred_work> works_;
  uint64_t posts_ = 0;
  uint64_t wakeups_ = 0;
  uint64_t completions_ = 0;
  bool is_queued_ = false;
  bool is_done_ = false;
  bool is_woken_ = false;
  std::optional<NodeId> lost_peer_;
};

Status TriggeredPlayer::Prepare(PlayerDevice::Task& task) {
  PREPOST_RETURN_IF_ERROR(triggered::ValidateDeferred(task.plan, program_));
  auto endpoints =
      Endpoints::Make(domain_, {.ends = {task.plan, task.node, program_.ends},
                                .memory = task.context.memory,
                                .has_counters = true,
                                .find_op = [this](const void* context) { return OpOf(context); }});
  if (!endpoints.ok()) return endpoints.status();
  endpoints_ = *std::move(endpoints);
  PREPOST_RETURN_IF_ERROR(endpoints_->Connect(task));
  PREPOST_RETURN_IF_ERROR(MakeCounters());
  PREPOST_RETURN_IF_ERROR(MakePulses());
  PREPOST_RETURN_IF_ERROR(PostReceives());
  return Queue();
}

Status TriggeredPlayer::MakeCounters() {
  for (uint32_t i = 0; i < program_.counters; ++i) {
    if (i < program_.ends.size()) {
      counters_.push_back(endpoints_->counter(i));
      continue;
    }
    Result<Fid<fid_cntr>> counter = domain_.MakeCounter(/*is_awaited=*/i == program_.done());
    if (!counter.ok()) return counter.status();
    counters_.push_back(counter->get());
    own_counters_.push_back(*std::move(counter));
  }
  if (fi_control(&counters_[program_.done()]->fid, FI_GETWAIT, &done_file_) == 0) return {};
  return EnvironmentError("the provider's counters have no file to wait for");
}

/// An endpoint for each counter of pulses, with a receive for each pulse, and one that sends them.
Status TriggeredPlayer::MakePulses() {
  if (program_.pulse_counters == 0) return {};
  Result<Fid<fid_ep>> source = endpoints_->MakeQuiet(nullptr);
  if (!source.ok()) return source.status();
  pulse_source_ = *std::move(source);
  std::vector<size_t> pulses(program_.pulse_counters);
  for (const DeferredWork& work : program_.works) {
    if (work.kind == DeferredWork::Kind::kPulse) ++pulses[work.counter - program_.first_pulse()];
  }
  pulse_tag_ = domain_.NewTag();
  pulse_contexts_.resize(std::accumulate(pulses.begin(), pulses.end(), size_t{0}));
  size_t posted = 0;
  for (uint32_t i = 0; i < program_.pulse_counters; ++i) {
    Result<Fid<fid_ep>> target = endpoints_->MakeQuiet(counters_[program_.first_pulse() + i]);
    if (!target.ok()) return target.status();
    pulse_targets_.push_back(*std::move(target));
    fid_ep* const endpoint = pulse_targets_.back().get();
    const Result<std::vector<std::byte>> name = NameOf(endpoint);
    if (!name.ok()) return name.status();
    const Result<fi_addr_t> address = domain_.Insert(*name);
    if (!address.ok()) return address.status();
    pulse_addresses_.push_back(*address);
    for (size_t pulse = 0; pulse < pulses[i]; ++pulse) {
      fi_msg_tagged message = {};
      message.addr = FI_ADDR_UNSPEC;
      message.tag = pulse_tag_;
      message.context = &pulse_contexts_[posted++];
      const ssize_t error = fi_trecvmsg(endpoint, &message, 0);
      if (error != 0)
        return FabricError(StatusCode::kRejected,
                           fmt::format("post all {} receives of pulses", pulses[i]), error);
    }
  }
  return {};
}

Status TriggeredPlayer::PostReceives() {
  for (uint32_t i = 0; i < program_.ends.size(); ++i) {
    if (program_.ends[i].is_send) continue;
    for (const OpId op : program_.ends[i].ops) {
      iovec piece;
      void* key = nullptr;
      fi_msg_tagged message;
      endpoints_->FillMessage(op, &piece, &key, &message);
      const ssize_t error = fi_trecvmsg(endpoints_->EndpointOf(op), &message, FI_COMPLETION);
      if (error == 0) continue;
      return FabricError(StatusCode::kRejected,
                         fmt::format("post all {} receives from node {}",
                                     program_.ends[i].ops.size(), program_.ends[i].peer.value),
                         error);
    }
  }
  return {};
}

Status TriggeredPlayer::Queue() {
  const size_t count = program_.works.size();
  pieces_.resize(count);
  keys_.resize(count);
  sends_.resize(count);
  additions_.resize(count);
  works_.resize(count);
  is_queued_ = true;
  for (size_t i = 0; i < count; ++i) {
    const DeferredWork& work = program_.works[i];
    fi_deferred_work& queued = works_[i];
    queued.triggering_cntr = counters_[work.trigger.counter];
    queued.threshold = work.trigger.threshold;
    if (work.kind == DeferredWork::Kind::kSend) {
      fi_op_tagged& send = sends_[i];
      send.ep = endpoints_->EndpointOf(work.op);
      endpoints_->FillMessage(work.op, &pieces_[i], &keys_[i], &send.msg);
      send.msg.context = &queued.context;  // which providers ask for
      send.flags = FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE;
      queued.completion_cntr = counters_[work.end];
      queued.op_type = FI_OP_TSEND;
      queued.op.tagged = &send;
    } else if (work.kind == DeferredWork::Kind::kPulse) {
      fi_op_tagged& send = sends_[i];
      send.ep = pulse_source_.get();
      send.msg = {};
      send.msg.addr = pulse_addresses_[work.counter - program_.first_pulse()];
      send.msg.tag = pulse_tag_;
      send.msg.context = &queued.context;
      queued.completion_cntr = counters_[program_.thrown()];
      queued.op_type = FI_OP_TSEND;
      queued.op.tagged = &send;
    } else {
      additions_[i] = {.cntr = counters_[work.counter], .value = work.value};
      queued.op_type = FI_OP_CNTR_ADD;
      queued.op.cntr = &additions_[i];
    }
    const int error = fi_control(&domain_.get()->fid, FI_QUEUE_WORK, &queued);
    if (error == 0) continue;
    return FabricError(StatusCode::kRejected,
                       fmt::format("queue work {} of {} of node {}", i, count, program_.node.value),
                       error);
  }
  return {};
}

Status TriggeredPlayer::Poll(std::chrono::milliseconds timeout) {
  is_woken_ = false;
  if (is_done_) return {};
  if (fi_cntr_read(counters_[program_.done()]) != 0) return Finish();
  fid* const waits[] = {&counters_[program_.done()]->fid};
  if (timeout.count() != 0 && fi_trywait(domain_.fabric(), const_cast<fid**>(waits), 1) == 0) {
    std::array<pollfd, 2> files = {pollfd{.fd = done_file_, .events = POLLIN, .revents = 0},
                                   pollfd{.fd = wake_fd_, .events = POLLIN, .revents = 0}};
    const int limit =
        timeout.count() < 0 ? -1 : static_cast<int>(std::min<int64_t>(timeout.count(), 1'000'000));
    if (poll(files.data(), files.size(), limit) < 0 && errno != EINTR)
      return SystemError(StatusCode::kEnvironment, "cannot wait for the end", errno);
    ++wakeups_;
    if (observer_) observer_({.node = program_.node, .op = {}, .kind = OpEvent::Kind::kWakeup});
    is_woken_ = (files[1].revents & POLLIN) != 0;
  }
  if (fi_cntr_read(counters_[program_.done()]) != 0) return Finish();
  return CheckErrors();
}

Status TriggeredPlayer::ReadCompletions() {
  std::array<OpId, 64> ops;
  for (;;) {
    const Result<size_t> read = endpoints_->Read(ops);
    if (!read.ok()) return read.status();
    if (*read == 0) return {};
    completions_ += *read;
  }
}

/// What a counter of completions does not count. Some providers count errors; those of sends that
/// sockets has started are in the completion queue alone.
Status TriggeredPlayer::CheckErrors() {
  const bool has_errors =
      std::ranges::any_of(program_.ends, [&, end = uint32_t{0}](const ChannelEnd&) mutable {
        return fi_cntr_readerr(counters_[end++]) != 0;
      });
  if (const Status read = ReadCompletions(); !read.ok()) return Failed(read);
  return has_errors ? Failed(Rejected("a request of the deferred work has failed")) : Status();
}

/// Work that is queued has a context of its own.
std::optional<OpId> TriggeredPlayer::OpOf(const void* context) const {
  for (size_t i = 0; i < works_.size(); ++i) {
    const DeferredWork& work = program_.works[i];
    if (work.kind == DeferredWork::Kind::kSend && &works_[i].context == context) return work.op;
  }
  return std::nullopt;
}

/// Every receive is of what the plan has.
Status TriggeredPlayer::Finish() {
  size_t receives = 0;
  for (const ChannelEnd& end : program_.ends) receives += end.is_send ? 0 : end.ops.size();
  if (const Status read = ReadCompletions(); !read.ok()) return Failed(read);
  if (completions_ != receives) {
    return Rejected(fmt::format("node {} is done with {} of {} receives", program_.node.value,
                                completions_, receives));
  }
  is_done_ = true;
  return {};
}

uint64_t TriggeredPlayer::AskProgress() {
  if (endpoints_ == nullptr) return 0;
  uint64_t sum = progress();
  for (uint32_t i = 0; i < program_.ends.size(); ++i) sum += fi_cntr_read(counters_[i]);
  return sum;
}

std::string TriggeredPlayer::Waiting(size_t ops_max) const {
  std::string text = fmt::format("{} works are queued, the end has not come", works_.size());
  size_t named = 0;
  for (uint32_t i = 0; i < program_.ends.size() && endpoints_ != nullptr; ++i) {
    const uint64_t count = fi_cntr_read(counters_[i]);
    if (count >= program_.ends[i].ops.size() || ++named > ops_max) continue;
    text +=
        fmt::format("; {}: {} of {}", program_.CounterName(i), count, program_.ends[i].ops.size());
  }
  return text;
}

void TriggeredPlayer::Stop() {
  if (std::exchange(is_queued_, false)) fi_control(&domain_.get()->fid, FI_FLUSH_WORK, nullptr);
  pulse_targets_.clear();
  pulse_source_ = nullptr;
  endpoints_ = nullptr;
}

}  // namespace

Result<std::unique_ptr<Player>> MakeTriggeredPlayer(const Domain& domain,
                                                    const DeferredProgram& program,
                                                    PlayerDevice::Task task) {
  auto player = std::make_unique<TriggeredPlayer>(domain, program, task.context);
  PREPOST_RETURN_IF_ERROR(player->Prepare(task));
  return std::unique_ptr<Player>(std::move(player));
}

}  // namespace prepost::fabric
