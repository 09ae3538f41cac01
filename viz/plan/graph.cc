// SPDX-License-Identifier: Apache-2.0
//
// Columns from left to right, two per round: in one the sends of round r and the credits that they
// wait for, in the next the receives of round r and the credits sent for round r + 1. So every
// dashed arrow joins neighbouring columns, and leaving a send on its right and entering a receive
// on its left, it crosses no box.
//
// Dot puts the clusters in an order of its own as soon as edges run between them. So it first
// places the boxes with the edges inside clusters only, when it keeps the order in which the
// clusters were made (from bottom to top); the dashed arrows are added then.
#include "viz/plan/graph.h"

#include <cgraph.h>
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <ranges>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/base/count.h"
#include "ir/credits.h"
#include "ir/exchange/xml_text.h"
#include "ir/messages.h"
#include "viz/plan/graphviz.h"
#include "viz/plan/graphviz_calls.h"
#include "viz/svg/palette.h"
#include "viz/svg/racks.h"
#include "viz/svg/svg.h"

namespace prepost::viz {
namespace {

constexpr std::string_view kSendFill = "#cfe2f7";
constexpr std::string_view kRecvFill = "#fde3c0";
constexpr std::string_view kMatchColor = "#1f6fb4";
constexpr std::string_view kAfterColor = "#333333";
constexpr std::string_view kCreditColor = "#b0b0b0";
constexpr std::string_view kCreditText = "#6b6b6b";

using Attributes = std::initializer_list<std::pair<const char*, std::string_view>>;

/// Graphviz 2.42 takes char* for strings that it copies.
char* Text(std::string_view text, std::string* storage) {
  *storage = std::string(text);
  return storage->data();
}

void Set(void* object, Attributes attributes) {
  std::string name;
  std::string value;
  std::string none;
  for (const auto& [key, text] : attributes) {
    Calls().agsafeset(object, Text(key, &name), Text(text, &value), Text("", &none));
  }
}

void SetDefaults(Agraph_t* graph, int kind, Attributes attributes) {
  std::string name;
  std::string value;
  for (const auto& [key, text] : attributes)
    Calls().agattr(graph, kind, Text(key, &name), Text(text, &value));
}

Agnode_t* AddNode(Agraph_t* graph, std::string_view name, Attributes attributes) {
  std::string storage;
  Agnode_t* node = Calls().agnode(graph, Text(name, &storage), 1);
  Set(node, attributes);
  return node;
}

Agraph_t* AddSubgraph(Agraph_t* graph, std::string_view name) {
  std::string storage;
  return Calls().agsubg(graph, Text(name, &storage), 1);
}

Agedge_t* AddEdge(Agraph_t* graph, Agnode_t* tail, Agnode_t* head, Attributes attributes) {
  Agedge_t* edge = Calls().agedge(graph, tail, head, nullptr, 1);
  Set(edge, attributes);
  return edge;
}

void SetHtmlLabel(Agraph_t* graph, std::string html) {
  // Marks the string as HTML; agsafeset() finds and shares it.
  char* label = Calls().agstrdup_html(graph, html.data());
  Set(graph, {{"label", label}});
  Calls().agstrfree(graph, label);
}

/// One op that is drawn.
struct DrawnOp {
  const Program* program = nullptr;
  OpId id;
  Agnode_t* box = nullptr;
};

/// Which ops are drawn: both ends of every selected message. Keyed by the position in Plan::ops(),
/// so program by program.
using DrawnOps = std::map<uint32_t, DrawnOp>;

class Drawing {
 public:
  Drawing(const Plan& plan, const Selection& selection, const Network* network)
      : plan_(plan), selection_(selection), racks_(network), messages_(plan) {
    Select();
  }

  size_t ops() const { return drawn_.size(); }
  /// Everything but the matches; they are added to the same graph by AddMatches().
  GraphPtr Build();
  void AddMatches(Agraph_t* graph) const;

 private:
  void Select();
  bool IsSelected(uint32_t message) const;
  bool ShowsNode(const Program& program) const;
  void AddClusters(Agraph_t* graph);
  void AddCluster(Agraph_t* graph, const Program& program);
  void AddBox(Agraph_t* cluster, uint32_t position, DrawnOp* drawn);
  void AddColumns(Agraph_t* graph) const;
  void AddAfters(Agraph_t* graph) const;
  void AddCaption(Agraph_t* graph) const;
  const Channel& ChannelOf(const Op& op) const { return plan_.channels()[op.channel.index()]; }

  const Plan& plan_;
  const Selection& selection_;
  Racks racks_;
  MessageTable messages_;
  std::vector<uint32_t> drawn_messages_;
  DrawnOps drawn_;
};

bool Drawing::IsSelected(uint32_t message) const {
  const Op& op = plan_.ops()[messages_.send(message)];
  const Channel& channel = ChannelOf(op);
  return selection_.HasRound(op.round) && selection_.HasSome(op) &&
         (selection_.HasNode(channel.from) || selection_.HasNode(channel.to));
}

void Drawing::Select() {
  const CreditTable credits(plan_, messages_);
  std::vector<bool> selected(messages_.size(), false);
  for (uint32_t message = 0; message < messages_.size(); ++message) {
    const Op& op = plan_.ops()[messages_.send(message)];
    if (op.is_credit() || !IsSelected(message)) continue;
    selected[message] = true;
    const uint32_t partner = credits.Partner(op.channel);
    if (partner == CreditTable::kNone) continue;
    const uint32_t position = message - messages_.ChannelBegin(op.channel);
    const uint32_t credit = credits.CreditFor(ChannelId(partner), position);
    if (credit != CreditTable::kNone) selected[credit] = true;
  }
  for (uint32_t message = 0; message < messages_.size(); ++message) {
    if (!selected[message]) continue;
    drawn_messages_.push_back(message);
    drawn_[messages_.send(message)] = {};
    drawn_[messages_.recv(message)] = {};
  }
  for (const Program& program : plan_.programs()) {
    const uint32_t end = program.op_begin + program.op_count;
    for (auto it = drawn_.lower_bound(program.op_begin); it != drawn_.end() && it->first < end;
         ++it) {
      it->second = {.program = &program, .id = OpId(it->first - program.op_begin), .box = nullptr};
    }
  }
}

/// Without a selection all nodes are shown, else those with something to show and those asked for.
bool Drawing::ShowsNode(const Program& program) const {
  if (selection_.all() || (!selection_.nodes.empty() && selection_.HasNode(program.node)))
    return true;
  const auto first = drawn_.lower_bound(program.op_begin);
  return first != drawn_.end() && first->first < program.op_begin + program.op_count;
}

GraphPtr Drawing::Build() {
  GraphPtr graph = NewGraph();
  SetDefaults(graph.get(), AGRAPH,
              {{"rankdir", "LR"},
               {"newrank", "true"},
               {"nodesep", "0.1"},
               {"ranksep", "0.55"},
               {"fontname", "sans-serif"},
               {"fontsize", "12"},
               {"outputorder", "edgesfirst"},
               {"pad", "0.1"}});
  SetDefaults(graph.get(), AGNODE,
              {{"label", ""},
               {"shape", "box"},
               {"style", "filled"},
               {"fontname", "sans-serif"},
               {"fontsize", "11"},
               {"height", "0.25"},
               {"margin", "0.05,0.02"}});
  SetDefaults(graph.get(), AGEDGE, {{"arrowsize", "0.6"}});
  AddCaption(graph.get());
  AddClusters(graph.get());
  AddColumns(graph.get());
  AddAfters(graph.get());
  return graph;
}

/// From bottom to top; where racks are known, their clusters are, and each one's nodes, a level
/// below, from top to bottom: dot turns the order around at each level.
void Drawing::AddClusters(Agraph_t* graph) {
  std::vector<Program> shown;
  for (const Program& program : plan_.programs()) {
    if (ShowsNode(program)) shown.push_back(program);
  }
  const std::vector<RackBand> bands = racks_.Arrange(shown);
  if (!racks_.known()) {
    for (const Program& program : std::views::reverse(shown)) AddCluster(graph, program);
  }
  for (const RackBand& band : std::views::reverse(bands)) {
    Agraph_t* rack =
        AddSubgraph(graph, fmt::format("cluster_rack{}", shown[band.begin].node.value));
    Set(rack, {{"style", "solid"}, {"color", "#222222"}, {"margin", "10"}, {"labeljust", "l"}});
    SetHtmlLabel(rack, fmt::format("<b>{}</b>", EscapeXml(band.name)));
    for (size_t i = band.begin; i < band.end; ++i) AddCluster(rack, shown[i]);
  }
}

void Drawing::AddCluster(Agraph_t* graph, const Program& program) {
  const uint32_t node = program.node.value;
  const bool root = plan_.header().collective.IsRoot(program.node);
  Agraph_t* cluster = AddSubgraph(graph, fmt::format("cluster_n{}", node));
  Set(cluster, {{"label", ""},
                {"id", fmt::format("n{}", node)},
                {"style", "filled"},
                {"margin", "6"},
                {"fillcolor", root ? "#e4e8ee" : "#f4f4f4"},
                {"color", "#999999"}});
  const double width = TextWidth(fmt::format("node {} (root)", plan_.header().nodes - 1), 14);
  AddNode(cluster, fmt::format("label{}", node),
          {{"label", fmt::format("node {}{}", node, root ? " (root)" : "")},
           {"shape", "plaintext"},
           {"style", "solid"},
           {"fontsize", "14"},
           {"width", fmt::format("{:.2f}", width / 72 + 0.15)}});
  AddNode(cluster, fmt::format("end{}", node),
          {{"shape", "point"}, {"style", "invis"}, {"width", "0.01"}, {"height", "0.01"}});
  const uint32_t end = program.op_begin + program.op_count;
  for (auto it = drawn_.lower_bound(program.op_begin); it != drawn_.end() && it->first < end;
       ++it) {
    AddBox(cluster, it->first, &it->second);
  }
}

void Drawing::AddBox(Agraph_t* cluster, uint32_t position, DrawnOp* drawn) {
  const Op& op = plan_.ops()[position];
  const Channel& channel = ChannelOf(op);
  const std::string id = fmt::format("n{}o{}", drawn->program->node.value, drawn->id.value);
  const std::string_view way = op.is_send() ? "to" : "from";
  const uint32_t peer = op.is_send() ? channel.to.value : channel.from.value;
  const std::string label =
      op.is_credit() ? fmt::format("credit {} {}", way, peer)
                     : fmt::format("{} b{}{} {} {}", Name(op.kind), op.block,
                                   op.count == 1 ? "" : fmt::format("-{}", op.block + op.count - 1),
                                   way, peer);
  drawn->box = AddNode(
      cluster, id,
      {{"id", id},
       {"label", label},
       {"tooltip", fmt::format("{}, round {}", prepost::Describe(plan_, *drawn->program, drawn->id),
                               op.round)},
       {"style", op.is_send() ? "filled" : "rounded,filled"},
       {"fillcolor", op.is_credit() ? "#ffffff"
                     : op.is_send() ? kSendFill
                                    : kRecvFill},
       {"color", op.is_credit() ? kCreditColor : kAfterColor},
       {"fontcolor", op.is_credit() ? kCreditText : "#000000"}});
}

/// An invisible chain of columns, headed by the numbers of the rounds, keeps the ops of one column
/// in one rank.
void Drawing::AddColumns(Agraph_t* graph) const {
  std::map<uint64_t, std::vector<Agnode_t*>> columns;
  for (const auto& [position, drawn] : drawn_) {
    const Op& op = plan_.ops()[position];
    const uint64_t sends = 2 * uint64_t{op.round} + 1;
    const uint64_t column =
        op.is_credit() ? sends - (op.is_send() ? 1 : 0) : sends + (op.is_send() ? 0 : 1);
    columns[column].push_back(drawn.box);
  }
  const auto add_rank = [&](const std::string& name, std::string_view label,
                            const std::vector<Agnode_t*>& nodes) {
    Agraph_t* rank = AddSubgraph(graph, "rank_" + name);
    Set(rank, {{"rank", "same"}});
    Agnode_t* header =
        AddNode(rank, name,
                {{"label", label}, {"shape", "plaintext"}, {"style", "solid"}, {"fontsize", "14"}});
    for (Agnode_t* node : nodes) Calls().agsubnode(rank, node, 1);
    return header;
  };
  std::vector<Agnode_t*> labels;
  std::vector<Agnode_t*> ends;
  std::string name;
  for (const Program& program : plan_.programs()) {
    if (!ShowsNode(program)) continue;
    labels.push_back(
        Calls().agnode(graph, Text(fmt::format("label{}", program.node.value), &name), 0));
    ends.push_back(Calls().agnode(graph, Text(fmt::format("end{}", program.node.value), &name), 0));
  }
  Agnode_t* first = add_rank("column_labels", "", labels);
  Agnode_t* last = first;
  const auto chain = [&](Agnode_t* next) {
    AddEdge(graph, last, next, {{"style", "invis"}});
    last = next;
  };
  for (const auto& [column, nodes] : columns) {
    const std::string title = column % 2 == 1 ? fmt::format("round {}", column / 2) : "";
    chain(add_rank(fmt::format("column{}", column), title, nodes));
  }
  chain(add_rank("column_ends", "", ends));
  for (size_t i = 0; i < labels.size(); ++i) {
    AddEdge(graph, labels[i], ends[i], {{"style", "invis"}, {"weight", "0"}});
  }
}

void Drawing::AddAfters(Agraph_t* graph) const {
  for (const auto& [position, drawn] : drawn_) {
    for (OpId before : plan_.after(plan_.ops()[position])) {
      const auto found = drawn_.find(drawn.program->op_begin + before.value);
      if (found == drawn_.end()) continue;
      AddEdge(graph, found->second.box, drawn.box,
              {{"id", fmt::format("{}_{}", Calls().agnameof(found->second.box),
                                  Calls().agnameof(drawn.box))},
               {"class", "after"},
               {"color", kAfterColor},
               {"constraint", "false"},
               {"weight", "8"}});
    }
  }
}

void Drawing::AddMatches(Agraph_t* graph) const {
  for (uint32_t message : drawn_messages_) {
    const bool credit = plan_.ops()[messages_.send(message)].is_credit();
    Agnode_t* send = drawn_.at(messages_.send(message)).box;
    Agnode_t* recv = drawn_.at(messages_.recv(message)).box;
    const Channel& channel = ChannelOf(plan_.ops()[messages_.send(message)]);
    Agedge_t* edge =
        AddEdge(graph, send, recv,
                {{"id", fmt::format("{}_{}", Calls().agnameof(send), Calls().agnameof(recv))},
                 {"class", credit ? "credit" : "match"},
                 {"style", "dashed"},
                 {"color", credit ? kCreditColor : kMatchColor},
                 {"constraint", "false"},
                 {"tailport", "e"},
                 {"headport", "w"}});
    if (!credit && racks_.Cross(channel.from, channel.to)) {
      Set(edge, {{"class", "match cross"}, {"color", Hex(kCrossingColor)}, {"penwidth", "2.5"}});
    }
  }
}

/// The lines above the graph and its legend, as one table: Graphviz places a graph's label as a
/// whole.
void Drawing::AddCaption(Agraph_t* graph) const {
  const auto box = [](std::string_view fill, std::string_view color, std::string_view style,
                      std::string_view text) {
    return fmt::format("<td border=\"1\" bgcolor=\"{}\" color=\"{}\" style=\"{}\">{}</td>", fill,
                       color, style, text);
  };
  const auto line = [](std::string_view color, std::string_view style, std::string_view text,
                       int width = 1) {
    return fmt::format(
        "<td><table border=\"0\" cellspacing=\"0\" cellpadding=\"0\"><tr><td border=\"{}\" "
        "sides=\"b\" "
        "width=\"36\" height=\"7\" color=\"{}\" style=\"{}\"></td></tr><tr><td "
        "height=\"7\"></td></tr>"
        "</table></td><td align=\"left\">{}</td>",
        width, color, style, text);
  };
  std::string shown = Describe(selection_);
  if (!shown.empty())
    shown += fmt::format(": {} of {}", drawn_.size(), Count(plan_.ops().size(), "op"));
  shown = racks_.WithNote(std::move(shown), plan_, selection_);
  if (plan_.ops().empty()) shown = "one node: it has the whole message and nothing is sent";
  std::string legend = box(kSendFill, kAfterColor, "solid", "send b2 to 5") +
                       box(kRecvFill, kAfterColor, "rounded", "recv b2 from 1") +
                       line(kMatchColor, "dashed", "a send and its receive") +
                       line(kAfterColor, "solid", "after: starts when that has completed");
  if (std::ranges::any_of(plan_.ops(), &Op::is_credit)) {
    legend += box("#ffffff", kCreditColor, "solid", "credit to 3: my receive is posted") +
              line(kCreditColor, "dashed", "a credit on its way");
  }
  if (racks_.known()) {
    legend += line(Hex(kCrossingColor), "dashed",
                   fmt::format("a send and its receive in another {}", racks_.word()), 3);
  }
  std::string html = fmt::format(
      "<table border=\"0\" cellspacing=\"4\" cellpadding=\"3\">"
      "<tr><td colspan=\"16\" align=\"left\"><font point-size=\"18\">{}</font></td></tr>"
      "<tr><td colspan=\"16\" align=\"left\">{}{}{}</td></tr><tr>{}<td> </td></tr></table>",
      EscapeXml(Headline(plan_.header())), EscapeXml(Subline(plan_.header())),
      shown.empty() ? "" : "; ", EscapeXml(shown), legend);
  Set(graph, {{"labelloc", "t"}, {"labeljust", "l"}});
  SetHtmlLabel(graph, std::move(html));
}

}  // namespace

Result<std::string> DrawGraph(const Plan& plan, const Selection& selection, GraphFormat format,
                              const Network* network) {
  Drawing drawing(plan, selection, network);
  if (drawing.ops() > kGraphOpsMax || (selection.all() && plan.header().nodes > kGraphOpsMax)) {
    return Rejected(
        fmt::format("a graph of {} ops at {} nodes is not readable, the limit is {} of either: "
                    "narrow it with --node, --block or "
                    "--rounds first:last, or use --view spacetime",
                    drawing.ops(), plan.header().nodes, kGraphOpsMax));
  }
  PREPOST_RETURN_IF_ERROR(LoadGraphviz());
  const GraphPtr graph = drawing.Build();
  if (format == GraphFormat::kDot) {
    drawing.AddMatches(graph.get());
    return WriteDot(graph.get());
  }
  Graphviz graphviz;
  PREPOST_RETURN_IF_ERROR(graphviz.Place(graph.get()));
  Set(graph.get(), {{"splines", "line"}});
  drawing.AddMatches(graph.get());
  return graphviz.RenderPlaced(graph.get());
}

}  // namespace prepost::viz
