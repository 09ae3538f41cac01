// SPDX-License-Identifier: Apache-2.0
//
// Each request is a WQE at the end of its ring. Rings are as large as the plan's queues, up to a
// limit; then indices wrap, and a slot is used again when its CQE has been read. RC completes each
// queue's WQEs in order, so the CQE of a QP's send (receive) is that of the oldest send (receive)
// that has none yet. The CQ has an entry for everything that rings can hold, and what was read is
// given back before anything new is posted: it cannot overrun.
//
// Sleeping: request an event, poll once more (a CQE that came before gives none), sleep. An event
// may then come for a CQE that this poll has found; the next sleep ends at once for it. That is a
// wake-up for nothing, as with verbs, and is counted.
#include "backends/nic/host/device_endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <utility>

#include "backends/nic/program/encode.h"
#include "backends/nic/program/queue_program.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/executor/program.h"

namespace prepost::nic {
namespace {

uint32_t RingSize(uint32_t entries, uint32_t entries_max) {
  return std::bit_ceil(std::clamp(entries, uint32_t{1}, entries_max));
}

}  // namespace

Result<std::unique_ptr<DeviceEndpoint>> DeviceEndpoint::Make(Device& device, const Plan& plan,
                                                             NodeId node,
                                                             const DeviceEndpointConfig& config) {
  PREPOST_CHECK(std::has_single_bit(config.ring_wqes_max) && config.ring_wqes_max <= 32768);
  const std::span<const Op> ops = plan.ops(ProgramOf(plan, node));
  const Payload& payload = plan.header().payload;
  const uint64_t largest = payload.LargestBlock();
  uint32_t most = 1;  // blocks of an op
  for (const Op& op : ops) most = std::max(most, op.is_credit() ? 1 : op.count);
  if (largest > kRcMessageBytesMax / most) {
    return Rejected(
        most == 1 ? fmt::format("block of {} bytes does not fit one RC message, the limit is {}",
                                largest, kRcMessageBytesMax)
                  : fmt::format("{} blocks of {} bytes do not fit one RC message, the limit is {}",
                                most, largest, kRcMessageBytesMax));
  }
  std::unique_ptr<DeviceEndpoint> endpoint(new DeviceEndpoint(device, plan, node, config));
  if (plan.header().collective.kind != CollectiveKind::kMulticast) {
    endpoint->memory_of_op_.resize(ops.size());
    endpoint->config_.message = {};
    PREPOST_RETURN_IF_ERROR(endpoint->RegisterRooms(config.rooms));
  }
  endpoint->config_.rooms = {};
  const Pairing pairing = PairUp(plan, ProgramOf(plan, node));
  PREPOST_RETURN_IF_ERROR(endpoint->MakeQueues(pairing));
  endpoint->MapChannels(pairing);
  return endpoint;
}

/// The entries of the CQ: what all queues can have under way.
uint64_t DeviceEndpoint::EntriesOf(const Pairing& pairing) const {
  uint64_t entries = 1;
  for (const Pair& pair : pairing.pairs) {
    entries += RingSize(pair.sends, config_.ring_wqes_max);
    entries += RingSize(pair.receives, config_.ring_wqes_max);
  }
  return entries;
}

Status DeviceEndpoint::RegisterRooms(std::span<const DeviceEndpointConfig::Room> rooms) {
  for (const DeviceEndpointConfig::Room& room : rooms) {
    if (room.bytes.empty()) continue;
    const Result<uint32_t> key = lease_.RegisterMemory(room.bytes, {.local_write = room.writable});
    if (!key.ok()) return key.status();
    rooms_.push_back({room.bytes, *key});
  }
  return {};
}

Status DeviceEndpoint::MakeQueues(const Pairing& pairing) {
  if (config_.may_sleep) PREPOST_RETURN_IF_ERROR(device_.EventFile().status());
  if (!config_.message.empty()) {
    const Result<uint32_t> key =
        lease_.RegisterMemory(config_.message, {.local_write = config_.writable});
    if (!key.ok()) return key.status();
    lkey_ = *key;
  }
  uint64_t entries = EntriesOf(pairing);
  while (entries > config_.cq_entries_max && config_.ring_wqes_max > 1) {
    config_.ring_wqes_max /= 2;
    entries = EntriesOf(pairing);
  }
  if (entries > config_.cq_entries_max) {
    return Rejected(
        fmt::format("node {}: the CQ of all its queues needs {} entries, the limit is {}",
                    node_.value, entries, config_.cq_entries_max));
  }
  const Result<Cq> cq =
      device_.CreateCq({.entries = std::bit_ceil(static_cast<uint32_t>(entries))});
  if (!cq.ok()) return cq.status();
  cq_ = *cq;
  reader_ = CqeReader(cq_);
  links_.reserve(pairing.pairs.size());
  freed_.reserve(pairing.pairs.size());
  std::vector<Qp> qps;
  for (const Pair& pair : pairing.pairs) {
    PREPOST_RETURN_IF_ERROR(MakeLink(pair));
    qps.push_back(links_.back().qp);
  }
  PREPOST_CHECK(link_of_qp_.Build(qps));
  return {};
}

Status DeviceEndpoint::MakeLink(const Pair& pair) {
  const uint32_t sends_max = RingSize(pair.sends, config_.ring_wqes_max);
  const uint32_t receives_max = RingSize(pair.receives, config_.ring_wqes_max);
  // The peer's receives are as many as the sends here; those that do not fit its ring, which may be
  // as short as this one, come later.
  const bool fits = pair.sends <= std::min(sends_max, kWqIndexAhead);
  const Result<Qp> qp =
      lease_.CreateQp({.send_cq = cq_.number,
                       .recv_cq = cq_.number,
                       .sq_wqebbs = sends_max,
                       .rq_wqes = pair.receives == 0 ? 0 : receives_max,
                       .rq_stride = kReceiveStrideBytes,
                       .rnr_retry = fits ? RnrRetryOfMember(plan_.header()) : kRnrRetryForEver});
  if (!qp.ok()) return qp.status();
  const auto queue = [&](bool is_send, uint32_t ring) {
    return RequestQueue({.requests = is_send ? pair.sends : pair.receives,
                         .outstanding = OutstandingOf(pair, is_send),
                         .in_flight_max = std::min(ring, kWqIndexAhead)});
  };
  links_.push_back({.qp = *qp,
                    .peer = pair.peer,
                    .lane = pair.lane,
                    .sends = queue(true, sends_max),
                    .receives = queue(false, receives_max)});
  return {};
}

void DeviceEndpoint::MapChannels(const Pairing& pairing) {
  link_of_channel_ = std::make_unique_for_overwrite<uint32_t[]>(plan_.channels().size());
  std::fill_n(link_of_channel_.get(), plan_.channels().size(), kNone);
  const std::span<const Op> ops = plan_.ops(ProgramOf(plan_, node_));
  for (size_t i = 0; i < ops.size(); ++i) {
    link_of_channel_[ops[i].channel.index()] = pairing.of_ops[i];
  }
}

OpenNode DeviceEndpoint::open_node() const {
  OpenNode open{.node = node_, .device = &device_, .qps = {}};
  for (const Link& link : links_) open.qps.push_back({link.peer, link.lane, link.qp.number});
  return open;
}

void DeviceEndpoint::PostRecv(const RecvRequest& request) {
  const RequestQueue::Request asked = {request.op, request.block};
  Note(asked, request.memory);
  Link& link = LinkOf(request.channel);
  if (link.receives.Add(asked)) WriteReceive(link);
}

void DeviceEndpoint::PostSend(const SendRequest& request) {
  const RequestQueue::Request asked = {request.op, request.block};
  Note(asked, request.memory);
  Link& link = LinkOf(request.channel);
  if (link.sends.Add(asked)) WriteSend(link);
}

/// Where its blocks lie; nothing of a credit.
std::span<const std::byte> DeviceEndpoint::MemoryOf(const RequestQueue::Request& request) const {
  if (request.block == kNoBlock) return {};
  if (!memory_of_op_.empty()) return memory_of_op_[request.op.index()];
  return config_.message.subspan(payload_.BlockOffset(request.block),
                                 payload_.BlockSize(request.block));
}

/// Of memory that is not empty.
uint32_t DeviceEndpoint::KeyOf(std::span<const std::byte> memory) const {
  if (memory_of_op_.empty()) return lkey_;
  const auto has = [&](const Room& room) {
    return !std::less<>()(memory.data(), room.bytes.data()) &&
           static_cast<size_t>(memory.data() - room.bytes.data()) < room.bytes.size();
  };
  const auto found = std::ranges::find_if(rooms_, has);
  PREPOST_CHECK(found != rooms_.end());
  return found->lkey;
}

/// Keeps what MemoryOf() says of it, and checks that this is `memory`.
void DeviceEndpoint::Note(const RequestQueue::Request& request, std::span<const std::byte> memory) {
  if (!memory_of_op_.empty() && request.block != kNoBlock)
    memory_of_op_[request.op.index()] = memory;
  const std::span<const std::byte> place = MemoryOf(request);
  PREPOST_CHECK(memory.size() == place.size() && (memory.empty() || memory.data() == place.data()));
}

/// What a queue is asked for and has not completed, at most, so that nothing is allocated later.
/// With a window of W that is W, but for credits' receives, which are all posted ahead; and a few
/// more while acknowledgements are slow.
uint32_t DeviceEndpoint::OutstandingOf(const Pair& pair, bool is_send) const {
  const uint32_t all = is_send ? pair.sends : pair.receives;
  const Ready& ready = plan_.header().ready;
  const bool is_ahead = !is_send && pair.lane == Lane::kCredits;
  if (ready.mode != ReadyMode::kWindow || is_ahead || ready.window > all / 4) return all;
  return 4 * ready.window;
}

/// Posts what was held back, as far as there is room.
void DeviceEndpoint::FillRing(Link& link) {
  while (link.receives.held_back() != 0 && link.receives.has_room()) WriteReceive(link);
  while (link.sends.held_back() != 0 && link.sends.has_room()) WriteSend(link);
}

/// Refills the rings of the links that freed_ names, in the order of links, whatever came first.
void DeviceEndpoint::FillFreedRings() {
  std::ranges::sort(freed_);
  for (const uint32_t position : freed_) {
    links_[position].is_freed = false;
    FillRing(links_[position]);
  }
  freed_.clear();
}

/// The next one of the queue, and rings its doorbell.
void DeviceEndpoint::WriteSend(Link& link) {
  const Qp& qp = link.qp;
  const auto index = static_cast<uint16_t>(link.sends.posted());
  const RequestQueue::Request& request = link.sends.next_to_post();
  const uint32_t block = request.block;
  const std::span<const std::byte> memory = MemoryOf(request);
  std::byte* at = qp.sq.data() + (size_t{index} * kWqebbBytes & (qp.sq.size() - 1));
  const bool is_credit = block == kNoBlock;
  std::array<std::byte, kSegmentBytes> control;
  EncodeSegment(ControlSegment{.wqe_index = index,
                               .opcode = is_credit ? Opcode::kSend : Opcode::kSendImm,
                               .qpn = qp.number,
                               .segments = static_cast<uint8_t>(memory.empty() ? 1 : 2),
                               .completion = CompletionMode::kAlways,
                               .immediate = is_credit ? 0 : BlockImmediate(config_.epoch, block)},
                control.data());
  std::ranges::copy(control, at);
  if (!memory.empty()) {
    EncodeSegment(DataSegment{.byte_count = static_cast<uint32_t>(memory.size()),
                              .lkey = KeyOf(memory),
                              .address = reinterpret_cast<uintptr_t>(memory.data())},
                  at + kSegmentBytes);
  }
  link.sends.Post();
  // What was just written would have to come back from memory that was not in the cache.
  PostSends(device_, qp, static_cast<uint16_t>(index + 1), control);
}

/// The next one of the queue.
void DeviceEndpoint::WriteReceive(Link& link) {
  const Qp& qp = link.qp;
  const auto index = static_cast<uint16_t>(link.receives.posted());
  const std::span<const std::byte> memory = MemoryOf(link.receives.next_to_post());
  std::byte* at = qp.rq.data() + (size_t{index} * kReceiveStrideBytes & (qp.rq.size() - 1));
  const DataSegment segment =
      memory.empty() ? DataSegment{.lkey = kInvalidLkey}
                     : DataSegment{.byte_count = static_cast<uint32_t>(memory.size()),
                                   .lkey = KeyOf(memory),
                                   .address = reinterpret_cast<uintptr_t>(memory.data())};
  EncodeSegment(segment, at);
  link.receives.Post();
  PostReceives(qp, static_cast<uint16_t>(index + 1));
}

Status DeviceEndpoint::RequestEvents() {
  if (event_requested_) return {};
  event_requested_ = true;
  return device_.RequestEvent(cq_.number);
}

Result<PollOutcome> DeviceEndpoint::Poll(std::span<OpId> completed,
                                         std::chrono::milliseconds timeout) {
  PollOutcome outcome;
  const auto visit = [&]() -> Status {
    const Result<size_t> taken = Take(completed);
    if (taken.ok()) outcome.completed = *taken;
    return taken.status();
  };
  PREPOST_RETURN_IF_ERROR(visit());
  if (timeout.count() == 0 && errors_.IsDue()) {
    PREPOST_RETURN_IF_ERROR(CheckDevice());
    outcome.woken = IsReadable(config_.wake_fd);
  }
  if (outcome.completed != 0 || timeout.count() == 0) return outcome;
  PREPOST_CHECK(config_.may_sleep);
  if (!event_requested_) {
    PREPOST_RETURN_IF_ERROR(RequestEvents());
    PREPOST_RETURN_IF_ERROR(visit());
    if (outcome.completed != 0) return outcome;
  }
  const Result<EventWait> wait = WaitForEvent(device_, config_.wake_fd, timeout);
  if (!wait.ok()) return wait.status();
  if (on_wakeup_) on_wakeup_();
  if (wait->event) event_requested_ = false;
  outcome.woken = wait->woken;
  PREPOST_RETURN_IF_ERROR(visit());
  PREPOST_RETURN_IF_ERROR(CheckDevice());
  return outcome;
}

/// What makes no CQE. A QP that the NIC has broken is flushed, which says which request is lost.
Status DeviceEndpoint::CheckDevice() {
  if (device_.AckEvents() != 0) event_requested_ = false;
  for (const ErrorEvent& event : device_.TakeErrors()) {
    switch (event.kind) {
      case ErrorEvent::Kind::kErrorCqe:
      case ErrorEvent::Kind::kQpFatal:
      case ErrorEvent::Kind::kQpRequest:
      case ErrorEvent::Kind::kQpAccess:
        continue;
      case ErrorEvent::Kind::kCqError:
      case ErrorEvent::Kind::kDeviceFatal:
      case ErrorEvent::Kind::kPortDown:
        return Rejected(fmt::format("node {}: {}", node_.value, Name(event.kind)));
    }
  }
  return {};
}

Result<size_t> DeviceEndpoint::Take(std::span<OpId> completed) {
  size_t count = 0;
  while (count < completed.size()) {
    const std::optional<Cqe> cqe = reader_.Next();
    if (!cqe) break;
    const Result<OpId> op = Complete(*cqe);
    if (!op.ok()) return op.status();
    completed[count++] = *op;
  }
  if (count == 0) return count;
  reader_.Consume();
  if (!freed_.empty()) FillFreedRings();
  return count;
}

Result<OpId> DeviceEndpoint::Complete(const Cqe& cqe) {
  const uint32_t position = link_of_qp_.Find(cqe.qpn);
  if (position == NumberIndex::kNone) {
    return Rejected(
        fmt::format("node {}: a CQE names QP {:#x}, which is not its own", node_.value, cqe.qpn));
  }
  Link& link = links_[position];
  const bool is_send =
      cqe.opcode == CqeOpcode::kRequester || cqe.opcode == CqeOpcode::kRequesterError;
  RequestQueue& queue = is_send ? link.sends : link.receives;
  if (cqe.is_error()) {
    lost_peer_ = link.peer;
    return Failed(link, is_send, Name(cqe.syndrome));
  }
  if (queue.in_flight() == 0) return Failed(link, is_send, "a CQE for nothing posted");
  const auto index = static_cast<uint16_t>(queue.completed());
  if (cqe.wqe_counter != index) {
    return Failed(link, is_send,
                  fmt::format("a CQE of WQE {}, expected {}", cqe.wqe_counter, index));
  }
  const auto [op, block] = queue.oldest();
  const auto bytes = static_cast<uint32_t>(MemoryOf(queue.oldest()).size());
  if (!is_send) {
    const ExpectedReceive expected = {.block = block, .bytes = bytes, .epoch = config_.epoch};
    if (!IsRight(cqe, expected)) return Failed(link, is_send, WrongReceive(cqe, expected));
  }
  if (queue.held_back() != 0 && !std::exchange(link.is_freed, true)) freed_.push_back(position);
  queue.Complete();
  if (bytes != 0) bytes_moved_ += bytes;
  return op;
}

/// The error of the oldest request of the queue.
Status DeviceEndpoint::Failed(const Link& link, bool is_send, const std::string& what) const {
  const RequestQueue& queue = is_send ? link.sends : link.receives;
  std::string of = "a credit";
  if (queue.in_flight() != 0 && queue.oldest().block != kNoBlock) {
    of = fmt::format("block {}", queue.oldest().block);
  }
  return Rejected(fmt::format("node {} cannot {} {} {} node {}: {}", node_.value,
                              is_send ? "send" : "receive", of, is_send ? "to" : "from",
                              link.peer.value, what));
}

}  // namespace prepost::nic
