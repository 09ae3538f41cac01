// SPDX-License-Identifier: Apache-2.0
#include "ir/exchange/graphml.h"

#include <vector>

#include "ir/exchange/xml_text.h"
#include "ir/messages.h"
#include "ir/text_writer.h"

namespace prepost {
namespace {

struct Key {
  const char* owner;
  const char* name;
  const char* type;
};
/// Sizes and counts can be above 2^31, so they are long.
constexpr Key kKeys[] = {
    {"graph", "algorithm", "string"}, {"graph", "nodes", "int"},
    {"graph", "root", "int"},         {"graph", "message_bytes", "long"},
    {"graph", "block_bytes", "long"}, {"graph", "blocks", "int"},
    {"graph", "ready", "string"},     {"graph", "send_window", "long"},
    {"graph", "rounds", "long"},      {"graph", "ports", "long"},
    {"node", "node", "int"},          {"node", "op", "long"},
    {"node", "kind", "string"},       {"node", "peer", "int"},
    {"node", "lane", "long"},         {"node", "round", "long"},
    {"node", "block", "int"},         {"node", "bytes", "long"},
    {"node", "grants", "long"},       {"edge", "order", "string"},
};

class GraphmlWriter {
 public:
  GraphmlWriter(const Plan& plan, std::ostream& out) : plan_(plan), messages_(plan), out_(out) {}

  void Run() {
    out_.Put(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n");
    for (const Key& key : kKeys) {
      out_.Put("  <key id=\"{0}_{1}\" for=\"{0}\" attr.name=\"{1}\" attr.type=\"{2}\"/>\n",
               key.owner, key.name, key.type);
    }
    out_.Put("  <graph id=\"plan\" edgedefault=\"directed\">\n");
    WriteHeader();
    for (const Program& program : plan_.programs()) WriteNodes(program);
    for (const Program& program : plan_.programs()) WriteEdges(program);
    out_.Put("  </graph>\n</graphml>\n");
  }

 private:
  template <typename Value>
  void Data(const char* owner, const char* name, const Value& value) {
    out_.Put("<data key=\"{}_{}\">{}</data>", owner, name, value);
  }

  void WriteHeader() {
    const PlanHeader& header = plan_.header();
    out_.Put("    ");
    Data("graph", "algorithm", EscapeXml(header.algorithm));
    Data("graph", "nodes", header.nodes);
    Data("graph", "root", header.collective.root.value);
    Data("graph", "message_bytes", header.payload.bytes);
    Data("graph", "block_bytes", header.payload.block_bytes);
    Data("graph", "blocks", header.payload.blocks);
    Data("graph", "ready", ToString(header.ready));
    if (header.send_window) Data("graph", "send_window", *header.send_window);
    Data("graph", "rounds", header.rounds);
    Data("graph", "ports", header.ports);
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
