// SPDX-License-Identifier: Apache-2.0
#include "viz/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "backends/triggered/deferred_program.h"
#include "ir/analysis/event_times.h"
#include "ir/exchange/xml_text.h"
#include "ir/plan_tables.h"
#include "ir/version.h"
#include "runtime/program.h"
#include "viz/page_columns.h"
#include "viz/page_html.h"
#include "viz/queue_contents.h"
#include "viz/trace_picture.h"

namespace prepost::viz {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
/// What the page's lists of all nodes and channels say, its columns say as well.
constexpr const char* kListsOfStats[] = {"per_node", "per_channel"};

Json HeaderJson(const PlanHeader& header) {
  return {{"algorithm", header.algorithm},
          {"nodes", header.nodes},
          {"root", header.root.value},
          {"bytes", header.message.bytes},
          {"block_bytes", header.message.block_bytes},
          {"blocks", header.message.blocks},
          {"rounds", header.rounds},
          {"ports", header.ports},
          {"send_window", header.send_window ? Json(*header.send_window) : Json()},
          {"ready", {{"mode", Name(header.ready.mode)}, {"window", header.ready.window}}}};
}

Json RacksJson(const Network* network) {
  if (network == nullptr) return {};
  Json names = Json::array(), of = Json::array();
  for (const Network::Rack& rack : network->racks) names.push_back(rack.name);
  for (const Network::Node& node : network->nodes) of.push_back(node.rack);
  return {{"names", std::move(names)}, {"of", std::move(of)}};
}

Json PlaceJson(const std::optional<QueuePlace>& place) {
  if (!place) return {};
  return Json::array({place->queue, place->index});
}

Json QueuesJson(const std::vector<DrawnQueue>& queues) {
  Json all = Json::array();
  for (const DrawnQueue& queue : queues) {
    Json entries = Json::array();
    for (const DrawnEntry& entry : queue.entries) {
      entries.push_back({{"class", entry.css_class},
                         {"what", entry.what},
                         {"detail", entry.detail},
                         {"fields", entry.fields},
                         {"op", entry.op ? Json(entry.op->value) : Json()},
                         {"waits_for", PlaceJson(entry.waits_for)},
                         {"enables", PlaceJson(entry.enables)},
                         {"rearm", entry.rearm}});
    }
    all.push_back(
        {{"title", queue.title}, {"detail", queue.detail}, {"entries", std::move(entries)}});
  }
  return all;
}

size_t EntriesOf(const std::vector<DrawnQueue>& queues) {
  size_t count = 0;
  for (const DrawnQueue& queue : queues) count += queue.entries.size();
  return count;
}

/// The queues of nodes, while there is room for more.
class PageQueues {
 public:
  PageQueues(const VerifiedPlan& plan, const PageOptions& options)
      : plan_(plan), options_(options) {
    // Those that are asked for come first. Of two plans' sides, the other may have more nodes.
    std::vector<NodeId> nodes = options.selection.nodes;
    std::erase_if(nodes, [&](NodeId node) { return node.value >= plan.header().nodes; });
    for (uint32_t node = 0; node < plan.header().nodes; ++node) {
      if (!options.selection.HasNode(NodeId(node)) || options.selection.nodes.empty())
        nodes.emplace_back(node);
    }
    const size_t engines =
        size_t{options.engines.nic.has_value()} + options.engines.deferred + options.engines.cpu;
    for (const NodeId node : nodes) {
      // Each op has one entry or more with each engine.
      const size_t expected = engines * plan.ops(ProgramOf(plan, node)).size();
      if (entries_ + expected > kPageEntriesMax) {
        is_full_ = true;
      } else {
        AddNode(node);
      }
    }
  }

  Json TakeJson() { return std::move(json_); }
  /// Why some have none.
  std::string Note() const {
    std::vector<std::string> notes = refusals_;
    if (is_full_) {
      notes.push_back(
          fmt::format("a page holds {} entries of queues, and these would be more: draw with "
                      "--node or --engine "
                      "chooses others",
                      kPageEntriesMax));
    }
    return fmt::format("{}", fmt::join(notes, "; "));
  }

 private:
  void AddNode(NodeId node) {
    const Selection whole = {.nodes = {node}};
    const QueueEngines& engines = options_.engines;
    if (engines.nic) {
      nic::LowerOptions lower = *engines.nic;
      lower.node = node;
      const Result<nic::QueueProgram> program = nic::Lower(plan_, lower);
      if (!program.ok()) {
        Refuse("nic", program.status());
      } else {
        Add("nic", node, QueuesOfNic(plan_, whole, program->nodes.front(), /*has_fields=*/true));
      }
    }
    if (engines.deferred) {
      const auto program = triggered::LowerDeferred(plan_, node);
      if (!program.ok()) {
        Refuse("deferred", program.status());
      } else {
        Add("deferred", node, QueuesOfDeferredWork(plan_, whole, *program));
      }
    }
    if (engines.cpu) Add("cpu", node, QueuesOfCpu(plan_, whole, node));
  }
  void Add(const char* engine, NodeId node, const std::vector<DrawnQueue>& queues) {
    entries_ += EntriesOf(queues);
    json_.push_back({{"engine", engine}, {"node", node.value}, {"queues", QueuesJson(queues)}});
  }
  /// Once of each engine.
  void Refuse(const std::string& engine, const Status& status) {
    const auto is_of_it = [&](const std::string& text) { return text.starts_with(engine + ": "); };
    if (std::ranges::none_of(refusals_, is_of_it))
      refusals_.push_back(engine + ": " + status.message());
  }

  const VerifiedPlan& plan_;
  const PageOptions& options_;
  Json json_ = Json::array();
  std::vector<std::string> refusals_;
  size_t entries_ = 0;
  bool is_full_ = false;
};

void AddPlan(const PlanTables& tables, const EventTimes& times, const std::string& side,
             PageColumns* columns) {
  const Plan& plan = tables.plan();
  const auto add = [&](const char* name, const auto& range, const auto& value) {
    columns->Begin(side + name);
    for (const auto& it : range) columns->Add(static_cast<int64_t>(value(it)));
  };
  add("channel.from", plan.channels(), [](const Channel& it) { return it.from.value; });
  add("channel.to", plan.channels(), [](const Channel& it) { return it.to.value; });
  add("channel.lane", plan.channels(), [](const Channel& it) { return it.lane; });
  add("program.node", plan.programs(), [](const Program& it) { return it.node.value; });
  add("program.ops", plan.programs(), [](const Program& it) { return it.op_count; });
  add("op.channel", plan.ops(), [](const Op& it) { return it.channel.value; });
  add("op.block", plan.ops(),
      [](const Op& it) { return it.is_credit() ? int64_t{-1} : int64_t{it.block}; });
  add("op.round", plan.ops(), [](const Op& it) { return it.round; });
  add("op.grants", plan.ops(), [](const Op& it) { return it.grants; });
  add("op.afters", plan.ops(), [](const Op& it) { return it.after_count; });
  columns->Begin(side + "after");
  for (const Program& program : plan.programs()) {
    const std::span<const Op> ops = plan.ops(program);
    for (size_t i = 0; i < ops.size(); ++i) {
      for (const OpId before : plan.after(ops[i]))
        columns->Add(static_cast<int64_t>(i) - int64_t{before.value});
    }
  }
  const auto add_sends = [&](const char* name, const auto& value) {
    columns->Begin(side + name);
    for (uint32_t i = 0; i < plan.ops().size(); ++i) {
      if (plan.ops()[i].is_send())
        columns->Add(static_cast<int64_t>(value(tables.messages().MessageOf(i))));
    }
  };
  add_sends("send.start", [&](uint32_t message) { return times.StartOf(message); });
  add_sends("send.delivery", [&](uint32_t message) { return times.DeliveryOf(message); });
  add_sends("send.slack", [&](uint32_t message) { return times.SlackOf(message); });
}

void AddRun(const Plan& plan, const RunTrace& trace, const std::string& side,
            PageColumns* columns) {
  const auto add = [&](const char* name, uint64_t OpTimes::*time) {
    columns->Begin(side + name);
    for (const Program& program : plan.programs()) {
      for (const OpTimes& op : trace.times(program.node)) {
        // Since the start, and one more from there on; 0: not known.
        const auto since = static_cast<int64_t>(op.*time - trace.start_ns);
        columns->Add(op.*time == 0 ? 0 : since < 0 ? since : since + 1);
      }
    }
  };
  add("run.posted", &OpTimes::posted_ns);
  add("run.started", &OpTimes::started_ns);
  add("run.completed", &OpTimes::completed_ns);
}

Json RunJson(const Plan& plan, const PageRun& run) {
  Json hosts = Json::array();
  for (const TraceHost& host : run.info.hosts) {
    hosts.push_back({{"node", host.node.value},
                     {"posts", host.posts},
                     {"posts_during", host.posts_during},
                     {"wakeups", host.wakeups},
                     {"cpu_ns", host.cpu_ns}});
  }
  return {{"label", run.label},          {"executor", run.info.executor},
          {"detail", run.info.detail},   {"modelled", !run.trace->modelled.empty()},
          {"outcome", run.info.outcome}, {"duration_ns", RunDuration(plan, *run.trace)},
          {"hosts", std::move(hosts)}};
}

Json StatsJson(const std::string& stats) {
  if (stats.empty()) return {};
  Json figures = Json::parse(stats);
  for (const char* const list : kListsOfStats) figures.erase(list);
  return figures;
}

Json SideJson(const PageSide& side, const PageOptions& options, const std::string& prefix,
              PageColumns* columns) {
  const VerifiedPlan& plan = *side.plan;
  const PlanTables tables(plan);
  const EventTimes times(tables);
  AddPlan(tables, times, prefix, columns);
  if (side.run) AddRun(plan, *side.run->trace, prefix, columns);
  PageQueues queues(plan, options);
  Json json = {{"label", side.label},
               {"headline", Headline(plan.header())},
               {"subline", Subline(plan.header())},
               {"header", HeaderJson(plan.header())},
               {"length", times.length()},
               {"stats", StatsJson(side.stats)},
               {"racks", RacksJson(side.network)},
               {"run", side.run ? RunJson(plan, *side.run) : Json()},
               {"queues_note", queues.Note()}};
  json["queues"] = queues.TakeJson();
  return json;
}

Json FilterJson(const PageOptions& options) {
  const Selection& selection = options.selection;
  Json json = {{"view", options.view}, {"nodes", Json::array()}, {"blocks", selection.blocks}};
  for (const NodeId node : selection.nodes) json["nodes"].push_back(node.value);
  json["rounds"] =
      selection.rounds ? Json::array({selection.rounds->first, selection.rounds->last}) : Json();
  return json;
}

std::string Replaced(std::string text, std::string_view mark, std::string_view by) {
  const size_t at = text.find(mark);
  PREPOST_CHECK(at != std::string::npos);
  return text.replace(at, mark.size(), by);
}

}  // namespace

std::string Page(const std::vector<PageSide>& sides, const PageOptions& options) {
  PREPOST_CHECK(sides.size() == 1 || sides.size() == 2);
  for (const PageSide& side : sides) PREPOST_CHECK(side.plan->header().rounds <= kPageRoundsMax);
  PageColumns columns;
  Json all = Json::array();
  for (size_t i = 0; i < sides.size(); ++i)
    all.push_back(SideJson(sides[i], options, std::to_string(i) + ".", &columns));
  Json head = {{"version", kVersion}, {"generator", kGenerator}};
  head["columns"] = columns.Describe();
  head["first"] = FilterJson(options);
  head["sides"] = std::move(all);
  const std::string text =
      head.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  // The data first, which holds no marks: names may.
  std::string page = Replaced(std::string(PageHtml()), "@PREPOST_DATA@", PackPage(text, columns));
  return Replaced(std::move(page), "@PREPOST_TITLE@", EscapeXml(Headline(sides[0].plan->header())));
}

}  // namespace prepost::viz
