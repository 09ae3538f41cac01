// SPDX-License-Identifier: Apache-2.0
#include "compiler/topology/topology_json.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

#include "compiler/topology/host_list.h"
#include "ir/base/near_name.h"
#include "ir/base/utf8.h"
#include "ir/json/json_text.h"
#include "ir/json/rate_json.h"
#include "ir/json/rate_text.h"
#include "ir/plan.h"

namespace prepost {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTopologyFormat = "prepost.topology";
constexpr uint32_t kTopologyMajor = 1;
constexpr uint32_t kTopologyMinor = 1;  // 1: sites, switches, paths, routes
constexpr size_t kHostListBytesMax = 1u << 20;
constexpr size_t kHostListsBytesMax = 1u << 28;  // of all together
constexpr size_t kHostsPerList = 2048;           // of at most 256 bytes each
constexpr size_t kOverridesMax = kNodesMax;
constexpr uint32_t kPathStreamsMax = 16;  // as of sessions
constexpr uint32_t kMtuMin = 576, kMtuMax = 65535;

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

Json PathJson(const Network& topology, const Network::Link& link) {
  Json json = {{"between", {topology.EndName(link.from), topology.EndName(link.to)}},
               {"rate", RateJson(link.rate)}};
  json[topology.are_sites ? "rtt" : "latency"] =
      LatencyJson(topology.are_sites ? 2 * link.latency : link.latency);
  if (link.jitter != 0) json["jitter"] = LatencyJson(link.jitter);
  if (link.loss != 0) json["loss"] = link.loss;
  if (link.policer) {
    json["police"] = {{"rate", RateJson(link.policer->rate)}, {"burst", link.policer->burst}};
  }
  if (link.pace) json["pace"] = RateJson(*link.pace);
  if (link.queue) json["queue"] = *link.queue;
  if (link.streams != 0) json["streams"] = link.streams;
  const Network::Link usual;
  if (link.mtu != usual.mtu) json["mtu"] = link.mtu;
  return json;
}

void AddPathsTo(const Network& topology, Json* json) {
  for (size_t i = 0; i < topology.switches.size(); i += kHostsPerList) {
    const auto some = std::span(topology.switches).subspan(i);
    (*json)["switches"].push_back(WriteHostList(some.first(std::min(some.size(), kHostsPerList))));
  }
  Json& paths = (*json)["paths"] = Json::array();
  for (size_t i = 0; i < topology.links.size(); i += 2)
    paths.push_back(PathJson(topology, topology.links[i]));
  for (const Network::Route& route : topology.routes) {
    Json over = Json::array();
    for (const uint32_t end : route.over) over.push_back(topology.EndName(end));
    (*json)["routes"].push_back(
        {{"between", {topology.EndName(route.from), topology.EndName(route.to)}},
         {"over", std::move(over)}});
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
  if (topology.links.empty()) (*json)["core_latency"] = LatencyJson(topology.core_latency);
  Json& racks = (*json)[topology.are_sites ? "sites" : "racks"] = Json::array();
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
  if (!topology.links.empty()) AddPathsTo(topology, json);
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
  const auto add_rack = [&](JsonForm& form, bool are_sites) {
    form.OnBegin([this, are_sites] {
          racks_.emplace_back();
          are_sites_ = are_sites;
        })
        .Scalar("name", [this](const JsonScalar& s) { return ReadString(&racks_.back().name)(s); })
        .ScalarOrScalars("hosts", ReadHosts(&racks_, &host_list_bytes_))
        .Scalar("host_rate", of_rack(&RackText::host_rate), Need::kOptional)
        .Scalar("up_rate", of_rack(&RackText::up_rate), Need::kOptional)
        .Scalar("down_rate", of_rack(&RackText::down_rate), Need::kOptional)
        .OnEnd([this]() -> Status {
          if (racks_.size() <= kNodesMax) return {};
          return Rejected(fmt::format("there are more than {} racks", kNodesMax));
        });
  };
  add_rack(rack_form_, /*are_sites=*/false);
  add_rack(site_form_, /*are_sites=*/true);
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
      .Scalar("core_latency", ReadLatency([this](double seconds) -> Status {
                has_core_latency_ = true;
                head_.core_latency = seconds;
                return {};
              }),
              Need::kOptional)
      .Objects("racks", &rack_form_, Need::kOptional)
      .Objects("sites", &site_form_, Need::kOptional)
      .OneOf("racks", "sites")
      .Objects("overrides", &override_form_, Need::kOptional);
  AddPaths();
  AddRoutes();
}

JsonForm::ReadScalar TopologyForm::NameInto(std::vector<std::string>& (*names)(TopologyForm*)) {
  return [this, names](const JsonScalar& scalar) -> Status {
    return ReadString(&names(this).emplace_back())(scalar);
  };
}

void TopologyForm::AddPaths() {
  using Need = JsonForm::Need;
  const auto rate_of_path = [this](auto take) {
    return ReadRate([this, take](double value) -> Status {
      take(paths_.back(), value);
      return {};
    });
  };
  const auto latency_of_path = [this](auto take) {
    return ReadLatency([this, take](double value) -> Status {
      take(paths_.back(), value);
      return {};
    });
  };
  const auto number_of_path = [this](auto take) {
    return ReadNumber([this, take](double value) -> Status {
      take(paths_.back(), value);
      return {};
    });
  };
  policer_form_.Scalar("rate", rate_of_path([](PathText& it, double v) { it.policer.rate = v; }))
      .Scalar("burst", number_of_path([](PathText& it, double v) { it.policer.burst = v; }))
      .OnEnd([this]() -> Status {
        paths_.back().link.policer = paths_.back().policer;
        return {};
      });
  path_form_.OnBegin([this] { paths_.emplace_back(); })
      .Scalars("between", NameInto([](TopologyForm* it) -> std::vector<std::string>& {
                 return it->paths_.back().between;
               }),
               Need::kRequired, /*least=*/2)
      .Scalar("rate", rate_of_path([](PathText& it, double v) { it.rate = v; }), Need::kOptional)
      .Scalar("rtt", latency_of_path([](PathText& it, double v) { it.round_trip = v; }),
              Need::kOptional)
      .Scalar("latency", latency_of_path([](PathText& it, double v) { it.latency = v; }),
              Need::kOptional)
      .Scalar("jitter", latency_of_path([](PathText& it, double v) { it.link.jitter = v; }),
              Need::kOptional)
      .Scalar("loss", number_of_path([](PathText& it, double v) { it.link.loss = v; }),
              Need::kOptional)
      .Object("police", &policer_form_, Need::kOptional)
      .Scalar("pace", rate_of_path([](PathText& it, double v) { it.link.pace = v; }),
              Need::kOptional)
      .Scalar("queue", number_of_path([](PathText& it, double v) { it.link.queue = v; }),
              Need::kOptional)
      .Scalar(
          "streams",
          [this](const JsonScalar& scalar) {
            return ReadUint32(&paths_.back().link.streams, kPathStreamsMax, 1)(scalar);
          },
          Need::kOptional)
      .Scalar(
          "mtu",
          [this](const JsonScalar& scalar) {
            return ReadUint32(&paths_.back().link.mtu, kMtuMax, kMtuMin)(scalar);
          },
          Need::kOptional)
      .OnEnd([this]() -> Status {
        const PathText& path = paths_.back();
        if (paths_.size() > kLinksMax / 2)
          return Rejected(fmt::format("there are more than {} paths", kLinksMax / 2));
        if (path.between.size() != 2) {
          return Rejected(fmt::format("a path is between 2 names, found {}", path.between.size()));
        }
        if (!path.rate) {
          return Rejected(
              fmt::format("the path between {} and {} has no rate: say what it carries "
                          "each way, such as \"rate\": \"400Mbit/s\"",
                          path.between[0], path.between[1]));
        }
        if (path.round_trip.has_value() == path.latency.has_value()) {
          return Rejected(
              path.latency
                  ? "a path says its rtt, there and back, or its latency, one way: found both"
                  : "a path has no rtt: say it, there and back, such as \"rtt\": \"60ms\", "
                    "or its latency, one way");
        }
        return {};
      });
}

void TopologyForm::AddRoutes() {
  using Need = JsonForm::Need;
  route_form_.OnBegin([this] { routes_.emplace_back(); })
      .Scalars("between", NameInto([](TopologyForm* it) -> std::vector<std::string>& {
                 return it->routes_.back().between;
               }),
               Need::kRequired, /*least=*/2)
      .Scalars("over", NameInto([](TopologyForm* it) -> std::vector<std::string>& {
                 return it->routes_.back().over;
               }))
      .OnEnd([this]() -> Status {
        if (routes_.size() > kLinksMax)
          return Rejected(fmt::format("there are more than {} routes", kLinksMax));
        if (routes_.back().between.size() == 2) return {};
        return Rejected("a route is between 2 names");
      });
  form_
      .ScalarOrScalars(
          "switches",
          [this](const JsonScalar& scalar) -> Status {
            host_list_bytes_ += scalar.text.size() + 1;
            if (host_list_bytes_ > kHostListsBytesMax)
              return Rejected("all lists of names together are too long");
            return ReadString(&switches_.emplace_back(), kHostListBytesMax)(scalar);
          },
          Need::kOptional)
      .Objects("paths", &path_form_, Need::kOptional)
      .Objects("routes", &route_form_, Need::kOptional);
}

Status TopologyForm::AddRack(size_t index, Network* topology) const {
  const RackText& text = racks_[index];
  const std::string where = fmt::format("{}/{}", topology->RacksKey(), index);
  const std::optional<double> host_rate = text.host_rate ? text.host_rate : host_rate_;
  if (!host_rate)
    return Rejected("the rate of its hosts is missing: host_rate, here or at the top", where);
  for (const std::string& list : text.hosts) {
    Result<std::vector<std::string>> names =
        ExpandHostList(list, kNodesMax - topology->nodes.size());
    if (!names.ok()) return Rejected(names.status().message(), where + "/hosts");
    for (std::string& name : *names) {
      topology->nodes.push_back({.name = std::move(name),
                                 .rack = static_cast<uint32_t>(index),
                                 .out_rate = *host_rate,
                                 .in_rate = *host_rate});
    }
  }
  std::optional<double> up = text.up_rate ? text.up_rate : up_rate_;
  // To nowhere, or to paths that have rates of their own: see OpenUplinks().
  if (!up && (racks_.size() == 1 || !paths_.empty())) up = *host_rate;
  if (!up) {
    return Rejected(
        fmt::format("{} '{}' has no uplink: up_rate is missing, here and at the top{}",
                    topology->RackWord(), text.name,
                    topology->are_sites ? ", and there are no paths between the sites" : ""),
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
          return Rejected(fmt::format("no {} has a host '{}'", topology->RackWord(), name), where);
        Network::Node& host = topology->nodes[found->second];
        if (text.rate) host.out_rate = host.in_rate = *text.rate;
        if (text.send_rate) host.out_rate = *text.send_rate;
        if (text.recv_rate) host.in_rate = *text.recv_rate;
      }
    }
  }
  return {};
}

/// Racks that say nothing of their links carry what their hosts do together.
void TopologyForm::OpenUplinks(Network* topology) const {
  if (up_rate_ || (racks_.size() > 1 && paths_.empty())) return;
  std::vector<double> out(racks_.size()), in(racks_.size());
  for (const Network::Node& host : topology->nodes) {
    out[host.rack] += host.out_rate;
    in[host.rack] += host.in_rate;
  }
  for (size_t i = 0; i < racks_.size(); ++i) {
    Network::Rack& rack = topology->racks[i];
    if (racks_[i].up_rate) continue;
    rack.up_rate = std::max(rack.up_rate, out[i]);
    if (!racks_[i].down_rate && !down_rate_) rack.down_rate = std::max(rack.down_rate, in[i]);
  }
}

Status TopologyForm::AddPathsTo(Network* topology) const {
  for (const std::string& list : switches_) {
    const Result<std::vector<std::string>> names =
        ExpandHostList(list, kLinksMax - topology->switches.size());
    if (!names.ok()) return Rejected(names.status().message(), "/switches");
    topology->switches.insert(topology->switches.end(), names->begin(), names->end());
  }
  if (paths_.empty()) {
    if (switches_.empty() && routes_.empty()) return {};
    return Rejected("switches and routes are for paths, and there are none", "/paths");
  }
  if (head_.core_rate || has_core_latency_) {
    return Rejected(
        "a core is what racks meet at where no paths are between them, and there are paths",
        head_.core_rate ? "/core_rate" : "/core_latency");
  }
  std::vector<std::string> names;
  for (const Network::Rack& rack : topology->racks) names.push_back(rack.name);
  names.insert(names.end(), topology->switches.begin(), topology->switches.end());
  std::unordered_map<std::string, uint32_t> end_of;
  for (uint32_t i = 0; i < names.size(); ++i) {
    if (end_of.emplace(names[i], i).second) continue;
    const bool is_rack = i < topology->racks.size();
    return Rejected(fmt::format("'{}' is there already", Printable(names[i])),
                    is_rack ? fmt::format("{}/{}/name", topology->RacksKey(), i) : "/switches");
  }
  std::set<std::pair<uint32_t, uint32_t>> joined, routed;
  const auto find = [&](const std::string& name, const std::string& where,
                        uint32_t* end) -> Status {
    const auto found = end_of.find(name);
    if (found == end_of.end()) {
      return Rejected(fmt::format("no {} or switch is called '{}'{}", topology->RackWord(),
                                  Printable(name), DidYouMean(name, names)),
                      where);
    }
    *end = found->second;
    return {};
  };
  for (size_t i = 0; i < paths_.size(); ++i) {
    const PathText& path = paths_[i];
    const std::string where = fmt::format("/paths/{}/between", i);
    Network::Link link = path.link;
    link.rate = *path.rate;
    link.latency = path.latency ? *path.latency : *path.round_trip / 2;
    PREPOST_RETURN_IF_ERROR(find(path.between[0], where, &link.from));
    PREPOST_RETURN_IF_ERROR(find(path.between[1], where, &link.to));
    if (!joined.insert(std::minmax(link.from, link.to)).second) {
      return Rejected(
          fmt::format("there is a path between {} and {} already: say one, with the rate "
                      "of both",
                      Printable(path.between[0]), Printable(path.between[1])),
          where);
    }
    topology->links.push_back(link);
    std::swap(link.from, link.to);
    topology->links.push_back(link);
  }
  for (size_t i = 0; i < routes_.size(); ++i) {
    const std::string where = fmt::format("/routes/{}", i);
    Network::Route route;
    PREPOST_RETURN_IF_ERROR(find(routes_[i].between[0], where + "/between", &route.from));
    PREPOST_RETURN_IF_ERROR(find(routes_[i].between[1], where + "/between", &route.to));
    for (const std::string& name : routes_[i].over)
      PREPOST_RETURN_IF_ERROR(find(name, where + "/over", &route.over.emplace_back()));
    if (!routed.insert(std::minmax(route.from, route.to)).second) {
      return Rejected(
          fmt::format("there is a route between {} and {} already",
                      Printable(routes_[i].between[0]), Printable(routes_[i].between[1])),
          where + "/between");
    }
    topology->routes.push_back(std::move(route));
  }
  return topology->FindRoutes();
}

Result<Network> TopologyForm::Finish() const {
  Network topology = head_;
  topology.are_sites = are_sites_;
  for (size_t i = 0; i < racks_.size(); ++i) PREPOST_RETURN_IF_ERROR(AddRack(i, &topology));
  PREPOST_RETURN_IF_ERROR(ApplyOverrides(&topology));
  OpenUplinks(&topology);
  PREPOST_RETURN_IF_ERROR(AddPathsTo(&topology));
  PREPOST_RETURN_IF_ERROR(CheckTopology(topology));
  return topology;
}

Result<Network> ReadTopology(std::istream& in, const std::string& name,
                             std::vector<std::string>* warnings) {
  TopologyForm form(TopologyForm::Kind::kFile, warnings);
  if (const Status status = ReadJson(in, name, form.form()); !status.ok()) {
    if (!status.message().starts_with("not JSON")) return status;
    return Status(
        status.code(),
        status.message() +
            "; of Slurm's files and what ibnetdiscover prints `prepost topology` makes one",
        status.where());
  }
  Result<Network> topology = form.Finish();
  if (topology.ok()) return topology;
  return Rejected(topology.status().message(), name + ": " + topology.status().where());
}

void WriteTopology(const Network& topology, std::ostream& out) {
  Json json = {{"format", kTopologyFormat},
               {"version", fmt::format("{}.{}", kTopologyMajor, kTopologyMinor)}};
  AddTo(topology, &json);
  out << JsonText(json) << "\n";
}

std::string TopologySection(const Network& topology) {
  Json json = Json::object();
  AddTo(topology, &json);
  return JsonText(json);
}

}  // namespace prepost
