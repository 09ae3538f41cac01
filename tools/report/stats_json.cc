// SPDX-License-Identifier: Apache-2.0
#include "tools/report/stats_json.h"

#include <nlohmann/json.hpp>

#include "tools/report/plan_text.h"

namespace prepost::tools {
namespace {

using Json = nlohmann::ordered_json;

template <typename Value>
Json ToJson(const Spread<Value>& spread) {
  return {{"min", spread.min}, {"median", spread.median}, {"max", spread.max}};
}

/// Exact below 2^64; above, the nearest number of 53 bits.
Json ToJson(const ByteSum& bytes) {
  const std::optional<uint64_t> exact = bytes.ToUint64();
  return exact ? Json(*exact) : Json(bytes.ToDouble());
}

Json LoadJson(const PlanStats& stats, Resource resource) {
  const ResourceLoad& load = stats.load.of(resource);
  Json json = {
      {"blocks", load.blocks}, {"bytes", ToJson(load.bytes)}, {"peak_blocks", load.peak_blocks}};
  if (stats.topology) json["seconds"] = load.seconds;
  return json;
}

Json NodesJson(const PlanStats& stats) {
  Json nodes = Json::array();
  for (uint32_t i = 0; i < stats.traffic.nodes.size(); ++i) {
    const NodeTraffic& node = stats.traffic.nodes[i];
    Json json = {{"node", i}, {"ops", node.ops}, {"queue_pairs", node.queue_pairs}};
    if (stats.topology) json["rack"] = stats.network.nodes[i].rack;
    json["peers_out"] = node.peers_out;
    json["peers_in"] = node.peers_in;
    json["out"] = LoadJson(stats, {ResourceKind::kNodeOut, i});
    json["in"] = LoadJson(stats, {ResourceKind::kNodeIn, i});
    json["last_round"] = node.last_round ? Json(*node.last_round) : Json();
    nodes.push_back(std::move(json));
  }
  return nodes;
}

Json ChannelsJson(const PlanStats& stats) {
  Json channels = Json::array();
  for (size_t c = 0; c < stats.traffic.channel_blocks.size(); ++c) {
    if (stats.traffic.channel_blocks[c] == 0) continue;
    const Channel& channel = stats.tables.plan().channels()[c];
    channels.push_back({{"from", channel.from.value},
                        {"to", channel.to.value},
                        {"lane", channel.lane},
                        {"blocks", stats.traffic.channel_blocks[c]},
                        {"bytes", stats.traffic.channel_bytes[c]}});
  }
  return channels;
}

Json BottlenecksJson(const PlanStats& stats) {
  Json all = Json::array();
  for (const Burden& burden : BurdensOf(stats)) {
    Json json;
    if (burden.resource) {
      json = {{"resource", Name(burden.resource->kind)}, {"index", burden.resource->index}};
      json.update(LoadJson(stats, *burden.resource));
    } else {
      json = {{"resource", "latency"},
              {"rounds", stats.tables.plan().header().rounds},
              {"seconds", burden.seconds}};
    }
    json["busy_share"] = burden.busy_share;
    all.push_back(std::move(json));
  }
  return all;
}

Json BoundJson(const RoundBound& bound) {
  return {{"rounds", bound.rounds},
          {"formula", bound.formula},
          {"because", bound.because},
          {"therefore", bound.therefore}};
}

/// Without racks there are no links that limit anything.
Json LinksBoundJson(const RoundBound& bound) {
  return bound.rounds == 0 ? Json() : BoundJson(bound);
}

Json LatencyBoundJson(const LatencyBound& bound) {
  Json json = {{"rounds", bound.rounds}, {"round_seconds", bound.round_seconds}};
  json["crossing_seconds"] = bound.crosses ? Json(bound.crossing_seconds) : Json();
  json["seconds"] = bound.seconds;
  return json;
}

Json GapJson(uint64_t found, uint64_t bound) {
  const Gap gap = GapOf(found, bound);
  return {{"rounds", gap.above}, {"percent", gap.percent}};
}

Json TopologyJson(const PlanStats& stats) {
  const uint64_t limited_bound = stats.limited_rounds_bound();
  const Crossings crossings = CrossingsOf(stats);
  Json cuts = Json::array();
  for (const CutBound& cut : stats.cuts) {
    cuts.push_back({{"cut", cut.cut},
                    {"copies", cut.copies},
                    {"bytes_per_second", cut.rate},
                    {"seconds", cut.seconds}});
  }
  Json racks = Json::array();
  for (uint32_t r = 0; r < stats.network.racks.size(); ++r) {
    racks.push_back({{"rack", stats.network.racks[r].name},
                     {"up", LoadJson(stats, {ResourceKind::kRackUp, r})},
                     {"down", LoadJson(stats, {ResourceKind::kRackDown, r})}});
  }
  return {{"name", *stats.topology},
          {"limited_rounds", stats.load.limited_rounds},
          {"limited_rounds_bound", limited_bound},
          {"limited_rounds_gap", GapJson(stats.load.limited_rounds, limited_bound)},
          {"links_bound", LinksBoundJson(stats.limited_bound)},
          {"modelled_seconds", stats.load.seconds},
          {"latency_seconds", stats.load.latency_seconds},
          {"seconds_bound", stats.seconds_bound()},
          {"latency_bound", LatencyBoundJson(stats.latency_bound)},
          {"cuts", std::move(cuts)},
          {"crossings",
           {{"min", crossings.min},
            {"mean", crossings.mean},
            {"max", crossings.max},
            {"needed", crossings.least},
            {"enters_racks_once", stats.load.enters_racks_once}}},
          {"racks", std::move(racks)}};
}

}  // namespace

Json StatsJson(const PlanStats& stats) {
  const Plan& plan = stats.tables.plan();
  const PlanHeader& header = plan.header();
  Json json = PlanJson(header);
  json["ports"] = header.ports;
  json["ops"] = plan.ops().size();
  json["channels"] = plan.channels().size();
  json["block_transfers"] = stats.traffic.blocks;
  json["credits"] = stats.traffic.credits;
  json["queue_pairs"] = ToJson(QueuePairsOf(stats.traffic));
  json["rounds"] = header.rounds;
  json["rounds_bound"] = BoundJson(stats.bound);
  json["rounds_gap"] = GapJson(header.rounds, stats.bound.rounds);
  json["depth"] = {{"blocks", stats.depth.blocks}, {"credits", stats.depth.credits}};
  json["critical_block_transfers"] = stats.critical_blocks;
  const std::optional<LastBlocks> last = LastBlocksOf(stats.traffic);
  json["last_block"] = last ? Json{{"first_round", last->first_round},
                                   {"first_node", last->first.value},
                                   {"last_round", last->last_round},
                                   {"last_node", last->last.value},
                                   {"skew", last->last_round - last->first_round}}
                            : Json();
  json["busiest"] = BottlenecksJson(stats);
  if (stats.topology) json["topology"] = TopologyJson(stats);
  json["per_node"] = NodesJson(stats);
  json["per_channel"] = ChannelsJson(stats);
  return json;
}

}  // namespace prepost::tools
