// SPDX-License-Identifier: Apache-2.0
#include "planning/flags/noise_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "ir/json/rate_text.h"
#include "ir/plan.h"
#include "planning/flags/host_choice.h"
#include "planning/flags/values.h"
#include "sim/cluster/profile.h"
#include "sim/nics/time.h"

namespace prepost {
namespace {

constexpr const char* kDelayForm = "node=3,at=2ms,for=100us";

Status BadDelay(const std::string& text, const std::string& why) {
  return BadParts("--delay", text, UsageError(why), kDelayForm);
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
  if (!node || *node >= nodes)
    return BadParts("--delay", text, NoSuchNode(host, nodes), kDelayForm);
  const Result<emulated::Picoseconds> at = DelayTime(text, parts->at("at"));
  if (!at.ok()) return at.status();
  const Result<emulated::Picoseconds> length = DelayTime(text, parts->at("for"));
  if (!length.ok()) return length.status();
  return sim::HostDelay{.host = NodeId(*node), .at = *at, .length = *length};
}

/// One --neighbours or --preempt, as far as it can be read without knowing the hosts.
template <typename Value>
struct ForHosts {
  std::string text;
  HostChoice hosts;
  Value value;
};

Status BadNeighbours(const std::string& text, const Status& why) {
  return BadParts("--neighbours", text, why,
                  "count=1,slice=4ms or node=3,count=1,slice=4ms, also with hosts=4 or share=0.1 "
                  "in place of node=3");
}
Status BadNeighbours(const std::string& text, const std::string& why) {
  return BadNeighbours(text, UsageError(why));
}

struct NeighboursText {
  uint32_t count = 0;
  std::string slice;  ///< a time
};

Result<ForHosts<NeighboursText>> ParseNeighbours(const std::string& text) {
  Result<std::map<std::string, std::string>> parts =
      ParseParts(text, {"node", "hosts", "share", "count", "slice"});
  if (!parts.ok()) return BadNeighbours(text, parts.status());
  std::map<std::string, std::string>& values = *parts;
  const Result<HostChoice> hosts = HostChoice::Of(values);
  if (!hosts.ok()) return BadNeighbours(text, hosts.status());
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
  return ForHosts<NeighboursText>{text, *hosts, it};
}

Status BadPreempt(const std::string& text, const Status& why) {
  return BadParts("--preempt", text, why,
                  "rate=100,for=100us or rate=100,for=100us,lengths=exponential, also with node=3, "
                  "hosts=4 or share=0.1");
}
Status BadPreempt(const std::string& text, const std::string& why) {
  return BadPreempt(text, UsageError(why));
}

struct PreemptText {
  std::string rate;    ///< per second of a core
  std::string length;  ///< a time
  std::string lengths = "fixed";

  sim::HostPreemptions OfHost(NodeId host) const {
    return {.host = host,
            .per_second = NumberOf<double>(rate).value(),
            .length = sim::FromSeconds(*ParseLatency(length)),
            .lengths_vary = lengths == "exponential"};
  }
};

Result<ForHosts<PreemptText>> ParsePreempt(const std::string& text) {
  Result<std::map<std::string, std::string>> parts =
      ParseParts(text, {"node", "hosts", "share", "rate", "for", "lengths"});
  if (!parts.ok()) return BadPreempt(text, parts.status());
  std::map<std::string, std::string>& values = *parts;
  const Result<HostChoice> hosts = HostChoice::Of(values);
  if (!hosts.ok()) return BadPreempt(text, hosts.status());
  if (!values.contains("rate") || !values.contains("for"))
    return BadPreempt(text, "a part is missing");
  PreemptText it = {.rate = values["rate"], .length = values["for"]};
  const std::optional<double> per_second = NumberOf<double>(it.rate);
  if (!per_second) return BadPreempt(text, "the rate is no number");
  if (*per_second < sim::kPreemptionRateMin || *per_second > sim::kPreemptionRateMax) {
    return BadPreempt(text, fmt::format("the rate is not from {} to {}", sim::kPreemptionRateMin,
                                        sim::kPreemptionRateMax));
  }
  const Result<double> seconds = ParseLatency(it.length);
  if (!seconds.ok()) return BadPreempt(text, seconds.status().message());
  if (*seconds > sim::kProfileSecondsMax) {
    return BadPreempt(text, fmt::format("{} is too long, the limit is {}", WriteLatency(*seconds),
                                        WriteLatency(sim::kProfileSecondsMax)));
  }
  if (values.contains("lengths")) it.lengths = values["lengths"];
  if (it.lengths != "fixed" && it.lengths != "exponential")
    return BadPreempt(text, fmt::format("'{}' is neither fixed nor exponential", it.lengths));
  if (hosts->is_of_all()) return ForHosts<PreemptText>{text, *hosts, it};
  // Of all hosts it is checked with the profile that it is set in.
  const sim::HostPreemptions of_host = it.OfHost(NodeId(0));
  const Status status = CheckCosts(sim::HostCosts{.preemptions_per_second = of_host.per_second,
                                                  .preemption_length = of_host.length});
  if (!status.ok()) return BadPreempt(text, status.message());
  return ForHosts<PreemptText>{text, *hosts, it};
}

/// What `texts` say of some hosts, not of all: by host. One that is named has its own in place of
/// what is drawn. `parse` and `bad`: of the flag.
template <typename Parse, typename Bad>
auto ByHost(const std::vector<std::string>& texts, Parse parse, Bad bad, DrawingFlag flag,
            uint32_t hosts, uint64_t seed)
    -> Result<std::map<NodeId, decltype(parse(std::string())->value)>> {
  std::map<NodeId, decltype(parse(std::string())->value)> named, drawn;
  bool is_drawn = false;
  for (const std::string& text : texts) {
    const auto it = parse(text);
    if (!it.ok()) return it.status();
    if (it->hosts.is_of_all()) continue;
    if (it->hosts.is_drawn() && std::exchange(is_drawn, true))
      return bad(text, UsageError("hosts or share is there twice"));
    const Result<std::vector<NodeId>> chosen = it->hosts.Among(hosts, seed, flag);
    if (!chosen.ok()) return bad(text, chosen.status());
    for (const NodeId host : *chosen) {
      if (!(it->hosts.is_drawn() ? drawn : named).emplace(host, it->value).second)
        return bad(text, UsageError(fmt::format("node {} is there twice", host.value)));
    }
  }
  named.merge(drawn);
  return named;
}

/// The hosts that `text`, the value of a flag that has been read, lets draw.
HostChoice DrawnBy(const std::string& text) {
  std::map<std::string, std::string> parts;
  for (const std::string& part : Split(text, ',')) {
    for (const char* key : {"hosts=", "share="}) {
      if (part.starts_with(key)) parts.emplace(part.substr(0, 5), part.substr(6));
    }
  }
  const Result<HostChoice> choice = HostChoice::Of(parts);
  return choice.ok() ? *choice : HostChoice();
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
                  "A slow path, 2->3=0.5 of its rate; a slow node, 3=0.5; or drawn by --seed some "
                  "paths, random=0.05,factor=0.5, or nodes, hosts=4,factor=0.5 or "
                  "share=0.1,factor=0.5; may be given again")
      ->type_name("S")
      ->allow_extra_args(false);
  command
      .add_option("--preempt", preempt,
                  "Something else takes cores at random, in place of the profile's: "
                  "rate=100,for=100us (per second of a core), lengths=exponential; of one host "
                  "with node=3, of some that --seed draws with hosts=4 or share=0.1; may be given "
                  "again")
      ->type_name("P")
      ->allow_extra_args(false);
  command
      .add_option("--neighbours", neighbours,
                  "Processes that always want the cores, of all hosts, count=1,slice=4ms, of one, "
                  "node=3,count=1,slice=4ms, or of some that --seed draws, with hosts=4 or "
                  "share=0.1; may be given again")
      ->type_name("B")
      ->allow_extra_args(false);
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
    const Result<ForHosts<NeighboursText>> it = ParseNeighbours(text);
    if (!it.ok()) return it.status();
    if (!it->hosts.is_of_all()) continue;
    if (!settings.empty()) return BadNeighbours(text, "all hosts are there twice");
    settings.push_back(
        {"--neighbours " + text, fmt::format("host.neighbours.count={}", it->value.count)});
    settings.push_back({"--neighbours " + text, "host.neighbours.slice=" + it->value.slice});
  }
  bool is_preempted = false;
  for (const std::string& text : preempt) {
    const Result<ForHosts<PreemptText>> it = ParsePreempt(text);
    if (!it.ok()) return it.status();
    if (!it->hosts.is_of_all()) continue;
    if (std::exchange(is_preempted, true)) return BadPreempt(text, "all hosts are there twice");
    for (const std::string& setting :
         {"host.preemption.rate=" + it->value.rate, "host.preemption.length=" + it->value.length,
          "host.preemption.lengths=" + it->value.lengths}) {
      settings.push_back({"--preempt " + text, setting});
    }
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

Result<std::vector<sim::HostPreemptions>> NoiseFlags::Preemptions(uint32_t hosts,
                                                                  uint64_t seed) const {
  const auto found = ByHost(
      preempt, ParsePreempt,
      [](const std::string& text, const Status& why) { return BadPreempt(text, why); },
      DrawingFlag::kPreempt, hosts, seed);
  if (!found.ok()) return found.status();
  std::vector<sim::HostPreemptions> list;
  for (const auto& [host, it] : *found) list.push_back(it.OfHost(host));
  return list;
}

Result<std::vector<sim::HostNeighbours>> NoiseFlags::Neighbours(uint32_t hosts,
                                                                uint64_t seed) const {
  const auto found = ByHost(
      neighbours, ParseNeighbours,
      [](const std::string& text, const Status& why) { return BadNeighbours(text, why); },
      DrawingFlag::kNeighbours, hosts, seed);
  if (!found.ok()) return found.status();
  std::vector<sim::HostNeighbours> list;
  for (const auto& [host, it] : *found) {
    list.push_back(
        {.host = host, .count = it.count, .slice = sim::FromSeconds(*ParseLatency(it.slice))});
  }
  return list;
}

bool NoiseFlags::IsDrawn() const {
  const auto draws = [](const std::string& text) {
    return DrawnBy(text).is_drawn() || text.find("random=") != std::string::npos;
  };
  return !preempt.empty() || std::ranges::any_of(slow, draws) ||
         std::ranges::any_of(neighbours, draws);
}

Result<std::vector<sim::DrawnHosts>> NoiseFlags::Drawn(uint32_t hosts, uint64_t seed) const {
  std::vector<sim::DrawnHosts> drawn;
  const auto add = [&](const char* name, const std::vector<std::string>& texts,
                       DrawingFlag flag) -> Status {
    for (const std::string& text : texts) {
      const HostChoice choice = DrawnBy(text);
      if (!choice.is_drawn()) continue;
      Result<std::vector<NodeId>> chosen = choice.Among(hosts, seed, flag);
      if (!chosen.ok()) return chosen.status();
      drawn.push_back({fmt::format("{} {}", name, text), *std::move(chosen)});
    }
    return {};
  };
  PREPOST_RETURN_IF_ERROR(add("--slow", slow, DrawingFlag::kSlow));
  PREPOST_RETURN_IF_ERROR(add("--preempt", preempt, DrawingFlag::kPreempt));
  PREPOST_RETURN_IF_ERROR(add("--neighbours", neighbours, DrawingFlag::kNeighbours));
  return drawn;
}

}  // namespace prepost
