// SPDX-License-Identifier: Apache-2.0
#include "runtime/run/node_part.h"

#include <algorithm>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/executor/combine_blocks.h"

namespace prepost {

using std::chrono::milliseconds;

milliseconds Sooner(milliseconds a, milliseconds b) {
  return a < milliseconds(0) ? b : b < milliseconds(0) ? a : std::min(a, b);
}

Status NodePart::Prepare(int wake_fd, const Checkpoint& checkpoint) {
  const Result<NodeMemory> memory = PrepareMemory(checkpoint);
  if (!memory.ok()) return memory.status();
  Result<std::unique_ptr<Player>> player = task_.make_player(
      {.memory = *memory,
       .wake_fd = wake_fd,
       .checkpoint = checkpoint,
       .observer = task_.trace != nullptr ? task_.trace->Observer() : OpObserver()});
  if (!player.ok()) return player.status();
  player_ = std::move(*player);
  return {};
}

Result<NodeMemory> NodePart::PrepareMemory(const Checkpoint& checkpoint) {
  if (task_.plan.header().collective.kind != CollectiveKind::kMulticast)
    return PrepareRooms(checkpoint);
  if (is_target()) {
    if (task_.in_memory) PREPOST_RETURN_IF_ERROR(task_.buffer->KeepApart());
    PREPOST_RETURN_IF_ERROR(task_.buffer->Reserve(checkpoint));
    return NodeMemory{.source = task_.buffer->bytes(), .target = task_.buffer->bytes()};
  }
  if (!task_.in_memory) return NodeMemory{.source = task_.input->bytes()};
  Result<Mapping> message = task_.input->Read(checkpoint);
  if (!message.ok()) return message.status();
  message_ = *std::move(message);
  return NodeMemory{.source = message_.bytes()};
}

/// Input, output and scratch buffers.
Result<NodeMemory> NodePart::PrepareRooms(const Checkpoint& checkpoint) {
  const PlanHeader& header = task_.plan.header();
  const NodeBytes bytes = NodeBytesOf(header, task_.node);
  NodeMemory memory;
  // The processor itself reads it, which must not end where somebody cuts the file short.
  if (task_.input != nullptr) {
    Result<Mapping> input = task_.input->Read(task_.input_offset, bytes.input, checkpoint);
    if (!input.ok()) return input.status();
    message_ = *std::move(input);
    memory.source = message_.bytes();
  }
  if (is_target()) {
    if (task_.in_memory) PREPOST_RETURN_IF_ERROR(task_.buffer->KeepApart());
    PREPOST_RETURN_IF_ERROR(task_.buffer->Reserve(checkpoint));
    memory.target = task_.buffer->bytes();
  }
  PREPOST_RETURN_IF_ERROR(task_.scratch->Reserve(checkpoint));
  memory.scratch = task_.scratch->bytes();
  if (task_.in_memory) {
    places_ = task_.plan.PlacesOf(task_.node);
    memory.places = places_.get();
    Result<Mapping> staging = Mapping::Anonymous(places_->staging_bytes());
    if (!staging.ok()) return staging.status();
    staging_ = *std::move(staging);
    memory.staging = staging_.bytes();
  }
  if (!header.combine.is_none()) memory.combine = CombineFunctionOf(header.combine);
  return memory;
}

Status NodePart::Play(uint64_t start_ns, const std::function<milliseconds()>& wait_max,
                      const std::function<Status()>& between, Attention* attention) {
  WaitPacer pacer(task_.wait);
  const uint64_t cpu_before_ns = ThreadCpuNs();
  if (task_.trace != nullptr) task_.trace->start_ns = start_ns;
  player_->Start();
  while (!player_->done()) {
    if (attention != nullptr) attention->BeginWait();
    const Status status = player_->Poll(Sooner(pacer.Timeout(player_->progress()), wait_max()));
    if (attention != nullptr) attention->EndWait();
    if (!status.ok()) {
      const bool plays_file = task_.input != nullptr && !task_.in_memory;
      if (plays_file) PREPOST_RETURN_IF_ERROR(task_.input->CheckStillWhole());
      return status;
    }
    if (player_->woken() || wait_max() == milliseconds(0)) PREPOST_RETURN_IF_ERROR(between());
  }
  report_ = player_->report();
  queue_rearms_ = player_->queue_rearms();
  report_.elapsed_ns = MonotonicNs() - start_ns;
  report_.cpu_ns = ThreadCpuNs() - cpu_before_ns;
  return {};
}

Result<MessageSum> NodePart::Sum(const Checkpoint& checkpoint) {
  const bool is_multicast = task_.plan.header().collective.kind == CollectiveKind::kMulticast;
  if (!is_multicast && !is_target()) return RunningSum().Get();  // of nothing
  if (is_target()) PREPOST_RETURN_IF_ERROR(task_.buffer->Store(checkpoint));
  return is_target()       ? task_.buffer->Sum(checkpoint)
         : task_.in_memory ? SumMemory(message_.bytes(), checkpoint)
                           : task_.input->Sum(checkpoint);
}

std::optional<NodeId> NodePart::Stop() {
  if (player_ == nullptr) return std::nullopt;
  const std::optional<NodeId> lost = player_->lost_peer();
  player_->Stop();
  return lost;
}

}  // namespace prepost
