// SPDX-License-Identifier: Apache-2.0
#include "ir/exchange/graphml.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ir/exchange/xml_text.h"
#include "ir/messages.h"
#include "ir/plan_fields.h"
#include "ir/text_writer.h"

namespace prepost {
namespace {

struct Key {
  const char* owner;
  std::string name;
  const char* type;
};
/// Sizes and counts can be above 2^31, so they are long.
const Key kOpKeys[] = {
    {"node", "node", "int"},     {"node", "op", "long"},    {"node", "kind", "string"},
    {"node", "peer", "int"},     {"node", "lane", "long"},  {"node", "round", "long"},
    {"node", "block", "int"},    {"node", "bytes", "long"}, {"node", "grants", "long"},
    {"edge", "order", "string"},
};

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
    if constexpr (!std::is_same_v<decltype(value), const CollectiveKind&>) visit(field, value);
  });
}

class GraphmlWriter {
 public:
  GraphmlWriter(const Plan& plan, std::ostream& out) : plan_(plan), messages_(plan), out_(out) {}

  void Run() {
    out_.Put(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n");
    VisitExported(plan_.header(), [this](const PlanField& field, const auto& value) {
      PutKey({"graph", NameOf(field), TypeOf(field, value)});
    });
    for (const Key& key : kOpKeys) PutKey(key);
    out_.Put("  <graph id=\"plan\" edgedefault=\"directed\">\n");
    WriteHeader();
    for (const Program& program : plan_.programs()) WriteNodes(program);
    for (const Program& program : plan_.programs()) WriteEdges(program);
    out_.Put("  </graph>\n</graphml>\n");
  }

 private:
  void PutKey(const Key& key) {
    out_.Put("  <key id=\"{0}_{1}\" for=\"{0}\" attr.name=\"{1}\" attr.type=\"{2}\"/>\n", key.owner,
             key.name, key.type);
  }
  template <typename Value>
  void Data(const char* owner, std::string_view name, const Value& value) {
    out_.Put("<data key=\"{}_{}\">{}</data>", owner, name, value);
  }

  void WriteHeader() {
    out_.Put("    ");
    VisitExported(plan_.header(), [this](const PlanField& field, const auto& value) {
      if (const auto text = PlainText(value)) Data("graph", NameOf(field), EscapeXml(*text));
    });
    out_.Put("\n");
  }

  void WriteNodes(const Program& program) {
    uint32_t id = 0;
    for (const Op& op : plan_.ops(program)) {
      const Channel& channel = plan_.channels()[op.channel.index()];
      names_.emplace_back(program.node.value, id);
      out_.Put("    <node id=\"{}.{}\">", program.node.value, id);
      Data("node", "node", program.node.value);
      Data("node", "op", id++);
      Data("node", "kind",
           op.is_credit() ? (op.is_send() ? "send credit" : "recv credit") : Name(op.kind));
      Data("node", "peer", (op.is_send() ? channel.to : channel.from).value);
      Data("node", "lane", channel.lane);
      Data("node", "round", op.round);
      if (!op.is_credit()) {
        Data("node", "block", op.block);
        Data("node", "bytes", plan_.header().payload.BlockSize(op.block));
      }
      if (op.grants != 0) Data("node", "grants", op.grants);
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
  const MessageTable messages_;
  TextWriter out_;
  std::vector<std::pair<uint32_t, uint32_t>> names_;  // op -> its node and id
};

}  // namespace

void WriteGraphml(const Plan& plan, std::ostream& out) { GraphmlWriter(plan, out).Run(); }

}  // namespace prepost
