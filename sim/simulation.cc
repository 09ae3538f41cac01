// SPDX-License-Identifier: Apache-2.0
#include "sim/simulation.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <utility>

#include "ir/analysis/bounds.h"
#include "ir/analysis/collective_bounds.h"
#include "runtime/group/gate_tree.h"

namespace prepost::sim {
namespace {

/// The part of the network that a group's nodes see, by node of the plan.
Network NetworkOfGroup(const Network& network, const Group& group) {
  Network part = network.WithoutNodes();
  const uint32_t nodes = group.plan->header().nodes;
  std::map<NodeId, NodeId> node_of;  // by host
  for (uint32_t i = 0; i < nodes; ++i) {
    const NodeId host = group.HostOf(NodeId(i));
    part.nodes.push_back(network.nodes[host.index()]);
    node_of[host] = NodeId(i);
  }
  const auto add = [&](NodeId from, NodeId to, double rate) {
    part.pairs.push_back({node_of[from], node_of[to], rate});
  };
  if (network.pairs.size() > size_t{nodes} * nodes) {
    for (const auto& from : node_of) {
      for (const auto& to : node_of) {
        const std::optional<uint32_t> pair = network.PairOf(from.first, to.first);
        if (pair) add(from.first, to.first, network.pairs[*pair].rate);
      }
    }
  } else {
    for (const Network::Pair& pair : network.pairs) {
      const bool is_part = node_of.contains(pair.from) && node_of.contains(pair.to);
      if (is_part) add(pair.from, pair.to, pair.rate);
    }
  }
  std::ranges::sort(part.pairs, {}, [](const auto& pair) { return std::pair(pair.from, pair.to); });
  return part;
}

/// What a group needs by itself.
double BoundOf(const Network& network, const Group& group) {
  return BoundNetwork(NetworkOfGroup(network, group), group.plan->header()).seconds;
}

/// Adds what the next node took. What no node sends to a target, it has from the start.
void AddNode(Picoseconds received, Picoseconds end, Picoseconds knows, bool is_target,
             GroupTimes* times) {
  received = std::max(received, times->start);
  times->received.push_back(is_target ? received : times->start);
  times->ends.push_back(end);
  times->knows.push_back(knows);
  times->known = std::max(times->known, knows);
  if (!is_target) return;
  times->first = std::min(times->first, received);
  times->completion = std::max(times->completion, received);
}

/// Of a run whose groups have nodes; `knows`: when a node's host does.
template <typename Run, typename Knows>
RunTimes TimesOfRun(const Simulation& it, const Run& run, Knows knows) {
  RunTimes times;
  for (size_t g = 0; g < run.groups.size(); ++g) {
    const auto& group = run.groups[g];
    const Roles roles = it.groups[g].plan->header().roles();
    GroupTimes& found = times.groups.emplace_back(GroupTimes{
        .start = group.start, .first = kNever, .completion = group.start, .end = group.completion});
    for (size_t i = 0; i < group.nodes.size(); ++i) {
      const auto& node = group.nodes[i];
      AddNode(node.received, node.completion, knows(node), roles.IsTarget(NodeId::FromIndex(i)),
              &found);
    }
    found.root_known = found.knows[it.groups[g].plan->header().collective.root.index()];
    found.first = std::min(found.first, found.completion);  // of a root alone
    times.completion = std::max(times.completion, found.completion);
    times.known = std::max(times.known, found.known);
    times.end = std::max(times.end, found.end);
  }
  return times;
}

/// Seconds of the host that writes most WQEs; `count` says how many of a node.
template <typename CountOf>
double LongestByHost(const Simulation& it, CountOf count) {
  std::vector<uint64_t> by_host(it.network.nodes.size());
  for (size_t g = 0; g < it.groups.size(); ++g) {
    for (uint32_t i = 0; i < it.groups[g].plan->header().nodes; ++i)
      by_host[it.groups[g].HostOf(NodeId(i)).index()] += count(g, NodeId(i));
  }
  const uint64_t most = by_host.empty() ? 0 : std::ranges::max(by_host);
  return static_cast<double>(most) * ToSeconds(it.profile.host.post_receive);
}

}  // namespace

std::vector<Group> RotatedGroups(const VerifiedPlan& plan, uint32_t count) {
  const uint32_t nodes = plan.header().nodes;
  std::vector<Group> groups;
  for (uint32_t g = 0; g < count; ++g) {
    Group& group = groups.emplace_back(Group{.plan = &plan});
    for (uint32_t i = 0; i < nodes; ++i) group.hosts.push_back(NodeId((i + g) % nodes));
  }
  return groups;
}

// Whatever starts when, all of it happens between 0 and the end.
double BoundOf(const Simulation& it) {
  const Network& network = it.network;
  if (it.groups.size() == 1 && !it.is_of_groups) return BoundOf(network, it.groups.front());
  const size_t hosts = network.nodes.size();
  std::vector<double> out(hosts), in(hosts);  // bytes of messages that begin and end there
  double least = 0, ports = 0, all = 0, out_rate = 0, both_rate = 0;
  for (const Group& group : it.groups) {
    const PlanHeader& header = group.plan->header();
    const std::vector<Passing> passing = PassingOfNodes(header);
    for (uint32_t i = 0; i < header.nodes; ++i) {
      out[group.HostOf(NodeId(i)).index()] += passing[i].bytes_out;
      in[group.HostOf(NodeId(i)).index()] += passing[i].bytes_in;
    }
    all += BytesInAll(header);
    if (const double alone = BoundOf(network, group); alone > 0)
      least = std::max(least, ToSeconds(group.start) + alone);
  }
  for (uint32_t i = 0; i < hosts; ++i) {
    const Network::Node& node = network.nodes[i];
    const double both = network.RateOf({ResourceKind::kNodeBoth, i});
    ports =
        std::max({ports, out[i] / node.out_rate, in[i] / node.in_rate, (out[i] + in[i]) / both});
    out_rate += node.out_rate;
    both_rate += std::min(both, node.out_rate + node.in_rate);
  }
  if (hosts == 0) return least;
  ports = std::max({ports, all / out_rate, 2 * all / both_rate});
  return ports > 0 ? std::max(least, ports + LowestLatency(network)) : least;
}

RunTimes TimesOf(const Simulation& it, const PrepostedResult& run) {
  RunTimes times =
      TimesOfRun(it, run, [](const PrepostedResult::Node& node) { return node.known; });
  for (size_t g = 0; g < run.groups.size(); ++g)
    times.groups[g].doorbells = run.groups[g].doorbells;
  return times;
}

RunTimes TimesOf(const Simulation& it, const CpuDrivenResult& run) {
  return TimesOfRun(it, run, [](const CpuDrivenResult::Node& node) { return node.completion; });
}

Gain GainOf(const Simulation& it) {
  if (!it.offload || !it.cpu || it.offload_times.completion == 0) return {};
  const auto ratio = [](Picoseconds cpu, Picoseconds offload) {
    return offload > 0 ? ToSeconds(cpu) / ToSeconds(offload) : 0;
  };
  return {ratio(it.cpu_times.completion, it.offload_times.completion),
          ratio(it.cpu_times.known, it.offload_times.known)};
}

bool NeedsBarrier(const Simulation& it, bool is_offload) {
  return is_offload || std::ranges::any_of(it.groups, [](const Group& group) {
           return group.plan->header().ready.mode == ReadyMode::kBarrier;
         });
}

std::optional<Gain> GainWithBarrier(const Simulation& it) {
  const std::optional<double> barrier = BarrierSeconds(it);
  const Gain alone = GainOf(it);
  if (!barrier || it.plan == nullptr || alone.completion <= 0) return std::nullopt;
  const double before_cpu = NeedsBarrier(it, /*is_offload=*/false) ? *barrier : 0;
  const auto ratio = [&](Picoseconds cpu, Picoseconds offload) {
    return (ToSeconds(cpu) + before_cpu) / (ToSeconds(offload) + *barrier);
  };
  return Gain{ratio(it.cpu_times.completion, it.offload_times.completion),
              ratio(it.cpu_times.known, it.offload_times.known)};
}

void PrepostedWork::Add(const PrepostedWork& other) {
  posts_before += other.posts_before;
  posts += other.posts;
  doorbells += other.doorbells;
  doorbells_later += other.doorbells_later;
  rearms += other.rearms;
  completions += other.completions;
  wakeups += other.wakeups;
  arming_seconds += other.arming_seconds;
  rearming_seconds += other.rearming_seconds;
  busy_seconds += other.busy_seconds;
}

PrepostedWork WorkOf(const Simulation& it, const PrepostedResult::Node& node) {
  const HostCosts& host = it.profile.host;
  PrepostedWork work = {
      .posts_before = node.wqes,
      .posts = node.wqes_later,
      .doorbells = node.rings + node.rings_later,
      .doorbells_later = node.rings_later,
      .rearms = node.rearms,
      .completions = node.completions,
      .wakeups = node.wakeups,
      .arming_seconds = static_cast<double>(node.wqes) * ToSeconds(host.post_receive),
      .rearming_seconds = ToSeconds(node.rearming)};
  work.busy_seconds = work.rearming_seconds +
                      static_cast<double>(node.polls) * ToSeconds(host.poll) +
                      static_cast<double>(node.completions) * ToSeconds(host.completion);
  return work;
}

PrepostedWork WorkOf(const Simulation& it, const PrepostedResult& run) {
  PrepostedWork sum;
  for (const PrepostedResult::Group& group : run.groups) {
    for (const PrepostedResult::Node& node : group.nodes) sum.Add(WorkOf(it, node));
  }
  return sum;
}

HostWork WorkOf(const CpuDrivenResult& run) {
  HostWork sum;
  for (const CpuDrivenResult::Group& group : run.groups) {
    for (const CpuDrivenResult::Node& node : group.nodes) {
      sum.polls += node.work.polls;
      sum.completions += node.work.completions;
      sum.posts += node.work.posts;
      sum.doorbells += node.work.doorbells;
      sum.wakeups += node.work.wakeups;
      sum.busy += node.work.busy;
    }
  }
  return sum;
}

double ArmingSeconds(const Simulation& it, const PrepostedResult& run) {
  return LongestByHost(
      it, [&](size_t g, NodeId node) { return run.groups[g].nodes[node.index()].wqes; });
}

uint64_t PostsBefore(const Simulation& it, const CpuDrivenResult& run, size_t group, NodeId node) {
  return it.groups[group].plan->programs()[node.index()].op_count -
         run.groups[group].nodes[node.index()].work.posts;
}

uint64_t PostsBefore(const Simulation& it, const CpuDrivenResult& run) {
  uint64_t sum = 0;
  for (size_t g = 0; g < run.groups.size(); ++g) {
    for (uint32_t i = 0; i < run.groups[g].nodes.size(); ++i)
      sum += PostsBefore(it, run, g, NodeId(i));
  }
  return sum;
}

double ArmingSeconds(const Simulation& it, const CpuDrivenResult& run) {
  return LongestByHost(it, [&](size_t g, NodeId node) { return PostsBefore(it, run, g, node); });
}

namespace {

double BarrierSecondsOf(const Group& group, const Network& network, const ControlProfile& control) {
  const NodeId leader = group.plan->header().collective.root;
  const GateTree tree(group.plan->header().nodes, leader);
  std::vector<NodeId> order = {leader};  // children after parents
  for (size_t i = 0; i < order.size(); ++i) {
    const std::vector<NodeId> children = tree.ChildrenOf(order[i]);
    order.insert(order.end(), children.begin(), children.end());
  }
  // A message of one to another: its send, and the way to where it is received.
  const auto step = [&](NodeId from, NodeId to) {
    const double path = network.Latency(group.HostOf(from), group.HostOf(to));
    return control.system_call + control.latency + path;
  };
  // Of a node with children: a receive or a send of each, and of its own message.
  const auto calls = [&](const std::vector<NodeId>& children) {
    return static_cast<double>(children.empty() ? 0 : children.size() + 1) * control.system_call;
  };
  std::vector<double> reported(order.size(), 0), released(order.size(), 0);
  for (const NodeId node : order | std::views::reverse) {
    double last = 0;
    for (const NodeId child : tree.ChildrenOf(node))
      last = std::max(last, reported[child.index()] + step(child, node));
    reported[node.index()] = last + calls(tree.ChildrenOf(node));
  }
  for (const NodeId node : order) {
    const std::vector<NodeId> children = tree.ChildrenOf(node);
    for (const NodeId child : children)
      released[child.index()] = released[node.index()] + calls(children) + step(node, child);
  }
  return reported[leader.index()] + std::ranges::max(released);
}

}  // namespace

std::optional<double> BarrierSeconds(const Simulation& it) {
  if (!it.profile.control) return std::nullopt;
  double longest = 0;
  for (const Group& group : it.groups)
    longest = std::max(longest, BarrierSecondsOf(group, it.network, *it.profile.control));
  return longest;
}

double DetectionSeconds(const Simulation& it) {
  Picoseconds found = 0, last = -1;
  for (const GroupTimes& group : it.offload_times.groups) {
    for (size_t i = 0; i < group.knows.size(); ++i) {
      if (group.knows[i] <= last) continue;
      last = group.knows[i];
      found = last - group.ends[i];
    }
  }
  return ToSeconds(found);
}

double ToSeconds(Picoseconds time) {
  return static_cast<double>(time) / static_cast<double>(kPicosecondsPerSecond);
}

}  // namespace prepost::sim
