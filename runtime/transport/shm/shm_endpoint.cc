// SPDX-License-Identifier: Apache-2.0
//
// The i-th send on a channel goes into the i-th receive, so a message needs no description: a count
// says it all. One block over 0>1, whose receive is posted:
//
//     node 0                                   node 1
//     PostSend: counter "sent" = 1, notifies 1
//                                              hears 1 > 0 in place; copies from node 0's memory
//                                              counter "in place" = 1, notifies 0;
//                                              the receive completes
//     hears 1; the send completes
//
// Poll() takes the news of its mailbox, copies a piece on each channel that has something to copy,
// and sleeps when there is nothing of either: one epoll_wait for the node's bell and the launcher's
// control socket. While it is busy it polls the latter every kLookUpNs only.
#include "runtime/transport/shm/shm_endpoint.h"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/files/collective_sums.h"

namespace prepost {
namespace {

/// Copied in one visit: about 0.2 ms.
constexpr size_t kCopyBytesMax = size_t{1} << 20;
constexpr uint64_t kLookUpNs = 10'000'000;
constexpr uint32_t kBellToken = 0;
constexpr uint32_t kWakeToken = 1;

/// What the peer `from` has: at a source the input.
int CopyOf(Playable plan, NodeId from, const LocalMemory& memory) {
  return plan.header().roles().IsSource(from) ? memory.input.fd()
                                              : memory.buffers[from.index()].fd();
}

constexpr uint32_t kRooms = 3;  ///< of MemoryRoom

bool IsMulticast(Playable plan) {
  return plan.header().collective.kind == CollectiveKind::kMulticast;
}

/// The file of each room of `node`; -1: it has none.
std::array<int, kRooms> RoomsOf(Playable plan, NodeId node, const LocalMemory& memory) {
  const bool is_target = plan.header().roles().IsTarget(node);
  return {memory.input.fd(), is_target ? memory.buffers[node.index()].fd() : -1,
          memory.scratch[node.index()].fd()};
}

bool IsBlocksTo(const Channel& channel, NodeId node) {
  return channel.to == node && !channel.carries_credits();
}

}  // namespace

Result<std::unique_ptr<ShmEndpoint>> ShmEndpoint::Make(Playable plan, NodeId node, ShmBoard& board,
                                                       const LocalMemory& memory, int wake_fd,
                                                       const Checkpoint& checkpoint) {
  std::unique_ptr<ShmEndpoint> endpoint(new ShmEndpoint(plan, node, board));
  endpoint->AddChannels();
  PREPOST_RETURN_IF_ERROR(endpoint->AddSources(memory, checkpoint));
  PREPOST_RETURN_IF_ERROR(endpoint->Watch(wake_fd));
  return endpoint;
}

std::vector<int> ShmEndpoint::FilesOf(Playable plan, NodeId node, const ShmBoard& board,
                                      const LocalMemory& memory) {
  std::vector<int> files = {board.bell(node)};
  for (const Channel& channel : plan.channels()) {
    if (channel.from == node) files.push_back(board.bell(channel.to));
    if (channel.to == node) files.push_back(board.bell(channel.from));
    if (!IsBlocksTo(channel, node)) continue;
    if (IsMulticast(plan)) {
      files.push_back(CopyOf(plan, channel.from, memory));
      continue;
    }
    for (const int fd : RoomsOf(plan, channel.from, memory))
      if (fd >= 0) files.push_back(fd);
  }
  return files;
}

void ShmEndpoint::AddChannels() {
  const size_t in_flight_max = plan_.look_ahead(node_);
  completed_.Reserve(in_flight_max);
  state_of_channel_.assign(plan_.channels().size(), kNone);
  for (const ChannelOps& channel : plan_.ChannelOpsOf(node_)) {
    state_of_channel_[channel.channel.index()] = static_cast<uint32_t>(channels_.size());
    const auto [mine, theirs] = channel.outgoing
                                    ? std::pair(ShmBoard::End::kFrom, ShmBoard::End::kTo)
                                    : std::pair(ShmBoard::End::kTo, ShmBoard::End::kFrom);
    ChannelState& state = channels_.emplace_back();
    state.mine = {.channel = channel.channel, .writer = mine};
    state.theirs = {.channel = channel.channel, .writer = theirs};
    state.outgoing = channel.outgoing;
    state.carries_credits = plan_.channels()[channel.channel.index()].carries_credits();
    state.ops = channel.ops;
    state.slots.Resize(std::min<size_t>(channel.ops, in_flight_max));
  }
  active_.Resize(channels_.size());
}

/// Of another collective than a multicast: three places of each node that blocks come from.
Status ShmEndpoint::AddRooms(const LocalMemory& memory, const Checkpoint& checkpoint) {
  const std::vector<uint64_t> inputs = InputOffsets(plan_.header());
  const bool is_target = plan_.header().roles().IsTarget(node_);
  const bool is_sealed = !is_target || memory.buffers[node_.index()].is_sealed();
  for (ChannelState& state : channels_) {
    const Channel& channel = plan_.channels()[state.mine.channel.index()];
    if (!IsBlocksTo(channel, node_)) continue;
    state.source = static_cast<uint32_t>(sources_.size());
    const NodeBytes bytes = NodeBytesOf(plan_.header(), channel.from);
    const std::array<uint64_t, kRooms> sizes = {inputs.back(), bytes.output, bytes.scratch};
    const std::array<int, kRooms> files = RoomsOf(plan_, channel.from, memory);
    for (uint32_t room = 0; room < kRooms; ++room) {
      if (files[room] < 0) {
        sources_.emplace_back();
        continue;
      }
      Result<ShmSource> source = ShmSource::Make(
          {.fd = files[room], .bytes = sizes[room], .is_target_sealed = is_sealed}, checkpoint);
      if (!source.ok()) return source.status();
      sources_.push_back(std::move(*source));
    }
    AddPieces(state, inputs[channel.from.index()]);
  }
  return {};
}

/// The i-th send of the channel at its sender is the i-th message.
void ShmEndpoint::AddPieces(ChannelState& state, uint64_t input_offset) {
  const NodeId from = plan_.channels()[state.mine.channel.index()].from;
  const std::unique_ptr<const BlockPlaces> places = plan_.PlacesOf(from);
  const std::unique_ptr<OpStream> ops = plan_.OpsOf(from);
  for (uint32_t i = 0; ops->Next(); ++i) {
    if (!ops->op().is_send() || ops->op().channel != state.mine.channel) continue;
    std::vector<Piece>& pieces = state.pieces.emplace_back();
    const auto add = [&](const BlockPlace& at, uint64_t bytes) {
      if (bytes == 0) return;
      const bool is_input = at.room == MemoryRoom::kInput;
      const Piece piece = {
          .room = at.room, .offset = at.offset + (is_input ? input_offset : 0), .bytes = bytes};
      const bool follows = !pieces.empty() && pieces.back().room == piece.room &&
                           pieces.back().offset + pieces.back().bytes == piece.offset;
      if (follows) {
        pieces.back().bytes += piece.bytes;
      } else {
        pieces.push_back(piece);
      }
    };
    if (const OpPlace& place = places->PlaceOf(i); place.at.room != MemoryRoom::kStaging) {
      add(place.at, place.bytes);
    } else {
      for (const BlockWork& work : places->Of(i)) add(work.reads, work.bytes);
    }
  }
}

/// Of what is copied next: where it lies, and how much of it, at most `*bytes`, in one piece.
std::pair<const ShmSource*, uint64_t> ShmEndpoint::PlaceOf(const ChannelState& state,
                                                           size_t* bytes) const {
  if (IsMulticast(plan_)) {
    const Slot& slot = state.slots[state.completed];
    return {&sources_[state.source],
            plan_.header().payload.BlockOffset(slot.block) + state.copied_bytes};
  }
  uint64_t before = 0;
  for (const Piece& piece : state.pieces[state.completed]) {
    if (state.copied_bytes < before + piece.bytes) {
      const uint64_t done = state.copied_bytes - before;
      *bytes = std::min(*bytes, static_cast<size_t>(piece.bytes - done));
      return {&sources_[state.source + static_cast<uint32_t>(piece.room)], piece.offset + done};
    }
    before += piece.bytes;
  }
  PREPOST_CHECK(false);
  return {};
}

Status ShmEndpoint::AddSources(const LocalMemory& memory, const Checkpoint& checkpoint) {
  if (!IsMulticast(plan_)) return AddRooms(memory, checkpoint);
  for (ChannelState& state : channels_) {
    const Channel& channel = plan_.channels()[state.mine.channel.index()];
    if (!IsBlocksTo(channel, node_)) continue;
    state.source = static_cast<uint32_t>(sources_.size());
    Result<ShmSource> source =
        ShmSource::Make({.fd = CopyOf(plan_, channel.from, memory),
                         .bytes = plan_.header().payload.bytes,
                         .is_target_sealed = memory.buffers[node_.index()].is_sealed()},
                        checkpoint);
    if (!source.ok()) return source.status();
    sources_.push_back(std::move(*source));
  }
  return {};
}

Status ShmEndpoint::Watch(int wake_fd) {
  epoll_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
  const auto watch = [this](int fd, uint32_t events, uint32_t token) {
    epoll_event event = {.events = events, .data = {.u32 = token}};
    return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  };
  if (epoll_.valid() && watch(board_.bell(node_), EPOLLIN | EPOLLET, kBellToken) &&
      (wake_fd < 0 || watch(wake_fd, EPOLLIN, kWakeToken))) {
    return {};
  }
  return SystemError(StatusCode::kEnvironment, "cannot watch the bell of a node", errno);
}

void ShmEndpoint::PostRecv(const RecvRequest& request) {
  ChannelState& state = StateOf(request.channel);
  PREPOST_CHECK(!state.outgoing);
  Post(state, {.op = request.op, .block = request.block, .memory = request.memory});
  if (state.carries_credits) {
    // Either this load sees the send, or the sender sees this receive: Load() and Store() are
    // sequentially consistent.
    board_.Store(state.mine, state.posted);
    if (board_.Load(state.theirs) >= state.posted) board_.Notify(state.mine);
  }
  Complete(state);
}

void ShmEndpoint::PostSend(const SendRequest& request) {
  ChannelState& state = StateOf(request.channel);
  PREPOST_CHECK(state.outgoing);
  Post(state, {.op = request.op,
               .block = request.block,
               .memory = {const_cast<std::byte*>(request.memory.data()), request.memory.size()}});
  board_.Store(state.mine, state.posted);
  board_.Notify(state.mine);
  if (state.carries_credits) Hear(state);
}

void ShmEndpoint::Post(ChannelState& state, const Slot& slot) {
  PREPOST_CHECK(state.posted < state.ops);
  state.slots[state.posted++] = slot;
}

/// Reads how far the other end is.
void ShmEndpoint::Hear(ChannelState& state) {
  const uint32_t heard_before = std::exchange(state.heard, board_.Load(state.theirs));
  PREPOST_CHECK(state.heard <= state.ops);
  if (!state.outgoing && !state.carries_credits) {
    const uint32_t posted = std::max(state.posted, heard_before);
    if (state.heard > posted) counters_.early += state.heard - posted;
  }
  Complete(state);
}

bool ShmEndpoint::HasToCopy(const ChannelState& state) const {
  return state.source != kNone && state.completed < std::min(state.heard, state.posted);
}

/// Completes what both ends have done, but for blocks that come in: those are copied first.
void ShmEndpoint::Complete(ChannelState& state) {
  if (state.source != kNone) {
    if (HasToCopy(state)) active_.Push(state_of_channel_[state.mine.channel.index()]);
    return;
  }
  while (state.completed < std::min(state.heard, state.posted)) {
    const Slot& slot = state.slots[state.completed++];
    counters_.bytes_moved += slot.memory.size();
    completed_.Add(slot.op);
  }
}

Result<PollOutcome> ShmEndpoint::Poll(std::span<OpId> completed,
                                      std::chrono::milliseconds timeout) {
  PREPOST_RETURN_IF_ERROR(Work());
  PollOutcome outcome;
  const bool busy = active_.size() > 0 || !completed_.empty();
  if (busy || timeout.count() == 0) {
    const uint64_t now_ns = MonotonicNs();
    if (now_ns - looked_up_ns_ >= kLookUpNs) {
      looked_up_ns_ = now_ns;
      PREPOST_RETURN_IF_ERROR(LookUp(std::chrono::milliseconds(0), &outcome.woken));
    }
  } else if (board_.FallAsleep(node_)) {
    PREPOST_RETURN_IF_ERROR(LookUp(timeout, &outcome.woken));
    ++counters_.wakeups;
    if (on_wakeup_) on_wakeup_();
  }
  if (!busy) PREPOST_RETURN_IF_ERROR(Work());
  outcome.completed = completed_.Take(completed);
  return outcome;
}

Status ShmEndpoint::LookUp(std::chrono::milliseconds timeout, bool* woken) {
  std::array<epoll_event, 2> events;
  const int timeout_ms = timeout.count() < 0 ? -1 : static_cast<int>(timeout.count());
  const int count =
      epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
  if (count < 0 && errno != EINTR) {
    return SystemError(StatusCode::kEnvironment, "cannot wait for the bell of a node", errno);
  }
  for (int i = 0; i < count; ++i) {
    if (events[static_cast<size_t>(i)].data.u32 == kWakeToken) *woken = true;
  }
  return {};
}

/// Takes the news, then copies a piece on every channel that has something to copy.
Status ShmEndpoint::Work() {
  board_.TakeNews(node_, [this](ShmBoard::Counter counter) { Hear(StateOf(counter.channel)); });
  for (size_t visits = active_.size(); visits > 0; --visits) {
    const uint32_t index = active_.Pop();
    ChannelState& state = channels_[index];
    PREPOST_RETURN_IF_ERROR(CopySome(state));
    if (HasToCopy(state)) active_.Push(index);
  }
  return {};
}

Status ShmEndpoint::CopySome(ChannelState& state) {
  const Slot& slot = state.slots[state.completed];
  if (state.copied_bytes == 0 && on_arrival_) on_arrival_(slot.op);
  const size_t rest = slot.memory.size() - state.copied_bytes;
  if (rest > 0) {
    size_t bytes = std::min(rest, kCopyBytesMax);
    const auto [source, offset] = PlaceOf(state, &bytes);
    const Result<size_t> copied =
        source->Copy(offset, slot.memory.subspan(state.copied_bytes, bytes));
    if (!copied.ok()) {
      const NodeId from = plan_.channels()[state.mine.channel.index()].from;
      return {copied.status().code(),
              fmt::format("node {} cannot copy block {} from node {}: {}", node_.value, slot.block,
                          from.value, copied.status().message())};
    }
    state.copied_bytes += *copied;
    counters_.bytes_moved += *copied;
  }
  if (state.copied_bytes < slot.memory.size()) return {};
  state.copied_bytes = 0;
  completed_.Add(slot.op);
  board_.Store(state.mine, ++state.completed);
  board_.Notify(state.mine);
  return {};
}

}  // namespace prepost
