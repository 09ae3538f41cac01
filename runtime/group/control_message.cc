// SPDX-License-Identifier: Apache-2.0
//
// FieldsOf() lists the fields of a message, and does not compile if it lists too few: writing and
// reading go through them, each with a function for every type that a field may have.
#include "runtime/group/control_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "ir/base/utf8.h"
#include "runtime/base/little_endian.h"

namespace prepost {
namespace {

struct MessageType {
  const char* name;
  size_t fields;
};
/// In the order of ControlMessage.
constexpr std::array<MessageType, std::variant_size_v<ControlMessage>> kTypes = {
    {{"query", 1},   {"progress", 4}, {"joined", 0}, {"arrived", 2}, {"passed", 3},
     {"stalled", 1}, {"failed", 7},   {"gone", 1},   {"abort", 4},   {"last", 1},
     {"done", 1},    {"release", 1},  {"have", 1},   {"waiting", 3}, {"device", 1},
     {"next", 1},    {"report", 2},   {"sum", 1},    {"summed", 2},  {"commit", 2}}};

template <typename Message, size_t... place>
constexpr size_t PlaceOf(std::index_sequence<place...>) {
  return ((std::is_same_v<Message, std::variant_alternative_t<place, ControlMessage>> ? place : 0) +
          ...);
}
constexpr auto kPlaces = std::make_index_sequence<kTypes.size()>();

/// References to all of them.
template <typename Message>
auto FieldsOf([[maybe_unused]] Message& message) {
  constexpr size_t kFields = kTypes[PlaceOf<std::remove_const_t<Message>>(kPlaces)].fields;
  if constexpr (kFields == 0) {
    static_assert(std::is_empty_v<Message>);
    return std::tie();
  } else if constexpr (kFields == 1) {
    auto& [a] = message;
    return std::tie(a);
  } else if constexpr (kFields == 2) {
    auto& [a, b] = message;
    return std::tie(a, b);
  } else if constexpr (kFields == 3) {
    auto& [a, b, c] = message;
    return std::tie(a, b, c);
  } else if constexpr (kFields == 4) {
    auto& [a, b, c, d] = message;
    return std::tie(a, b, c, d);
  } else {
    auto& [a, b, c, d, e, f, g] = message;
    return std::tie(a, b, c, d, e, f, g);
  }
}

template <typename Message, typename Visit>
void VisitFields(Message& message, Visit& visit) {
  std::apply([&visit](auto&... fields) { (visit(fields), ...); }, FieldsOf(message));
}

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

/// That a field takes at most.
template <typename Field>
constexpr size_t kFieldBytesMax = sizeof(Field);
template <>
constexpr size_t kFieldBytesMax<StatusCode> = 1;
template <>
constexpr size_t kFieldBytesMax<NodeReport> = kReportFields.size() * sizeof(uint64_t);
template <>
constexpr size_t kFieldBytesMax<std::optional<NodeId>> = 1 + sizeof(NodeId);
template <>
constexpr size_t kFieldBytesMax<std::vector<NodeId>> = 2 + kControlNodesMax * sizeof(NodeId);
template <>
constexpr size_t kFieldBytesMax<std::string> = 2 + kControlTextBytes;

template <typename... Field>
constexpr size_t BytesMax(std::type_identity<std::tuple<Field&...>>) {
  return (1 + ... + kFieldBytesMax<Field>);
}
template <typename... Message>
constexpr size_t BytesMax(std::type_identity<std::variant<Message...>>) {
  return std::max(
      {BytesMax(std::type_identity<decltype(FieldsOf(std::declval<Message&>()))>())...});
}
static_assert(BytesMax(std::type_identity<ControlMessage>()) == kControlMessageBytes);

class FieldWriter {
 public:
  explicit FieldWriter(std::span<std::byte> out) : out_(out) {}
  void End() { out_.PutZeros(out_.left()); }

  void operator()(bool flag) { out_.Put(static_cast<uint8_t>(flag)); }
  void operator()(Gate gate) { out_.Put(static_cast<uint8_t>(gate)); }
  void operator()(StatusCode code) { out_.Put(static_cast<uint8_t>(code)); }
  void operator()(FailureKind kind) { out_.Put(static_cast<uint8_t>(kind)); }
  void operator()(uint64_t number) { out_.Put(number); }
  void operator()(NodeId node) { out_.Put(node.value); }
  void operator()(const std::optional<NodeId>& node) {
    (*this)(node.has_value());
    (*this)(node.value_or(NodeId()));
  }
  void operator()(const std::vector<NodeId>& nodes) {
    PREPOST_CHECK(nodes.size() <= kControlNodesMax);
    out_.Put(static_cast<uint16_t>(nodes.size()));
    for (const NodeId node : nodes) (*this)(node);
  }
  void operator()(const std::string& text) {
    PREPOST_CHECK(text.size() <= kControlTextBytes);
    out_.Put(static_cast<uint16_t>(text.size()));
    out_.PutBytes(std::as_bytes(std::span(text)));
  }
  void operator()(const NodeReport& report) {
    for (const auto field : kReportFields) (*this)(report.*field);
  }
  void operator()(const MessageSum& sum) { out_.PutBytes(sum.bytes); }
  void operator()(const MacBytes& bytes) { out_.PutBytes(bytes); }

 private:
  ByteWriter out_;
};

/// After the first value that is refused, status(), it reads on: nothing has more bytes than there
/// are.
class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> in) : in_(in) {}
  const Status& status() const { return status_; }
  void End() {
    for (const std::byte byte : in_.Take(in_.left())) Number(byte, 0, "a byte behind the message");
  }

  void operator()(bool& flag) { flag = Number(in_.Get<uint8_t>(), 1, "a flag") != 0; }
  void operator()(Gate& gate) {
    gate = static_cast<Gate>(Number(in_.Get<uint8_t>(), kGates - 1, "gate"));
  }
  void operator()(FailureKind& kind) {
    kind = static_cast<FailureKind>(Number(in_.Get<uint8_t>(), kFailureKinds - 1, "kind"));
  }
  void operator()(StatusCode& code) {
    const auto value = in_.Get<uint8_t>();
    for (const StatusCode it : {StatusCode::kRejected, StatusCode::kUsage, StatusCode::kEnvironment,
                                StatusCode::kInterrupted}) {
      if (static_cast<uint8_t>(it) == value) return void(code = it);
    }
    Refuse("code", value);
  }
  void operator()(uint64_t& number) { number = in_.Get<uint64_t>(); }
  void operator()(NodeId& node) { node = NodeId(in_.Get<uint32_t>()); }
  void operator()(std::optional<NodeId>& node) {
    bool is_known = false;
    (*this)(is_known);
    (*this)(node.emplace());
    if (is_known) return;
    Number(node->value, 0, "a node that is not known");
    node.reset();
  }
  void operator()(std::vector<NodeId>& nodes) {
    nodes.resize(Number(in_.Get<uint16_t>(), kControlNodesMax, "number of nodes"));
    for (NodeId& node : nodes) (*this)(node);
  }
  void operator()(std::string& text) {
    const auto bytes = Number(in_.Get<uint16_t>(), kControlTextBytes, "bytes of text");
    for (const std::byte byte : in_.Take(bytes)) text.push_back(static_cast<char>(byte));
    for (std::string_view left = text; !left.empty();) {
      const size_t length = PrintableLength(left);
      if (length == 0) return Refuse("a character of the text", static_cast<uint8_t>(left.front()));
      left.remove_prefix(length);
    }
  }
  void operator()(NodeReport& report) {
    for (const auto field : kReportFields) (*this)(report.*field);
  }
  void operator()(MessageSum& sum) { (*this)(sum.bytes); }
  void operator()(MacBytes& bytes) { std::ranges::copy(in_.Take(bytes.size()), bytes.begin()); }

 private:
  void Refuse(const char* field, uint64_t value) {
    if (status_.ok()) status_ = Rejected(fmt::format("{} is {}", field, value));
  }
  /// 0 if it is more than `max`, which is refused.
  template <typename Integer>
  Integer Number(Integer value, size_t max, const char* field) {
    if (static_cast<uint64_t>(value) <= max) return value;
    Refuse(field, static_cast<uint64_t>(value));
    return Integer{};
  }

  ByteReader in_;
  Status status_;
};

template <size_t... place>
ControlMessage MessageOf(size_t type, std::index_sequence<place...>) {
  ControlMessage message;
  ((type == place ? void(message.emplace<place>()) : void()), ...);
  return message;
}

}  // namespace

const char* Name(const ControlMessage& message) { return kTypes[message.index()].name; }

std::string ControlText(const std::string& value) {
  constexpr std::string_view kCut = "...";
  std::string text;
  size_t whole = 0;  // bytes of letters that leave room for kCut
  for (std::string_view left = value; !left.empty();) {
    const size_t printable = PrintableLength(left);
    if (text.size() + std::max<size_t>(printable, 1) > kControlTextBytes)
      return text.substr(0, whole).append(kCut);
    text.append(printable == 0 ? "?" : left.substr(0, printable));
    if (text.size() + kCut.size() <= kControlTextBytes) whole = text.size();
    left.remove_prefix(std::max<size_t>(Utf8Length(left), 1));  // one of each letter
  }
  return text;
}

void EncodeControlMessage(const ControlMessage& message,
                          std::span<std::byte, kControlMessageBytes> out) {
  out.front() = static_cast<std::byte>(message.index());
  FieldWriter writer(out.subspan<1>());
  std::visit([&writer](const auto& it) { VisitFields(it, writer); }, message);
  writer.End();
}

Result<ControlMessage> DecodeControlMessage(std::span<const std::byte, kControlMessageBytes> in) {
  const auto type = std::to_integer<size_t>(in.front());
  if (type >= kTypes.size()) return Rejected(fmt::format("type is {}", type));
  ControlMessage message = MessageOf(type, kPlaces);
  FieldReader reader(in.subspan<1>());
  std::visit([&reader](auto& it) { VisitFields(it, reader); }, message);
  reader.End();
  if (!reader.status().ok()) return reader.status();
  return message;
}

}  // namespace prepost
