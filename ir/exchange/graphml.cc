// SPDX-License-Identifier: Apache-2.0
#include "ir/exchange/graphml.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "ir/base/text_writer.h"
#include "ir/exchange/xml_text.h"
#include "ir/messages.h"
#include "ir/plan_fields.h"

namespace prepost {
namespace {

/// The name of a field of the header. All that is exported is a multicast: that is not said.
std::string NameOf(const PlanField& field) {
  std::string name = field.name;
  std::ranges::replace(name, ' ', '_');
  return name;
}

template <typename Value>
const char* TypeOf(const PlanField& field, const Value&) {
  if constexpr (std::is_same_v<Value, NodeId>) return "int";
  if constexpr (std::is_integral_v<Value>) return field.max <= INT32_MAX ? "int" : "long";
  if constexpr (std::is_same_v<Value, std::optional<uint32_t>>) return "long";
  return "string";
}

template <typename Visit>
void VisitExported(const PlanHeader& header, const Visit& visit) {
  VisitContent(header, [&](const PlanField& field, const auto& value) {
    if (IsLater(field) && IsAbsent(field, value)) return;
    if constexpr (!std::is_same_v<decltype(value), const CollectiveKind&>) visit(field, value);
  });
}

/// Bytes of an op's blocks.
uint64_t BytesOf(const Payload& payload, const Op& op) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; !op.is_credit() && i < op.count; ++i)
    bytes += payload.BlockSize(op.block + i);
  return bytes;
}

/// What a node of the graph says, as put(name, type, value, whether it is there); later fields
/// (plan_fields.h) only `with_later`. Sizes and counts can be above 2^31, so they are long.
template <typename Put>
void ListNode(const Payload& payload, NodeId node, uint32_t id, const Op& op,
              const Channel& channel, bool with_later, Put put) {
  put("node", "int", node.value, true);
  put("op", "long", id, true);
  const char* const credit = op.is_send() ? "send credit" : "recv credit";
  put("kind", "string", op.is_credit() ? credit : Name(op.kind), true);
  put("peer", "int", (op.is_send() ? channel.to : channel.from).value, true);
  ListFields(std::type_identity<Channel>(), [&](const PlanField& field, auto get) {
    if (IsLater(field) && !with_later) return;
    if constexpr (!std::is_same_v<decltype(get(channel)), const NodeId&>)
      put(field.key, "long", NumberOf(get(channel)), !IsAbsent(field, get(channel)));
  });
  bool is_block_put = false;
  const auto put_block = [&] {
    if (std::exchange(is_block_put, true)) return;
    put("block", "int", op.block, !op.is_credit());
    put("bytes", "long", BytesOf(payload, op), !op.is_credit());
  };
  ListColumns(std::type_identity<Op>(), [&](const PlanField& field, auto get) {
    if constexpr (!std::is_same_v<decltype(get(op)), const ChannelId&>) {
      if (field.null_value && !field.if_absent) return;  // the block
      if (IsLater(field) && !with_later) return;
      if (field.if_absent) put_block();
      put(field.key, "long", NumberOf(get(op)), !IsAbsent(field, get(op)));
    }
  });
}

class GraphmlWriter {
 public:
  GraphmlWriter(const Plan& plan, std::ostream& out)
      : plan_(plan), has_later_(!IsPlainMulticast(plan)), messages_(plan), out_(out) {}

  void Run() {
    out_.Put(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n");
    VisitExported(plan_.header(), [this](const PlanField& field, const auto& value) {
      PutKey("graph", NameOf(field), TypeOf(field, value));
    });
    ListNode({}, {}, 0, {.block = kNoBlock}, {}, has_later_,
             [this](const char* name, const char* type, const auto&, bool) {
               PutKey("node", name, type);
             });
    PutKey("edge", "order", "string");
    out_.Put("  <graph id=\"plan\" edgedefault=\"directed\">\n");
    WriteHeader();
    for (const Program& program : plan_.programs()) WriteNodes(program);
    for (const Program& program : plan_.programs()) WriteEdges(program);
    out_.Put("  </graph>\n</graphml>\n");
  }

 private:
  void PutKey(const char* owner, std::string_view name, const char* type) {
    out_.Put("  <key id=\"{0}_{1}\" for=\"{0}\" attr.name=\"{1}\" attr.type=\"{2}\"/>\n", owner,
             name, type);
  }
  template <typename Value>
  void Data(const char* owner, std::string_view name, const Value& value) {
    out_.Put("<data key=\"{}_{}\">{}</data>", owner, name, value);
  }

  void WriteHeader() {
    out_.Put("    ");
    VisitExported(plan_.header(), [this](const PlanField& field, const auto& value) {
      if (const auto text = PlainText(field, value)) Data("graph", NameOf(field), EscapeXml(*text));
    });
    out_.Put("\n");
  }

  void WriteNodes(const Program& program) {
    uint32_t id = 0;
    for (const Op& op : plan_.ops(program)) {
      const Channel& channel = plan_.channels()[op.channel.index()];
      names_.emplace_back(program.node.value, id);
      out_.Put("    <node id=\"{}.{}\">", program.node.value, id);
      ListNode(plan_.header().payload, program.node, id++, op, channel, has_later_,
               [this](const char* name, const char*, const auto& value, bool is_there) {
                 if (is_there) Data("node", name, value);
               });
      out_.Put("</node>\n");
    }
  }

  void WriteEdges(const Program& program) {
    for (uint32_t i = 0; i < program.op_count; ++i) {
      const uint32_t op = program.op_begin + i;
      for (OpId before : plan_.after(plan_.ops()[op]))
        Edge(program.op_begin + before.value, op, "after");
      const uint32_t message = messages_.MessageOf(op);
      const bool is_send = plan_.ops()[op].is_send();
      if (is_send) Edge(op, messages_.recv(message), "message");
      if (message + 1 < messages_.ChannelEnd(plan_.ops()[op].channel))
        Edge(op, is_send ? messages_.send(message + 1) : messages_.recv(message + 1), "channel");
    }
  }

  void Edge(uint32_t from, uint32_t to, const char* order) {
    out_.Put("    <edge source=\"{}.{}\" target=\"{}.{}\">", names_[from].first,
             names_[from].second, names_[to].first, names_[to].second);
    Data("edge", "order", order);
    out_.Put("</edge>\n");
  }

  const Plan& plan_;
  const bool has_later_;
  const MessageTable messages_;
  TextWriter out_;
  std::vector<std::pair<uint32_t, uint32_t>> names_;  // op -> its node and id
};

}  // namespace

void WriteGraphml(const Plan& plan, std::ostream& out) { GraphmlWriter(plan, out).Run(); }

}  // namespace prepost
