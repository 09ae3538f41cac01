// SPDX-License-Identifier: Apache-2.0
#include "compiler/topology/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "ir/base/utf8.h"
#include "ir/plan.h"

namespace prepost {
namespace {

constexpr size_t kNameBytesMax = 256;

/// Whether a host list and a JSON file can hold it.
bool IsName(const std::string& name) {
  return !name.empty() && name.size() <= kNameBytesMax && Printable(name) == name &&
         name.find_first_of(" ,[]") == std::string::npos;
}

Status CheckRacks(const Network& topology) {
  if (topology.racks.empty())
    return Rejected("a topology has at least 1 rack, found 0", topology.RacksKey());
  std::unordered_set<std::string_view> names;
  for (const std::string& name : topology.switches) {
    if (!IsName(name) || !names.insert(name).second) {
      return Rejected(fmt::format("switch '{}' is there twice, or is no name",
                                  Printable(name.substr(0, kNameBytesMax))),
                      "/switches");
    }
  }
  for (size_t i = 0; i < topology.racks.size(); ++i) {
    const Network::Rack& rack = topology.racks[i];
    const std::string where = fmt::format("{}/{}", topology.RacksKey(), i);
    if (Printable(rack.name) != rack.name) {
      return Rejected(
          fmt::format("the {}'s name '{}' has control characters or is no UTF-8",
                      topology.RackWord(), Printable(rack.name.substr(0, kNameBytesMax))),
          where + "/name");
    }
    if (!names.insert(rack.name).second)
      return Rejected(fmt::format("a {} '{}' is there already", topology.RackWord(), rack.name),
                      where + "/name");
  }
  return {};
}

Status CheckHosts(const Network& topology) {
  if (topology.nodes.empty())
    return Rejected("a topology has at least 1 host, found 0", topology.RacksKey());
  if (topology.nodes.size() > kNodesMax) {
    return Rejected(
        fmt::format("{} hosts are too many, the limit is {}", topology.nodes.size(), kNodesMax),
        topology.RacksKey());
  }
  std::vector<bool> has_host(topology.racks.size());
  std::unordered_set<std::string_view> names;
  for (const Network::Node& host : topology.nodes) {
    const std::string where = fmt::format("{}/{}/hosts", topology.RacksKey(), host.rack);
    if (!IsName(host.name)) {
      return Rejected(fmt::format("a host's name has 1 to {} bytes of UTF-8, no blanks, control "
                                  "characters, commas or brackets, found '{}'",
                                  kNameBytesMax, Printable(host.name.substr(0, 80))),
                      where);
    }
    if (!names.insert(host.name).second)
      return Rejected(fmt::format("host '{}' is there twice", host.name), where);
    has_host[host.rack] = true;
  }
  for (size_t i = 0; i < topology.racks.size(); ++i) {
    if (has_host[i]) continue;
    return Rejected(fmt::format("{} '{}' has no host", topology.RackWord(), topology.racks[i].name),
                    fmt::format("{}/{}/hosts", topology.RacksKey(), i));
  }
  return {};
}

}  // namespace

Status CheckTopology(const Network& topology) {
  PREPOST_RETURN_IF_ERROR(CheckRacks(topology));
  PREPOST_RETURN_IF_ERROR(CheckNetwork(topology));
  return CheckHosts(topology);
}

}  // namespace prepost
