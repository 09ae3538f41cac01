// SPDX-License-Identifier: Apache-2.0
#include "planning/flags/noise_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "ir/json/rate_text.h"
#include "ir/plan.h"
#include "planning/flags/values.h"
#include "sim/cluster/profile.h"
#include "sim/nics/time.h"

namespace prepost {
namespace {

constexpr uint64_t kDrawnPairsMax = uint64_t{1} << 24;  ///< of hosts, by --slow random

/// `why` may say itself what was expected of a part.
Status Bad(const char* flag, const std::string& text, const std::string& why, const char* form) {
  return {StatusCode::kUsage, fmt::format("{}: '{}': {}; the form is {}", flag, text, why, form)};
}

/// `node` is not one of `nodes`: `bad`, or where it is the number of a node, a status that another
/// plan would not have.
Status NoNode(Status (*bad)(const std::string& text, const std::string& why),
              const std::string& text, const std::string& node, uint32_t nodes) {
  Status status = bad(text, fmt::format("no node '{}', the nodes are 0 to {}", node, nodes - 1));
  const std::optional<uint32_t> number = NumberOf<uint32_t>(node);
  if (!number || *number >= kNodesMax) return status;
  return Rejected(status.message());
}

Status BadSlow(const std::string& text, const std::string& why) {
  return Bad("--slow", text, why, "2->5=0.5, 3=0.5 or random=0.05,factor=0.5");
}

/// Uniform in [0, 1), of a pair under a seed: SplitMix64 (Steele, Lea and Flood 2014) of both.
double Draw(uint64_t seed, NodeId from, NodeId to) {
  const auto mix = [](uint64_t z) {
    z += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  };
  const uint64_t bits = mix(mix(seed) ^ (uint64_t{from.value} << 32 | to.value));
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

/// Reads all --slow and then changes a network.
class SlowReader {
 public:
  SlowReader(uint64_t seed, const Network& network)
      : seed_(seed), network_(network), nodes_(static_cast<uint32_t>(network.nodes.size())) {}

  Status Read(const std::string& text) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) return BadSlow(text, "no factor");
    const std::string_view what = std::string_view(text).substr(0, equals);
    const std::string_view value = std::string_view(text).substr(equals + 1);
    if (what == "random") return ReadRandom(text, value);
    const std::optional<double> factor = NumberOf<double>(value);
    if (!factor || !(*factor > 0 && *factor <= 1)) return BadFactor(text, value);
    const size_t arrow = what.find("->");
    const std::optional<uint32_t> from = NumberOf<uint32_t>(what.substr(0, arrow));
    if (!from || *from >= nodes_) return BadNode(text, what.substr(0, arrow));
    if (arrow == std::string_view::npos) {
      if (!slow_nodes_.emplace(*from, *factor).second)
        return BadSlow(text, fmt::format("node {} is there twice", *from));
      return {};
    }
    const std::optional<uint32_t> to = NumberOf<uint32_t>(what.substr(arrow + 2));
    if (!to || *to >= nodes_) return BadNode(text, what.substr(arrow + 2));
    if (from == to) return BadSlow(text, "a node sends nothing to itself");
    if (!pairs_.emplace(std::pair(NodeId(*from), NodeId(*to)), *factor).second)
      return BadSlow(text, fmt::format("the pair {}->{} is there twice", *from, *to));
    return {};
  }

  void Apply(Network* network) {
    for (uint32_t from = 0; random_ && from < nodes_; ++from) {
      for (uint32_t to = 0; to < nodes_; ++to) {
        const std::pair pair{NodeId(from), NodeId(to)};
        if (from == to || Draw(seed_, pair.first, pair.second) >= random_->probability) continue;
        const auto [it, is_new] = pairs_.emplace(pair, random_->factor);
        if (!is_new) it->second = std::min(it->second, random_->factor);
      }
    }
    for (const auto& [pair, factor] : pairs_) {
      const double rate = std::min(network_.nodes[pair.first.index()].out_rate,
                                   network_.nodes[pair.second.index()].in_rate);
      network->pairs.push_back({pair.first, pair.second, rate * factor});
    }
    for (const auto& [node, factor] : slow_nodes_) {
      Network::Node& slow = network->nodes[node];
      slow.out_rate *= factor;
      slow.in_rate *= factor;
      if (slow.duplex_rate) *slow.duplex_rate *= factor;
    }
  }

 private:
  struct Random {
    double probability = 0;
    double factor = 1;
  };

  static Status BadFactor(const std::string& text, std::string_view value) {
    return BadSlow(text, fmt::format("the factor '{}' is not above 0 and at most 1", value));
  }
  Status BadNode(const std::string& text, std::string_view value) const {
    return NoNode(BadSlow, text, std::string(value), nodes_);
  }

  Status ReadRandom(const std::string& text, std::string_view value) {
    if (random_) return BadSlow(text, "random is there twice");
    if (const uint64_t pairs = uint64_t{nodes_} * nodes_; pairs > kDrawnPairsMax) {
      return Rejected(fmt::format("--slow random: {} hosts have {} pairs, the limit is {}", nodes_,
                                  pairs, kDrawnPairsMax));
    }
    constexpr std::string_view kFactor = ",factor=";
    const size_t comma = value.find(kFactor);
    if (comma == std::string_view::npos) return BadSlow(text, "no factor");
    const std::optional<double> probability = NumberOf<double>(value.substr(0, comma));
    if (!probability || !(*probability >= 0 && *probability <= 1)) {
      return BadSlow(
          text, fmt::format("the probability '{}' is not from 0 to 1", value.substr(0, comma)));
    }
    value.remove_prefix(comma + kFactor.size());
    const std::optional<double> factor = NumberOf<double>(value);
    if (!factor || !(*factor > 0 && *factor <= 1)) return BadFactor(text, value);
    random_ = {*probability, *factor};
    return {};
  }

  const uint64_t seed_;
  const Network network_;  // as it was
  const uint32_t nodes_;
  std::optional<Random> random_;
  std::map<std::pair<NodeId, NodeId>, double> pairs_;
  std::map<uint32_t, double> slow_nodes_;
};

Status BadDelay(const std::string& text, const std::string& why) {
  return Bad("--delay", text, why, "node=3,at=2ms,for=100us");
}

/// The time of a --delay, "2ms".
Result<emulated::Picoseconds> DelayTime(const std::string& text, const std::string& value) {
  constexpr double kSecondsMax = 1e6;
  const Result<double> seconds = ParseLatency(value);
  if (!seconds.ok()) return BadDelay(text, seconds.status().message());
  if (*seconds > kSecondsMax) return BadDelay(text, "too long a time");
  return sim::FromSeconds(*seconds);
}

/// "node=3,at=2ms,for=100us", in any order, of a host below `nodes`.
Result<sim::HostDelay> ParseDelay(const std::string& text, uint32_t nodes) {
  const auto parts = ParseParts(text, {"node", "at", "for"});
  if (!parts.ok()) return BadDelay(text, parts.status().message());
  if (parts->size() != 3) return BadDelay(text, "a part is missing");
  const std::string& host = parts->at("node");
  const std::optional<uint32_t> node = NumberOf<uint32_t>(host);
  if (!node || *node >= nodes) return NoNode(BadDelay, text, host, nodes);
  const Result<emulated::Picoseconds> at = DelayTime(text, parts->at("at"));
  if (!at.ok()) return at.status();
  const Result<emulated::Picoseconds> length = DelayTime(text, parts->at("for"));
  if (!length.ok()) return length.status();
  return sim::HostDelay{.host = NodeId(*node), .at = *at, .length = *length};
}

Status BadNeighbours(const std::string& text, const std::string& why) {
  return Bad("--neighbours", text, why, "count=1,slice=4ms or node=3,count=1,slice=4ms");
}

/// One --neighbours, as far as it can be said without knowing the hosts.
struct NeighboursText {
  std::optional<std::string> node;
  uint32_t count = 0;
  std::string slice;  ///< a time
};

Result<NeighboursText> ParseNeighbours(const std::string& text) {
  Result<std::map<std::string, std::string>> parts = ParseParts(text, {"node", "count", "slice"});
  if (!parts.ok()) return BadNeighbours(text, parts.status().message());
  std::map<std::string, std::string>& values = *parts;
  if (!values.contains("count") || !values.contains("slice"))
    return BadNeighbours(text, "a part is missing");
  NeighboursText it = {.slice = values["slice"]};
  const std::optional<uint32_t> count = NumberOf<uint32_t>(values["count"]);
  if (!count || *count > sim::kNeighboursMax) {
    return BadNeighbours(text, fmt::format("the count '{}' is no whole number up to {}",
                                           values["count"], sim::kNeighboursMax));
  }
  it.count = *count;
  const Result<double> slice = ParseLatency(it.slice);
  if (!slice.ok()) return BadNeighbours(text, slice.status().message());
  if (*slice < 1e-9 || *slice > sim::kProfileSecondsMax)
    return BadNeighbours(text, "a slice is 1ns to an hour");
  if (values.contains("node")) it.node = values["node"];
  return it;
}

}  // namespace

void NoiseFlags::AddTo(CLI::App& command) {
  command
      .add_option("--delay", delays,
                  "A host stands still: node=3,at=2ms,for=100us; may be given again")
      ->type_name("D")
      ->allow_extra_args(false);
  command
      .add_option("--slow", slow,
                  "A slow path, 2->3=0.5 of its rate; a slow node, 3=0.5; or some paths, drawn by "
                  "--seed: random=0.05,factor=0.5; may be given again")
      ->type_name("S")
      ->allow_extra_args(false);
  command
      .add_option("--preempt", preempt,
                  "Something else takes cores at random, in place of the profile's: "
                  "rate=100,for=100us (per second of a core), lengths=exponential")
      ->type_name("P");
  command
      .add_option("--neighbours", neighbours,
                  "Processes that always want the cores, of all hosts, count=1,slice=4ms, or of "
                  "one, node=3,count=1,slice=4ms; may be given again")
      ->type_name("B")
      ->allow_extra_args(false);
}

Status NoiseFlags::Slow(uint64_t seed, Network* network) const {
  if (slow.empty()) return {};
  SlowReader reader(seed, *network);
  for (const std::string& text : slow) PREPOST_RETURN_IF_ERROR(reader.Read(text));
  reader.Apply(network);
  return {};
}

Result<std::vector<sim::HostDelay>> NoiseFlags::Delays(uint32_t hosts) const {
  std::vector<sim::HostDelay> found;
  for (const std::string& text : delays) {
    const Result<sim::HostDelay> delay = ParseDelay(text, hosts);
    if (!delay.ok()) return delay.status();
    found.push_back(*delay);
  }
  return found;
}

Result<std::vector<ProfileSetting>> NoiseFlags::Settings() const {
  std::vector<ProfileSetting> settings;
  for (const std::string& text : neighbours) {
    const Result<NeighboursText> it = ParseNeighbours(text);
    if (!it.ok()) return it.status();
    if (it->node) continue;
    if (!settings.empty()) return BadNeighbours(text, "all hosts are there twice");
    settings.push_back(
        {"--neighbours " + text, fmt::format("host.neighbours.count={}", it->count)});
    settings.push_back({"--neighbours " + text, "host.neighbours.slice=" + it->slice});
  }
  if (preempt.empty()) return settings;
  const auto bad = [this](const std::string& why) {
    return Bad("--preempt", preempt, why,
               "rate=100,for=100us or rate=100,for=100us,lengths=exponential");
  };
  Result<std::map<std::string, std::string>> parts =
      ParseParts(preempt, {"rate", "for", "lengths"});
  if (!parts.ok()) return bad(parts.status().message());
  std::map<std::string, std::string>& values = *parts;
  if (!values.contains("rate") || !values.contains("for")) return bad("a part is missing");
  const std::optional<double> per_second = NumberOf<double>(values["rate"]);
  if (!per_second) return bad("the rate is no number");
  if (*per_second < sim::kPreemptionRateMin || *per_second > sim::kPreemptionRateMax) {
    return bad(fmt::format("the rate is not from {} to {}", sim::kPreemptionRateMin,
                           sim::kPreemptionRateMax));
  }
  const Result<double> seconds = ParseLatency(values["for"]);
  if (!seconds.ok()) return bad(seconds.status().message());
  if (*seconds > sim::kProfileSecondsMax) {
    return bad(fmt::format("{} is too long, the limit is {}", WriteLatency(*seconds),
                           WriteLatency(sim::kProfileSecondsMax)));
  }
  const std::string lengths = values.contains("lengths") ? values["lengths"] : "fixed";
  if (lengths != "fixed" && lengths != "exponential")
    return bad(fmt::format("'{}' is neither fixed nor exponential", lengths));
  for (const std::string& it :
       {"host.preemption.rate=" + values["rate"], "host.preemption.length=" + values["for"],
        "host.preemption.lengths=" + lengths}) {
    settings.push_back({"--preempt " + preempt, it});
  }
  return settings;
}

std::vector<std::string> NoiseFlags::OfHosts() const {
  std::vector<std::string> flags;
  if (!delays.empty()) flags.emplace_back("--delay");
  if (!preempt.empty()) flags.emplace_back("--preempt");
  if (!neighbours.empty()) flags.emplace_back("--neighbours");
  return flags;
}

Result<std::vector<sim::HostNeighbours>> NoiseFlags::Neighbours(uint32_t hosts) const {
  std::vector<sim::HostNeighbours> list;
  for (const std::string& text : neighbours) {
    const Result<NeighboursText> it = ParseNeighbours(text);
    if (!it.ok()) return it.status();
    if (!it->node) continue;
    const std::optional<uint32_t> node = NumberOf<uint32_t>(*it->node);
    if (!node || *node >= hosts) {
      return NoNode(BadNeighbours, text, *it->node, hosts);
    }
    if (std::ranges::find(list, NodeId(*node), &sim::HostNeighbours::host) != list.end())
      return BadNeighbours(text, fmt::format("node {} is there twice", *node));
    list.push_back({.host = NodeId(*node),
                    .count = it->count,
                    .slice = sim::ToPicoseconds(*ParseLatency(it->slice) *
                                                static_cast<double>(sim::kPicosecondsPerSecond))});
  }
  return list;
}

}  // namespace prepost
