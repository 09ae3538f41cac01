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

Status CheckRacks(const Network& topology) {
  if (topology.racks.empty()) return Rejected("a topology has at least 1 rack, found 0", "/racks");
  std::unordered_set<std::string_view> names;
  for (size_t i = 0; i < topology.racks.size(); ++i) {
    const Network::Rack& rack = topology.racks[i];
    const std::string where = fmt::format("/racks/{}", i);
    if (Printable(rack.name) != rack.name) {
      return Rejected(fmt::format("the rack's name '{}' has control characters or is no UTF-8",
                                  Printable(rack.name.substr(0, kNameBytesMax))),
                      where + "/name");
    }
    if (!names.insert(rack.name).second)
      return Rejected(fmt::format("a rack '{}' is there already", rack.name), where + "/name");
  }
  return {};
}

Status CheckHosts(const Network& topology) {
  if (topology.nodes.empty()) return Rejected("a topology has at least 1 host, found 0", "/racks");
  if (topology.nodes.size() > kNodesMax) {
    return Rejected(
        fmt::format("{} hosts are too many, the limit is {}", topology.nodes.size(), kNodesMax),
        "/racks");
  }
  std::vector<bool> has_host(topology.racks.size());
  std::unordered_set<std::string_view> names;
  for (const Network::Node& host : topology.nodes) {
    const std::string where = fmt::format("/racks/{}/hosts", host.rack);
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
    return Rejected(fmt::format("rack '{}' has no host", topology.racks[i].name),
                    fmt::format("/racks/{}/hosts", i));
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
