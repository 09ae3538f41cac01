// SPDX-License-Identifier: Apache-2.0
//
// A record for a peer (peer_exchange.h), integers little-endian: magic (4 bytes), version (4), the
// length of what queues are of (1), that; the number of ends with names (4); and for each: lane
// (4), whether the peer that says it sends there (1), the length of its name (2), the name.
#include "runtime/device/queue_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "runtime/base/little_endian.h"

namespace prepost {
namespace {

constexpr uint32_t kQueueNamesMagic = 0x50505155;  // "PPQU"
constexpr uint32_t kRecordVersion = 2;
constexpr size_t kHeadBytes = 9;
constexpr size_t kCountBytes = 4;
constexpr size_t kEndBytes = 7;

std::span<const std::byte> BytesOfText(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::vector<std::byte> QueueRecord(const QueueNames& names, NodeId peer) {
  std::vector<uint32_t> ends;
  size_t bytes = kHeadBytes + names.over.size() + kCountBytes;
  for (uint32_t end = 0; end < names.ends.size(); ++end) {
    if (names.ends[end].peer != peer || names.own[end].empty()) continue;
    PREPOST_CHECK(names.own[end].size() <= kQueueNameBytesMax);
    ends.push_back(end);
    bytes += kEndBytes + names.own[end].size();
  }
  std::vector<std::byte> record(bytes);
  ByteWriter out(record);
  out.Put(kQueueNamesMagic);
  out.Put(kRecordVersion);
  out.Put(static_cast<uint8_t>(names.over.size()));
  out.PutBytes(BytesOfText(names.over));
  out.Put(static_cast<uint32_t>(ends.size()));
  for (const uint32_t end : ends) {
    out.Put(NumberOf(names.ends[end].lane));
    out.Put(static_cast<uint8_t>(names.ends[end].is_send ? 1 : 0));
    out.Put(static_cast<uint16_t>(names.own[end].size()));
    out.PutBytes(names.own[end]);
  }
  return record;
}

/// The error's message is what is wrong with the record.
Status LearnRecord(const QueueNames& names, const PeerRecord& record) {
  ByteReader in(record.received);
  if (in.left() < kHeadBytes || in.Get<uint32_t>() != kQueueNamesMagic)
    return Rejected(fmt::format("it does not play over {}", names.over));
  if (const auto version = in.Get<uint32_t>(); version != kRecordVersion)
    return Rejected(fmt::format("it speaks version {}", version));
  const auto over_bytes = in.Get<uint8_t>();
  if (in.left() < over_bytes + kCountBytes) return Rejected("its record is too short");
  if (!std::ranges::equal(in.Take(over_bytes), BytesOfText(names.over)))
    return Rejected(fmt::format("it does not play over {}", names.over));
  const auto count = in.Get<uint32_t>();
  std::vector<bool> is_known(names.ends.size());
  for (uint32_t i = 0; i < count; ++i) {
    if (in.left() < kEndBytes) return Rejected("its record is too short");
    const auto number = in.Get<uint32_t>();
    const std::optional<Lane> lane = LaneOf(number);
    const bool is_send = in.Get<uint8_t>() != 0;
    const auto bytes = in.Get<uint16_t>();
    if (bytes > in.left() || bytes == 0) return Rejected("its record is too short");
    if (!lane) return Rejected(fmt::format("lane {} is out of range", number));
    const std::span<const std::byte> name = in.Take(bytes);
    const auto found = std::ranges::find_if(names.ends.all(), [&](const ChannelEnd& end) {
      return end.peer == record.peer && end.lane == *lane && end.is_send != is_send;
    });
    if (found == names.ends.all().end())
      return Rejected(
          fmt::format("it has a queue on lane {} that this node knows nothing of", number));
    const auto end = static_cast<uint32_t>(found - names.ends.all().begin());
    if (is_known[end]) return Rejected(fmt::format("it has two queues on lane {}", number));
    is_known[end] = true;
    PREPOST_RETURN_IF_ERROR(names.learn(end, name));
  }
  for (uint32_t end = 0; end < names.ends.size(); ++end) {
    if (names.ends[end].peer == record.peer && !is_known[end])
      PREPOST_RETURN_IF_ERROR(names.learn(end, {}));
  }
  return {};
}

}  // namespace

Status ExchangeQueueNames(RecordExchange exchange, const QueueNames& names) {
  PREPOST_CHECK(names.own.size() == names.ends.size() && names.over.size() <= 255);
  std::vector<PeerRecord> records;
  size_t ends_max = 0;
  for (const ChannelEnd& end : names.ends.all()) {
    if (std::ranges::find(records, end.peer, &PeerRecord::peer) != records.end()) continue;
    records.push_back({.peer = end.peer, .sent = QueueRecord(names, end.peer)});
    ends_max = std::max<size_t>(ends_max, static_cast<size_t>(std::ranges::count(
                                              names.ends.all(), end.peer, &ChannelEnd::peer)));
  }
  exchange.bytes_max = static_cast<uint32_t>(kHeadBytes + names.over.size() + kCountBytes +
                                             ends_max * (kEndBytes + kQueueNameBytesMax));
  PREPOST_RETURN_IF_ERROR(ExchangeRecords(exchange, records));
  for (const PeerRecord& record : records) {
    const Status learned = LearnRecord(names, record);
    if (!learned.ok()) return NotLearned(exchange, record.peer, learned.message());
  }
  return {};
}

}  // namespace prepost
