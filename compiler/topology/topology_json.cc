// SPDX-License-Identifier: Apache-2.0
#include "compiler/topology/topology_json.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>
#include <span>
#include <unordered_map>
#include <utility>

#include "compiler/topology/host_list.h"
#include "ir/json/rate_json.h"
#include "ir/json/rate_text.h"
#include "ir/plan.h"

namespace prepost {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTopologyFormat = "prepost.topology";
constexpr uint32_t kTopologyMajor = 1;
constexpr uint32_t kTopologyMinor = 0;
constexpr size_t kHostListBytesMax = 1u << 20;
constexpr size_t kHostListsBytesMax = 1u << 28;  // of all together
constexpr size_t kHostsPerList = 2048;           // of at most 256 bytes each
constexpr size_t kOverridesMax = kNodesMax;

/// Keeps what was read.
template <typename Out>
std::function<Status(double)> Into(Out* out) {
  return [out](double value) {
    *out = value;
    return Status();
  };
}

/// A host list, or several in an array, for the last of `items`.
template <typename Item>
JsonForm::ReadScalar ReadHosts(std::vector<Item>* items, size_t* bytes) {
  return [items, bytes](const JsonScalar& scalar) -> Status {
    *bytes += scalar.text.size() + 1;
    if (*bytes > kHostListsBytesMax) {
      return Rejected(
          fmt::format("all host lists together have more than {} bytes", kHostListsBytesMax));
    }
    return ReadString(&items->back().hosts.emplace_back(), kHostListBytesMax)(scalar);
  };
}

/// Text if that is exact, else the number.
Json Quantity(double value, const std::string& text, Result<double> (*parse)(std::string_view)) {
  const Result<double> again = parse(text);
  return again.ok() && *again == value ? Json(text) : Json(value);
}
Json RateJson(double rate) { return Quantity(rate, WriteRate(rate), ParseRate); }
Json LatencyJson(double latency) { return Quantity(latency, WriteLatency(latency), ParseLatency); }

using HostRates = std::pair<double, double>;
HostRates RatesOf(const Network::Node& host) { return {host.out_rate, host.in_rate}; }

/// The hosts of each rack, in order.
std::vector<std::vector<const Network::Node*>> ByRack(const Network& topology) {
  std::vector<std::vector<const Network::Node*>> hosts(topology.racks.size());
  for (const Network::Node& host : topology.nodes) hosts[host.rack].push_back(&host);
  return hosts;
}

/// A host list, or several of no more than a reader takes.
Json ListOf(std::span<const Network::Node* const> hosts) {
  Json lists = Json::array();
  std::vector<std::string> names;
  for (const Network::Node* host : hosts) {
    names.push_back(host->name);
    if (names.size() < kHostsPerList && host != hosts.back()) continue;
    lists.push_back(WriteHostList(names));
    names.clear();
  }
  return lists.size() == 1 ? lists[0] : lists;
}

/// An entry for every run of hosts whose rates are not `usual`.
void AddOverrides(std::span<const Network::Node* const> hosts, double usual, Json* overrides) {
  for (size_t begin = 0; begin < hosts.size();) {
    const HostRates rates = RatesOf(*hosts[begin]);
    size_t end = begin + 1;
    while (end < hosts.size() && RatesOf(*hosts[end]) == rates) ++end;
    if (rates != HostRates(usual, usual)) {
      overrides->push_back({{"hosts", ListOf(hosts.subspan(begin, end - begin))},
                            {"send_rate", RateJson(rates.first)},
                            {"recv_rate", RateJson(rates.second)}});
    }
    begin = end;
  }
}

void AddTo(const Network& topology, Json* json) {
  // What the first host and rack have stands at the top and holds for all that say nothing.
  const double host_rate = topology.nodes[0].out_rate;
  const Network::Rack& usual = topology.racks[0];
  if (!topology.name.empty()) (*json)["name"] = topology.name;
  (*json)["host_rate"] = RateJson(host_rate);
  (*json)["up_rate"] = RateJson(usual.up_rate);
  (*json)["down_rate"] = RateJson(usual.down_rate);
  if (topology.core_rate) (*json)["core_rate"] = RateJson(*topology.core_rate);
  (*json)["rack_latency"] = LatencyJson(topology.rack_latency);
  (*json)["core_latency"] = LatencyJson(topology.core_latency);
  Json& racks = (*json)["racks"] = Json::array();
  Json overrides = Json::array();
  const auto hosts = ByRack(topology);
  for (size_t i = 0; i < topology.racks.size(); ++i) {
    const Network::Rack& rack = topology.racks[i];
    Json& entry = racks.emplace_back(Json{{"name", rack.name}, {"hosts", ListOf(hosts[i])}});
    if (rack.up_rate != usual.up_rate || rack.down_rate != usual.down_rate) {
      entry["up_rate"] = RateJson(rack.up_rate);
      entry["down_rate"] = RateJson(rack.down_rate);
    }
    AddOverrides(hosts[i], host_rate, &overrides);
  }
  if (!overrides.empty()) (*json)["overrides"] = std::move(overrides);
}

std::string Dump(const Json& json) {
  return json.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace

TopologyForm::TopologyForm(Kind kind, std::vector<std::string>* warnings) {
  using Need = JsonForm::Need;
  const Need need = kind == Kind::kFile ? Need::kRequired : Need::kOptional;
  const auto of_rack = [this](std::optional<double> RackText::*field) {
    return ReadRate([this, field](double rate) { return Into(&(racks_.back().*field))(rate); });
  };
  const auto of_override = [this](std::optional<double> OverrideText::*field) {
    return ReadRate([this, field](double rate) { return Into(&(overrides_.back().*field))(rate); });
  };
  rack_form_.OnBegin([this] { racks_.emplace_back(); })
      .Scalar("name", [this](const JsonScalar& s) { return ReadString(&racks_.back().name)(s); })
      .ScalarOrScalars("hosts", ReadHosts(&racks_, &host_list_bytes_))
      .Scalar("host_rate", of_rack(&RackText::host_rate), Need::kOptional)
      .Scalar("up_rate", of_rack(&RackText::up_rate), Need::kOptional)
      .Scalar("down_rate", of_rack(&RackText::down_rate), Need::kOptional)
      .OnEnd([this]() -> Status {
        if (racks_.size() <= kNodesMax) return {};
        return Rejected(fmt::format("there are more than {} racks", kNodesMax));
      });
  override_form_.OnBegin([this] { overrides_.emplace_back(); })
      .ScalarOrScalars("hosts", ReadHosts(&overrides_, &host_list_bytes_))
      .Scalar("rate", of_override(&OverrideText::rate), Need::kOptional)
      .Scalar("send_rate", of_override(&OverrideText::send_rate), Need::kOptional)
      .Scalar("recv_rate", of_override(&OverrideText::recv_rate), Need::kOptional)
      .OnEnd([this]() -> Status {
        if (overrides_.size() > kOverridesMax)
          return Rejected(fmt::format("there are more than {} overrides", kOverridesMax));
        const OverrideText& text = overrides_.back();
        if (text.rate || text.send_rate || text.recv_rate) return {};
        return Rejected("an override says rate, send_rate or recv_rate, found none");
      });
  form_.OnBegin([this] { is_there_ = true; })
      .Scalar("format", ExpectString(kTopologyFormat), need)
      .Scalar("version", ExpectVersion(kTopologyMajor, kTopologyMinor, warnings), need)
      .Scalar("name", ReadString(&head_.name), Need::kOptional)
      .Scalar("host_rate", ReadRate(Into(&host_rate_)), Need::kOptional)
      .Scalar("up_rate", ReadRate(Into(&up_rate_)), Need::kOptional)
      .Scalar("down_rate", ReadRate(Into(&down_rate_)), Need::kOptional)
      .Scalar("core_rate", ReadRate(Into(&head_.core_rate)), Need::kOptional)
      .Scalar("rack_latency", ReadLatency(Into(&head_.rack_latency)), Need::kOptional)
      .Scalar("core_latency", ReadLatency(Into(&head_.core_latency)), Need::kOptional)
      .Objects("racks", &rack_form_)
      .Objects("overrides", &override_form_, Need::kOptional);
}

Status TopologyForm::AddRack(size_t index, Network* topology) const {
  const RackText& text = racks_[index];
  const std::string where = fmt::format("/racks/{}", index);
  const std::optional<double> host_rate = text.host_rate ? text.host_rate : host_rate_;
  if (!host_rate)
    return Rejected("the rate of its hosts is missing: host_rate, here or at the top", where);
  double hosts_rate = 0;
  for (const std::string& list : text.hosts) {
    Result<std::vector<std::string>> names =
        ExpandHostList(list, kNodesMax - topology->nodes.size());
    if (!names.ok()) return Rejected(names.status().message(), where + "/hosts");
    for (std::string& name : *names) {
      topology->nodes.push_back({.name = std::move(name),
                                 .rack = static_cast<uint32_t>(index),
                                 .out_rate = *host_rate,
                                 .in_rate = *host_rate});
      hosts_rate += *host_rate;
    }
  }
  std::optional<double> up = text.up_rate ? text.up_rate : up_rate_;
  if (!up && racks_.size() == 1) up = std::max(hosts_rate, *host_rate);  // to nowhere
  if (!up) {
    return Rejected(
        fmt::format("rack '{}' has no uplink: up_rate is missing, here and at the top", text.name),
        where);
  }
  const double down = text.down_rate ? *text.down_rate
                      : text.up_rate ? *up
                                     : down_rate_.value_or(*up);
  topology->racks.push_back({.name = text.name, .up_rate = *up, .down_rate = down});
  return {};
}

Status TopologyForm::ApplyOverrides(Network* topology) const {
  if (overrides_.empty()) return {};
  std::unordered_map<std::string, size_t> host_of;
  for (size_t i = 0; i < topology->nodes.size(); ++i) host_of.emplace(topology->nodes[i].name, i);
  size_t left = 2 * topology->nodes.size();  // each may be named twice on average
  for (size_t i = 0; i < overrides_.size(); ++i) {
    const OverrideText& text = overrides_[i];
    const std::string where = fmt::format("/overrides/{}/hosts", i);
    for (const std::string& list : text.hosts) {
      const Result<std::vector<std::string>> names = ExpandHostList(list, left);
      if (!names.ok()) return Rejected(names.status().message(), where);
      left -= names->size();
      for (const std::string& name : *names) {
        const auto found = host_of.find(name);
        if (found == host_of.end())
          return Rejected(fmt::format("no rack has a host '{}'", name), where);
        Network::Node& host = topology->nodes[found->second];
        if (text.rate) host.out_rate = host.in_rate = *text.rate;
        if (text.send_rate) host.out_rate = *text.send_rate;
        if (text.recv_rate) host.in_rate = *text.recv_rate;
      }
    }
  }
  return {};
}

Result<Network> TopologyForm::Finish() const {
  Network topology = head_;
  for (size_t i = 0; i < racks_.size(); ++i) PREPOST_RETURN_IF_ERROR(AddRack(i, &topology));
  PREPOST_RETURN_IF_ERROR(ApplyOverrides(&topology));
  PREPOST_RETURN_IF_ERROR(CheckTopology(topology));
  return topology;
}

Result<Network> ReadTopology(std::istream& in, const std::string& name,
                             std::vector<std::string>* warnings) {
  TopologyForm form(TopologyForm::Kind::kFile, warnings);
  PREPOST_RETURN_IF_ERROR(ReadJson(in, name, form.form()));
  Result<Network> topology = form.Finish();
  if (topology.ok()) return topology;
  return Rejected(topology.status().message(), name + ": " + topology.status().where());
}

void WriteTopology(const Network& topology, std::ostream& out) {
  Json json = {{"format", kTopologyFormat},
               {"version", fmt::format("{}.{}", kTopologyMajor, kTopologyMinor)}};
  AddTo(topology, &json);
  out << Dump(json) << "\n";
}

std::string TopologySection(const Network& topology) {
  Json json = Json::object();
  AddTo(topology, &json);
  return Dump(json);
}

}  // namespace prepost
