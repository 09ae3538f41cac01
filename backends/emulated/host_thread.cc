// SPDX-License-Identifier: Apache-2.0
//
// One look of a thread at time t, as the real executor's code goes: it looks at the CQ (`poll`), deals
// with all CQEs that are there at t, at most 64, one after the other, and then posts what they have
// made ready, one request after the other. The code runs at t, in no time; `until_` says up to when
// the thread would be busy with it, and a request reaches the endpoint when `until_` was there:
//
//     t        poll       CQE        CQE       receive      send
//     |--poll--|-completion-|-credit-|-post_receive-|-post_send-|
//                                                   ^           ^
//                                            the NIC sees it    doorbell, and until()
//
// So nothing that the executor does depends on the model, and nothing of the model needs to know
// what it decides.
#include "prepost/backends/emulated/host_thread.h"

#include <utility>

namespace prepost::emulated {

HostThread::HostThread(const HostCosts& costs, CpuCore& core, VirtualClock& clock,
                       TimeHandler& handler, nic::DeviceEndpoint& endpoint, const Plan& part,
                       bool is_root)
    : costs_(costs),
      core_(core),
      clock_(clock),
      handler_(handler),
      endpoint_(endpoint),
      ops_(part.ops(part.programs().front())),
      message_(part.header().message),
      is_root_(is_root) {}

void HostThread::Start(CpuExecutor& executor) {
  is_started_ = true;
  until_ = clock_.now();
  if (is_root_) Spend(costs_.message_start);
  executor.Start();
}

Result<bool> HostThread::Look(CpuExecutor& executor) {
  PREPOST_CHECK(clock_.now() >= until_ && posts_.empty());
  until_ = clock_.now();
  found_ = 0;
  const Status status = executor.Poll(std::chrono::milliseconds(0));
  if (!status.ok()) return status;
  return found_ != 0;
}

void HostThread::Spend(Picoseconds cost) {
  until_ = core_.WorkEnd(until_, cost);
  work_.busy = After(work_.busy, cost);
}

/// Of its completion.
Picoseconds HostThread::CostOf(const Op& op) {
  if (op.block == kNoBlock) return costs_.credit + (op.is_send() ? 0 : costs_.system_call);
  Picoseconds cost = costs_.completion;
  if (op.is_send()) return cost;
  const uint64_t bytes = message_.BlockSize(op.block);
  cost = After(cost + costs_.system_call, TimeOf(bytes, costs_.system_copy_rate));
  if (!std::exchange(is_set_up_, true)) {
    cost = After(cost, After(costs_.message_setup, TimeOf(bytes, costs_.first_block_copy_rate)));
  }
  return cost;
}

Result<PollOutcome> HostThread::Poll(std::span<OpId> completed, std::chrono::milliseconds timeout) {
  PREPOST_CHECK(timeout.count() == 0);
  Result<PollOutcome> outcome = endpoint_.Poll(completed, timeout);
  if (!outcome.ok()) return outcome;
  found_ = outcome->completed;
  may_find_more_ = found_ == completed.size();
  if (found_ == 0) return outcome;
  ++work_.looks;
  work_.completions += found_;
  Spend(costs_.poll);
  for (const OpId op : completed.first(found_)) Spend(CostOf(ops_[op.index()]));
  return outcome;
}

void HostThread::PostRecv(const RecvRequest& request) {
  if (!is_started_) return endpoint_.PostRecv(request);
  Spend(costs_.post_receive);
  PostLater({.at = until_, .is_send = false, .receive = request});
}

void HostThread::PostSend(const SendRequest& request) {
  Spend(After(costs_.post_send + costs_.system_call,
              TimeOf(request.memory.size(), costs_.system_copy_rate)));
  PostLater({.at = until_, .is_send = true, .send = request});
}

void HostThread::PostLater(const Post& post) {
  ++work_.posts;
  if (posts_.empty() && post.at == clock_.now()) return MakePost(post);
  posts_.push_back(post);
  if (posts_.size() == 1) {
    clock_.Schedule(post.at, handler_, {.subject = this, .value = 0, .what = kPostDue});
  }
}

void HostThread::MakePosts() {
  while (!posts_.empty() && posts_.front().at == clock_.now()) {
    MakePost(posts_.front());
    posts_.pop_front();
  }
  if (posts_.empty()) return;
  clock_.Schedule(posts_.front().at, handler_, {.subject = this, .value = 0, .what = kPostDue});
}

void HostThread::MakePost(const Post& post) {
  if (post.is_send) {
    endpoint_.PostSend(post.send);
  } else {
    endpoint_.PostRecv(post.receive);
  }
}

}  // namespace prepost::emulated
