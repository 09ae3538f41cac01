// SPDX-License-Identifier: Apache-2.0
#include "viz/page_data/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "ir/analysis/event_times.h"
#include "ir/exchange/xml_text.h"
#include "ir/plan_fields.h"
#include "ir/plan_tables.h"
#include "ir/version.h"
#include "viz/page_data/page_collective.h"
#include "viz/page_data/page_columns.h"
#include "viz/page_data/page_html.h"
#include "viz/page_data/page_queues.h"
#include "viz/page_data/page_run.h"
#include "viz/plan/trace_picture.h"

namespace prepost::viz {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
/// What the page's lists of all nodes and channels say, its columns say as well.
constexpr const char* kListsOfStats[] = {"per_node", "per_channel"};

template <typename Value>
Json ValueJson(const PlanField& field, const Value& value) {
  Json json;
  if constexpr (HasFields<const Value>) {
    VisitFields(value, [&](const PlanField& inner, const auto& it) {
      if (IsLater(inner) && IsAbsent(inner, it)) return;
      json[inner.key] = ValueJson(inner, it);
    });
  } else if constexpr (std::is_same_v<Value, std::vector<uint64_t>>) {
    json = value;
  } else {
    const FieldValue plain = ValueOf(field, value);
    if (const auto* number = std::get_if<uint64_t>(&plain)) json = *number;
    if (const auto* text = std::get_if<std::string_view>(&plain)) json = *text;
  }
  return json;
}

Json HeaderJson(const PlanHeader& header) {
  Json json;
  VisitContent(header, [&](const PlanField& field, const auto& value) {
    if (IsLater(field) && IsAbsent(field, value)) return;
    json[field.key] = ValueJson(field, value);
  });
  return json;
}

Json RacksJson(const Network* network) {
  if (network == nullptr) return {};
  Json names = Json::array(), of = Json::array();
  for (const Network::Rack& rack : network->racks) names.push_back(rack.name);
  for (const Network::Node& node : network->nodes) of.push_back(node.rack);
  return {{"word", network->RackWord()}, {"names", std::move(names)}, {"of", std::move(of)}};
}

void AddPlan(const PlanTables& tables, const EventTimes& times, const std::string& side,
             PageColumns* columns) {
  const Plan& plan = tables.plan();
  const auto add = [&](const std::string& name, const auto& range, const auto& value) {
    columns->Begin(side + name);
    for (const auto& it : range) columns->Add(static_cast<int64_t>(value(it)));
  };
  // Which end of its channel an op's node is says whether it sends.
  const auto add_fields = [&]<typename It>(const std::string& name, std::span<const It> range) {
    ListColumns(std::type_identity<It>(), [&](const PlanField& field, auto get) {
      const auto is_absent = [&](const It& it) { return IsAbsent(field, get(it)); };
      if (IsLater(field) && std::ranges::all_of(range, is_absent)) return;
      add(name + field.key, range, [&](const It& it) {
        const uint64_t number = NumberOf(get(it));
        return number == field.null_value ? int64_t{-1} : static_cast<int64_t>(number);
      });
    });
  };
  add_fields("channel.", plan.channels());
  add("program.node", plan.programs(), [](const Program& it) { return it.node.value; });
  add("program.ops", plan.programs(), [](const Program& it) { return it.op_count; });
  add_fields("op.", plan.ops());
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

/// Of how many the run says when they were; null where it says nothing of that.
Json KnownWakeups(const TraceHost& host) {
  return host.wakeups > 0 && host.wakeups_ns.empty() ? Json() : Json(host.wakeups_ns.size());
}

Json RunJson(const Plan& plan, const PageRun& run) {
  Json hosts = Json::array();
  uint64_t until = 0, woken = 0;
  for (const TraceHost& host : run.info.hosts) {
    hosts.push_back({{"node", host.node.value},
                     {"posts", host.posts},
                     {"posts_during", host.posts_during},
                     {"wakeups", host.wakeups},
                     {"wakeups_known", KnownWakeups(host)},
                     {"cpu_ns", host.cpu_ns}});
    if (!host.wakeups_ns.empty() && host.wakeups_ns.back() > run.trace->start_ns)
      woken = std::max(woken, host.wakeups_ns.back() - run.trace->start_ns);
  }
  Json missing = Json::array();
  size_t receives = 0, known = 0;
  for (const Program& program : plan.programs()) {
    const std::span<const OpTimes> times = run.trace->times(program.node);
    for (size_t i = 0; i < times.size(); ++i) {
      for (const uint64_t time : {times[i].posted_ns, times[i].started_ns, times[i].completed_ns}) {
        if (time > run.trace->start_ns) until = std::max(until, time - run.trace->start_ns);
      }
      const Op& op = plan.ops(program)[i];
      if (op.is_send() || op.is_credit()) continue;
      ++receives;
      if (times[i].completed_ns != 0) ++known;
    }
    const bool is_missing = std::ranges::all_of(times, [](const OpTimes& op) {
      return op.posted_ns == 0 && op.started_ns == 0 && op.completed_ns == 0;
    });
    if (is_missing && !times.empty()) missing.push_back(program.node.value);
  }
  return {{"label", run.label},
          {"executor", run.info.executor},
          {"detail", run.info.detail},
          {"modelled", !run.trace->modelled.empty()},
          {"outcome", run.info.outcome},
          {"duration_ns", RunDuration(plan, *run.trace)},
          {"receives", receives},
          {"receives_known", known},
          {"nodes_missing", std::move(missing)},
          {"until_ns", until},
          {"wakeups_until_ns", woken},
          {"hosts", std::move(hosts)}};
}

Json StatsJson(const std::string& stats) {
  if (stats.empty()) return {};
  Json figures = Json::parse(stats);
  for (const char* const list : kListsOfStats) figures.erase(list);
  return figures;
}

Json SideJson(const PageSide& side, const PageOptions& options, const std::string& prefix,
              size_t bytes_of_run, PageColumns* columns) {
  const VerifiedPlan& plan = *side.plan;
  const PlanTables tables(plan);
  const EventTimes times(tables);
  AddPlan(tables, times, prefix, columns);
  AddCollective(tables, times, prefix, columns);
  Json run;
  if (side.run) {
    run = RunJson(plan, *side.run);
    run["step_ns"] = AddPageRun(tables, *side.run, prefix, bytes_of_run, columns);
  }
  PageQueues queues(plan, options, prefix, columns);
  Json json = {{"label", side.label},
               {"headline", Headline(plan.header())},
               {"subline", Subline(plan.header())},
               {"header", HeaderJson(plan.header())},
               {"collective", CollectiveJson(plan)},
               {"length", times.length()},
               {"stats", StatsJson(side.stats)},
               {"racks", RacksJson(side.network)},
               {"run", std::move(run)},
               {"queues_note", queues.Note()}};
  json["forms"] = queues.TakeForms();
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
  const auto runs = std::ranges::count_if(sides, [](const PageSide& it) { return !!it.run; });
  for (size_t i = 0; i < sides.size(); ++i) {
    all.push_back(SideJson(sides[i], options, std::to_string(i) + ".",
                           kPageRunBytesMax / std::max<size_t>(1, static_cast<size_t>(runs)),
                           &columns));
  }
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
