// SPDX-License-Identifier: Apache-2.0
#include "compiler/topology/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "ir/plan.h"
#include "ir/utf8.h"

namespace prepost {
namespace {

constexpr size_t kNameBytesMax = 256;

/// Whether a host list and a JSON file can hold it.
bool IsName(const std::string& name) {
  return !name.empty() && name.size() <= kNameBytesMax && Printable(name) == name &&
         name.find_first_of(" ,[]") == std::string::npos;
}

Status CheckRate(double rate, const std::string& where) {
  if (std::isfinite(rate) && rate > 0) return {};
  return Rejected(fmt::format("a rate is more than 0 bytes/s, found {}", rate), where);
}

Status CheckLatency(double seconds, const std::string& where) {
  if (std::isfinite(seconds) && seconds >= 0) return {};
  return Rejected(fmt::format("a latency is 0 s or more, found {}", seconds), where);
}

Status CheckRacks(const Topology& topology) {
  if (topology.racks.empty()) return Rejected("a topology has at least 1 rack, found 0", "/racks");
  std::unordered_set<std::string_view> names;
  for (size_t i = 0; i < topology.racks.size(); ++i) {
    const TopologyRack& rack = topology.racks[i];
    const std::string where = fmt::format("/racks/{}", i);
    if (Printable(rack.name) != rack.name) {
      return Rejected(fmt::format("the rack's name '{}' has control characters or is no UTF-8",
                                  Printable(rack.name.substr(0, kNameBytesMax))),
                      where + "/name");
    }
    if (!names.insert(rack.name).second)
      return Rejected(fmt::format("a rack '{}' is there already", rack.name), where + "/name");
    PREPOST_RETURN_IF_ERROR(CheckRate(rack.up_rate, where + "/up_rate"));
    PREPOST_RETURN_IF_ERROR(CheckRate(rack.down_rate, where + "/down_rate"));
  }
  return {};
}

Status CheckHosts(const Topology& topology) {
  if (topology.hosts.empty()) return Rejected("a topology has at least 1 host, found 0", "/racks");
  if (topology.hosts.size() > kNodesMax) {
    return Rejected(
        fmt::format("{} hosts are too many, the limit is {}", topology.hosts.size(), kNodesMax),
        "/racks");
  }
  std::vector<bool> has_host(topology.racks.size());
  std::unordered_set<std::string_view> names;
  for (const TopologyHost& host : topology.hosts) {
    if (host.rack >= topology.racks.size()) {
      return Rejected(fmt::format("host '{}' is in rack {}, there are {}", host.name, host.rack,
                                  topology.racks.size()),
                      "/racks");
    }
    const std::string where = fmt::format("/racks/{}/hosts", host.rack);
    if (!IsName(host.name)) {
      return Rejected(fmt::format("a host's name has 1 to {} bytes of UTF-8, no blanks, control "
                                  "characters, commas or brackets, found '{}'",
                                  kNameBytesMax, Printable(host.name.substr(0, 80))),
                      where);
    }
    if (!names.insert(host.name).second)
      return Rejected(fmt::format("host '{}' is there twice", host.name), where);
    PREPOST_RETURN_IF_ERROR(CheckRate(host.send_rate, where));
    PREPOST_RETURN_IF_ERROR(CheckRate(host.recv_rate, where));
    has_host[host.rack] = true;
  }
  for (size_t i = 0; i < topology.racks.size(); ++i) {
    if (has_host[i]) continue;
    return Rejected(fmt::format("rack '{}' has no host", topology.racks[i].name),
                    fmt::format("/racks/{}/hosts", i));
  }
  return {};
}

}  // namespace

Topology TopologyOfSites(const std::vector<uint32_t>& site_of,
                         const std::vector<std::string>& names) {
  constexpr double kEqualRate = 1;
  Topology topology;
  for (size_t node = 0; node < site_of.size(); ++node) {
    while (topology.racks.size() <= site_of[node]) {
      const size_t site = topology.racks.size();
      topology.racks.push_back({.name = names.empty() ? fmt::format("site {}", site) : names[site],
                                .up_rate = kEqualRate,
                                .down_rate = kEqualRate});
    }
    topology.hosts.push_back({.name = fmt::to_string(node),
                              .rack = site_of[node],
                              .send_rate = kEqualRate,
                              .recv_rate = kEqualRate});
  }
  return topology;
}

Status CheckTopology(const Topology& topology) {
  PREPOST_RETURN_IF_ERROR(CheckRacks(topology));
  PREPOST_RETURN_IF_ERROR(CheckHosts(topology));
  if (topology.core_rate) PREPOST_RETURN_IF_ERROR(CheckRate(*topology.core_rate, "/core_rate"));
  PREPOST_RETURN_IF_ERROR(CheckLatency(topology.rack_latency, "/rack_latency"));
  return CheckLatency(topology.core_latency, "/core_latency");
}

}  // namespace prepost
