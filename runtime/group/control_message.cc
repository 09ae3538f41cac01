// SPDX-License-Identifier: Apache-2.0
#include "runtime/group/control_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "runtime/little_endian.h"

namespace prepost {
namespace {

using Kind = ControlMessage::Kind;

constexpr std::array<const char*, 26> kKindNames = {
    "ready",  "start",    "delivered", "sum",     "summed",   "commit",  "release",
    "query",  "progress", "failed",    "abort",   "have",     "arrived", "done",
    "passed", "last",     "device",    "next",    "prepared", "arm",     "whole",
    "joined", "stalled",  "gone",      "waiting", "report"};

constexpr std::array<uint64_t NodeReport::*, 11> kReportFields = {
    &NodeReport::host_posts,
    &NodeReport::host_posts_during,
    &NodeReport::host_wakeups,
    &NodeReport::host_completions,
    &NodeReport::retries,
    &NodeReport::cpu_ns,
    &NodeReport::bytes_received,
    &NodeReport::elapsed_ns,
    &NodeReport::host_event_requests_during,
    &NodeReport::rearms,
    &NodeReport::rearms_max};

/// Not printable ASCII: terminals may do something else than show it, as there are control
/// characters above ASCII, too, and a text may be cut within a character of several bytes.
bool IsUnprintable(char c) {
  return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f;
}

std::optional<StatusCode> CodeOf(uint8_t value) {
  for (const StatusCode code : {StatusCode::kOk, StatusCode::kRejected, StatusCode::kUsage,
                                StatusCode::kEnvironment, StatusCode::kInterrupted}) {
    if (static_cast<uint8_t>(code) == value) return code;
  }
  return std::nullopt;
}

Status BadField(const char* field, uint64_t value) {
  return Rejected(fmt::format("{} is {}", field, value));
}

}  // namespace

const char* Name(Kind kind) { return kKindNames[static_cast<size_t>(kind)]; }

void ControlMessage::SetText(const std::string& value) {
  text = value.substr(0, kControlTextBytes);
  std::ranges::replace_if(text, IsUnprintable, '?');
}

void EncodeControlMessage(const ControlMessage& message,
                          std::span<std::byte, kControlMessageBytes> out) {
  PREPOST_CHECK(message.text.size() <= kControlTextBytes);
  ByteWriter writer(out);
  writer.Put(static_cast<uint8_t>(message.kind));
  writer.Put(static_cast<uint8_t>(message.lost_peer));
  writer.Put(static_cast<uint8_t>(message.code));
  writer.PutZeros(1);
  writer.Put(message.interval_ms);
  writer.Put(message.start_ns);
  writer.Put(message.progress);
  for (const auto field : kReportFields) writer.Put(message.report.*field);
  writer.PutBytes(message.sum.bytes);
  writer.PutBytes(message.proof);
  writer.Put(static_cast<uint16_t>(message.text.size()));
  writer.PutBytes(std::as_bytes(std::span(message.text)));
  writer.PutZeros(writer.left());
}

Result<ControlMessage> DecodeControlMessage(std::span<const std::byte, kControlMessageBytes> in) {
  ByteReader reader(in);
  ControlMessage message;
  const uint8_t kind = reader.Get<uint8_t>();
  if (kind >= kKindNames.size()) return BadField("kind", kind);
  message.kind = static_cast<Kind>(kind);
  const uint8_t lost_peer = reader.Get<uint8_t>();
  if (lost_peer > 1) return BadField("lost_peer", lost_peer);
  message.lost_peer = lost_peer == 1;
  const uint8_t code = reader.Get<uint8_t>();
  const std::optional<StatusCode> known_code = CodeOf(code);
  if (!known_code) return BadField("code", code);
  message.code = *known_code;
  if ((message.code == StatusCode::kOk) == (message.kind == Kind::kFailed)) {
    return BadField("code", code);
  }
  const uint8_t reserved = reader.Get<uint8_t>();
  if (reserved != 0) return BadField("byte 3", reserved);
  message.interval_ms = reader.Get<uint32_t>();
  if (message.interval_ms > kControlIntervalMsMax) {
    return BadField("interval_ms", message.interval_ms);
  }
  message.start_ns = reader.Get<uint64_t>();
  message.progress = reader.Get<uint64_t>();
  for (const auto field : kReportFields) message.report.*field = reader.Get<uint64_t>();
  std::ranges::copy(reader.Take(sizeof(message.sum.bytes)), message.sum.bytes.begin());
  std::ranges::copy(reader.Take(sizeof(message.proof)), message.proof.begin());
  const uint16_t text_bytes = reader.Get<uint16_t>();
  if (text_bytes > kControlTextBytes) return BadField("bytes of text", text_bytes);
  for (const std::byte byte : reader.Take(text_bytes)) {
    const char c = static_cast<char>(byte);
    if (IsUnprintable(c)) return BadField("a character of the text", static_cast<unsigned char>(c));
    message.text.push_back(c);
  }
  for (const std::byte byte : reader.Take(reader.left())) {
    if (byte != std::byte{0}) return BadField("a byte behind the text", static_cast<uint8_t>(byte));
  }
  return message;
}

}  // namespace prepost
