// SPDX-License-Identifier: Apache-2.0
//
// TcpEndpoint's records: starts of messages, credits and delivery notes, as they come and as they
// are put, and what is wrong with those that a plan does not have.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "ir/base/count.h"
#include "runtime/transport/tcp/tcp_endpoint.h"

namespace prepost {

/// No block is expected in this message.
Status TcpEndpoint::ReadStart(Link& link) {
  iovec rest = {link.rx.data() + link.rx_bytes, kRecordBytes - link.rx_bytes};
  const Io io = Move(link, /*is_send=*/false, std::span(&rest, 1));
  if (io.outcome == Io::Outcome::kWouldBlock) AwaitBytes(link, 1);
  if (io.outcome != Io::Outcome::kMoved) return IoError(link, io, "receive from", kNoBlock);
  link.rx_bytes += io.bytes;
  if (link.rx_bytes < kRecordBytes) return {};
  const Record record = DecodeRecord(RecordAt(link.rx, 0));
  if (!IsStart(record.channel)) {
    return Rejected(fmt::format("node {} got bytes from node {} beyond the plan's last block",
                                node_.value, link.peer.value));
  }
  PREPOST_RETURN_IF_ERROR(TakeStart(link, record));
  return link.peer_has_begun ? Unexpected(link, record, "no block") : Status();
}

/// Of the message at hand or a later one.
Status TcpEndpoint::TakeStart(Link& link, const Record& record) {
  const MessageStart start = {.number = record.block,
                              .bytes = record.bytes & kGroupMessageBytesMax,
                              .variant = static_cast<uint16_t>(record.bytes >> kVariantShift),
                              .call_root = RootOf(record)};
  const bool is_at_hand = is_in_message_ && start == message_ && !link.peer_has_begun;
  const bool is_later = start.number - next_number_ < ahead_max_;
  const bool is_same = is_in_message_ && start.number == message_.number;
  if (IsStart(record.channel) && is_same && message_.call_root && !is_at_hand)
    return OtherCall(link, start);
  if (IsCallStart(record.channel) && is_in_message_ && IsAfter(message_.number, start.number))
    return LateCall(link, start);
  if (!IsStart(record.channel) || (!is_at_hand && !is_later)) {
    return Unexpected(link, record, "the start of a message");
  }
  link.peer_has_begun = is_at_hand;
  if (is_at_hand) return {};
  link.next = start;
  link.stalled = true;
  return {};
}

Status TcpEndpoint::ReadRecords(Link& link) {
  if (std::exchange(link.rx_left, 0) > 0) return TakeRecords(link);
  iovec rest = {link.rx.data() + link.rx_bytes, link.rx.size() - link.rx_bytes};
  const Io io = Move(link, /*is_send=*/false, std::span(&rest, 1));
  if (io.outcome == Io::Outcome::kWouldBlock) link.readable = false;
  if (io.outcome != Io::Outcome::kMoved) return IoError(link, io, "receive from", kNoBlock);
  link.rx_bytes += io.bytes;
  link.asked_since.reset();
  return TakeRecords(link);
}

/// Those that are there in full and of the message at hand.
Status TcpEndpoint::TakeRecords(Link& link) {
  size_t offset = 0;
  while (offset + kRecordBytes <= link.rx_bytes && !link.stalled) {
    const Record record = DecodeRecord(RecordAt(link.rx, offset));
    offset += kRecordBytes;
    if (record.channel == kLifeChannel) {
      TakeSign(link, record);
      continue;
    }
    counters_.bytes_moved += kRecordBytes;
    if (TakeLate(link, record)) continue;
    const bool is_start = IsStart(record.channel) || !link.peer_has_begun;
    PREPOST_RETURN_IF_ERROR(is_start ? TakeStart(link, record) : TakeRecord(link, record));
  }
  link.rx_bytes -= offset;
  link.rx_left = link.stalled ? link.rx_bytes : 0;
  std::memmove(link.rx.data(), link.rx.data() + offset, link.rx_bytes);
  return {};
}

TcpEndpoint::ChannelState* TcpEndpoint::FindChannel(const Link& link, ChannelId wire) {
  const auto found = std::ranges::find_if(
      link.noted, [&](uint32_t state) { return channels_[state].wire == wire; });
  return found == link.noted.end() ? nullptr : &channels_[*found];
}

Status TcpEndpoint::TakeRecord(Link& link, const Record& record) {
  ChannelState* const found = FindChannel(link, record.channel);
  if (found == nullptr) return Unexpected(link, record, "a channel between the two");
  ChannelState& state = *found;
  if (state.outgoing) return TakeNote(link, state, record);
  const Record credit = {.channel = record.channel, .block = kNoBlock, .bytes = 0};
  if (links_[state.link].carries_blocks || record != credit || state.moved == state.ops) {
    return Unexpected(link, record, "a credit that the plan has");
  }
  ++state.moved;
  CompleteArrived(state);
  return {};
}

/// What the peer says of a message that is over here: notes, and that such a message began there.
bool TcpEndpoint::TakeLate(Link& link, const Record& record) {
  const bool is_awaited = std::ranges::any_of(link.late, [](uint32_t notes) { return notes > 0; });
  if (!is_awaited || link.peer_has_begun) return false;
  if (IsStart(record.channel)) return is_in_message_ && IsAfter(message_.number, record.block);
  if (record.channel.index() >= link.late.size() || link.late[record.channel.index()] == 0)
    return false;
  --link.late[record.channel.index()];
  for (const uint32_t channel : link.noted) EndEarly(channels_[channel]);
  return true;
}

/// Not before all notes of the message before have come: so that a node is never more than one
/// message further than without this.
void TcpEndpoint::EndEarly(ChannelState& state) {
  const auto is_none = [](uint32_t notes) { return notes == 0; };
  if (!state.ends_early || !std::ranges::all_of(links_[state.note_link].late, is_none)) return;
  while (state.completed < state.moved) completed_.Add(state.slots[state.completed++].op);
  has_ended_early_ = true;
}

Status TcpEndpoint::TakeNote(Link& link, ChannelState& state, const Record& record) {
  if (state.ends_early) {  // its slot may be another one's by now
    if (state.noted == state.moved) return Unexpected(link, record, "no note");
    ++state.noted;
    return {};
  }
  if (state.completed == state.moved || record != RecordOf(state, state.completed)) {
    return Unexpected(link, record, "the note of the oldest undelivered send");
  }
  Link& carrier = links_[state.link];
  Release(carrier, state);
  completed_.Add(state.slots[state.completed++].op);
  CompleteWritten(state);
  if (in_step_ && carrier.stage != nullptr && slowest_ == state.completed - 1) FindSlowest();
  // It may have waited for room in the window or in the stage.
  const bool is_bounded = carrier.local.is_read || carrier.stage != nullptr;
  if (is_bounded && HasToWrite(carrier)) active_.Push(state.link);
  return {};
}

/// Completes sends of which no note will come.
void TcpEndpoint::CompleteWritten(ChannelState& state) {
  while (state.completed < state.moved && !IsNoted(state, state.slots[state.completed]))
    completed_.Add(state.slots[state.completed++].op);
}

/// Completes receives that are posted and have arrived, and notifies the sender where it waits for
/// that.
void TcpEndpoint::CompleteArrived(ChannelState& state) {
  while (state.completed < std::min(state.moved, state.posted)) {
    if (IsNoted(state, state.slots[state.completed]))
      AppendRecord(state.note_link, RecordOf(state, state.completed));
    completed_.Add(state.slots[state.completed++].op);
  }
}

void TcpEndpoint::AppendRecord(uint32_t index, const Record& record) {
  if (!std::exchange(links_[index].has_begun, true)) PutRecord(index, StartRecord());
  PutRecord(index, record);
}

void TcpEndpoint::PutRecord(uint32_t index, const Record& record) {
  Link& link = links_[index];
  if (link.tx.size() + kRecordBytes > link.tx.capacity()) {
    link.tx.erase(link.tx.begin(), link.tx.begin() + static_cast<ptrdiff_t>(link.tx_bytes));
    link.tx_bytes = 0;
  }
  const size_t offset = link.tx.size();
  link.tx.resize(offset + kRecordBytes);  // within what AddChannels() reserved
  EncodeRecord(record, RecordAt(link.tx, offset));
  // A sign of life is no progress: with it a plan that stands still would move for ever.
  if (record.channel != kLifeChannel) counters_.bytes_moved += kRecordBytes;
  active_.Push(index);
}

Record TcpEndpoint::RecordOf(const ChannelState& state, uint32_t index) const {
  const Slot& slot = state.slots[index];
  return {.channel = state.wire, .block = slot.block, .bytes = slot.memory.iov_len};
}

Status TcpEndpoint::Unexpected(const Link& link, const Record& record,
                               const std::string& expected) const {
  return Rejected(fmt::format("node {} got a record from node {} for {}; expected {}", node_.value,
                              link.peer.value, Describe(record, node_, link.peer), expected));
}

/// The peer sends a part of this call whose size it was to say as this end does.
Status TcpEndpoint::OtherSize(const Link& link, uint64_t sent, uint64_t expected) {
  differs_ = true;
  return Rejected(
      fmt::format("call {} is {}, in which node {} sends {} to node {}, and node {} expects {}: "
                  "both are to say "
                  "the same",
                  message_.number, prepost::Describe(message_), link.peer.value,
                  Count(sent, "byte"), node_.value, node_.value, Count(expected, "byte")));
}

/// The peer has begun another call than the one at hand, or a later one without this one's blocks.
Status TcpEndpoint::OtherCall(const Link& link, const MessageStart& start) {
  differs_ = true;
  const std::string own = fmt::format("call {} is {} at node {}", message_.number,
                                      prepost::Describe(message_), node_.value);
  if (start.number == message_.number) {
    return Rejected(
        fmt::format("{}, and {} at node {}", own, prepost::Describe(start), link.peer.value));
  }
  return Rejected(fmt::format("{}, and node {} has called something else; it is at call {}, {}",
                              own, link.peer.value, start.number, prepost::Describe(start)));
}

/// The peer has sent something of a call that is over here without it.
Status TcpEndpoint::LateCall(const Link& link, const MessageStart& start) {
  differs_ = true;
  late_call_ = {link.peer, start};
  return Rejected(fmt::format("call {} is {} at node {}, and at node {} it is over without that",
                              start.number, prepost::Describe(start), link.peer.value,
                              node_.value));
}

}  // namespace prepost
