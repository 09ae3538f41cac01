// SPDX-License-Identifier: Apache-2.0
//
// A topology from anywhere, in any of the forms that are read: refused with its place, or right in
// itself: written and read again it is the same once its hosts stand rack by rack, host lists give
// the names that they were made of, and it makes a network.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/topology/host_list.h"
#include "compiler/topology/topology_import.h"
#include "compiler/topology/topology_json.h"

namespace {

using prepost::Network;
using prepost::Result;
using prepost::Status;

/// More are read, but with sanitizers writing them and reading them again takes too long.
constexpr uint32_t kHostsMax = 100'000;

void CheckRefusal(const Status& status) {
  PREPOST_CHECK(status.ToString().starts_with("topology:") && !status.message().empty());
}

Network WrittenAndRead(const Network& topology) {
  std::stringstream text;
  prepost::WriteTopology(topology, text);
  const Result<Network> read = prepost::ReadTopology(text, "topology");
  PREPOST_CHECK(read.ok());
  return *read;
}

void CheckTaken(Network topology) {
  PREPOST_CHECK(prepost::CheckTopology(topology).ok());
  const auto hosts = static_cast<uint32_t>(topology.nodes.size());
  if (hosts > kHostsMax) return;
  PREPOST_CHECK(topology.First(hosts).ok());
  PREPOST_CHECK(!topology.First(hosts + 1).ok());
  std::vector<std::string> names;
  for (const Network::Node& host : topology.nodes) names.push_back(host.name);
  const auto listed = prepost::ExpandHostList(prepost::WriteHostList(names), names.size());
  PREPOST_CHECK(listed.ok() && *listed == names);
  std::ranges::stable_sort(topology.nodes, {}, &Network::Node::rack);
  PREPOST_CHECK(WrittenAndRead(topology) == topology);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(prepost::GuessTopologySource(text));
  std::istringstream in(text);
  const Result<Network> read = prepost::ReadTopology(in, "topology");
  read.ok() ? CheckTaken(*read) : CheckRefusal(read.status());
  for (const auto& imported :
       {prepost::ReadSlurmTopology(text, "topology"), prepost::ReadIbnetdiscover(text, "topology")})
    imported.ok() ? CheckTaken(imported->topology) : CheckRefusal(imported.status());
  return 0;
}
