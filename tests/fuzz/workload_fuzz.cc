// SPDX-License-Identifier: Apache-2.0
//
// A workload from a stranger: read or refused with a place; what is read names hosts and groups
// that there are, and, where it is small, its groups run in virtual time or it is said why they
// cannot.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "sim/cluster/workload_json.h"
#include "sim/runs/cpu_driven.h"

namespace {

using prepost::sim::Group;
using prepost::sim::WorkloadFile;

constexpr uint32_t kHostsMax = 12;
constexpr size_t kGroupsMax = 8;
constexpr uint64_t kBlocksMax = 20;

void CheckGroups(const WorkloadFile& file) {
  PREPOST_CHECK(file.hosts >= 1 && !file.groups.empty() &&
                file.groups.size() <= prepost::sim::kWorkloadGroupsMax);
  for (size_t g = 0; g < file.groups.size(); ++g) {
    const WorkloadFile::Group& group = file.groups[g];
    PREPOST_CHECK(!group.after || *group.after < g);
    PREPOST_CHECK(group.start >= 0 && group.start <= prepost::sim::kWorkloadSecondsMax);
    std::set<uint32_t> hosts;
    for (const prepost::NodeId host : group.hosts)
      PREPOST_CHECK(host.value < file.hosts && hosts.insert(host.value).second);
    PREPOST_CHECK(group.hosts.empty() || !group.plan_path.empty() ||
                  group.hosts.size() == group.spec.nodes);
  }
}

void RunSmall(const WorkloadFile& file) {
  if (file.hosts > kHostsMax || file.groups.size() > kGroupsMax) return;
  std::deque<prepost::VerifiedPlan> plans;
  std::vector<Group> groups;
  for (const WorkloadFile::Group& group : file.groups) {
    const prepost::Spec spec = WithImplied(group.spec);
    if (!group.plan_path.empty() || spec.nodes > file.hosts || !spec.message_bytes ||
        spec.block_bytes == 0 || *spec.message_bytes / spec.block_bytes >= kBlocksMax) {
      return;
    }
    prepost::Result<prepost::VerifiedPlan> plan = prepost::Compile(spec);
    if (!plan.ok()) return;
    plans.push_back(*std::move(plan));
    groups.push_back({.plan = &plans.back(),
                      .hosts = group.hosts,
                      .start = static_cast<prepost::emulated::Picoseconds>(group.start * 1e12),
                      .after = group.after});
  }
  prepost::Network network = prepost::Network::Uniform(file.hosts);
  for (prepost::Network::Node& node : network.nodes) node.out_rate = node.in_rate = 1e9;
  const auto run = prepost::sim::RunCpuDriven(groups, network, {});
  if (!run.ok()) {
    PREPOST_CHECK(!run.status().message().empty());
    return;
  }
  for (size_t g = 0; g < groups.size(); ++g) {
    PREPOST_CHECK(run->groups[g].start >= groups[g].start);
    if (!groups[g].after) continue;
    PREPOST_CHECK(run->groups[g].start >= run->groups[*groups[g].after].completion);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  const prepost::Result<WorkloadFile> file = prepost::sim::ReadWorkload(in, "workload");
  if (!file.ok()) {
    PREPOST_CHECK(file.status().ToString().starts_with("workload:"));
    return 0;
  }
  ::CheckGroups(*file);
  RunSmall(*file);
  return 0;
}
