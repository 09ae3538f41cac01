// SPDX-License-Identifier: Apache-2.0
#include "tools/compare_virtual.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "prepost/backends/emulated/comparison.h"
#include "prepost/ir/count.h"
#include "prepost/ir/utf8.h"
#include "prepost/runtime/statistics.h"
#include "prepost/version.h"
#include "tools/profile_settings.h"
#include "tools/simulation.h"
#include "tools/simulation_print.h"
#include "tools/simulation_run.h"

namespace prepost::tools {
namespace {

using emulated::Picoseconds;
using emulated::Way;
using Json = nlohmann::ordered_json;

double Nanoseconds(Picoseconds time) {
  return static_cast<double>(time) / static_cast<double>(emulated::kPicosecondsPerNanosecond);
}

/// What hosts do and how long it takes, one way.
struct WayFound {
  uint64_t requests_before = 0;  ///< work requests
  uint64_t requests_after = 0;   ///< from the start on
  uint64_t doorbells = 0;        ///< the same
  uint64_t wakeups = 0;
  uint64_t completions_read = 0;
  uint64_t rearms = 0;
  std::vector<double> latency_ns = {};  ///< by node
  double completion_ns = 0;
  double skew_ns = 0;
  double host_cpu_ns = 0;  ///< from the start on, all hosts
  double arm_cpu_ns = 0;   ///< before, all hosts
  double seen_ns = 0;      ///< from the end until the last host has seen it
};

void FillTimes(Picoseconds completion, WayFound* way) {
  way->completion_ns = Nanoseconds(completion);
  const auto [first, last] = std::ranges::minmax(way->latency_ns);
  way->skew_ns = last - first;
}

WayFound FoundCpu(const Simulation& it) {
  WayFound way;
  for (const auto& node : it.cpu->groups[0].nodes) {
    way.requests_after += node.work.posts;
    way.doorbells += node.work.doorbells;
    way.wakeups += node.work.wakeups;
    way.completions_read += node.work.completions;
    way.host_cpu_ns += Nanoseconds(node.work.busy);
    way.latency_ns.push_back(Nanoseconds(node.completion));
  }
  // What is not posted later has been when the hosts armed: receives that no credit grants.
  way.requests_before = it.plan->ops().size() - way.requests_after;
  way.arm_cpu_ns = static_cast<double>(way.requests_before) * it.profile.host.post_receive * 1e9;
  FillTimes(it.cpu_times.completion, &way);
  return way;
}

WayFound FoundPreposted(const Simulation& it) {
  WayFound way;
  for (const auto& node : it.offload->groups[0].nodes)
    way.latency_ns.push_back(Nanoseconds(node.completion));
  const PrepostedWork work = WorkOf(it, *it.offload);
  way.requests_before = work.posts_before;
  way.requests_after = work.posts;
  way.doorbells = work.doorbells;
  way.wakeups = work.wakeups;
  way.completions_read = work.completions;
  way.rearms = work.rearms;
  way.arm_cpu_ns = work.arming_seconds * 1e9;
  way.seen_ns = DetectionSeconds(it) * 1e9;
  way.host_cpu_ns = work.busy_seconds * 1e9;
  FillTimes(it.offload_times.completion, &way);
  return way;
}

void Print(const Simulation& it, const VirtualComparison& options, std::ostream& out) {
  const PlanHeader& plan = it.plan->header();
  const WayFound cpu = FoundCpu(it), preposted = FoundPreposted(it);
  out << fmt::format(
      "{} on {}, {} in {} of {}; queues {}, device profile {}; hosts wait by {}\nmodelled, with "
      "the "
      "profile {} ({})\n",
      Printable(plan.algorithm), Count(plan.nodes, "node"), Count(plan.message.bytes, "byte"),
      Count(plan.message.blocks, "block"), plan.message.block_bytes, it.mode,
      options.lower.profile.name, it.wait, Printable(it.profile.name), Printable(it.profile_path));
  out << fmt::format("\n{:<34} {:>16} {:>16}\n", "per transfer, all hosts together",
                     Name(Way::kCpuDriven), Name(Way::kPreposted));
  const auto count = [&](const char* label, uint64_t WayFound::*field) {
    out << fmt::format("  {:<32} {:>16} {:>16}\n", label, cpu.*field, preposted.*field);
  };
  count("work requests before the start", &WayFound::requests_before);
  count("work requests from the start on", &WayFound::requests_after);
  count("doorbells from the start on", &WayFound::doorbells);
  count("wake-ups", &WayFound::wakeups);
  count("completions read", &WayFound::completions_read);
  if (preposted.rearms != 0) count("re-arms during it", &WayFound::rearms);
  out << fmt::format("\n{:<34} {:>16} {:>16}\n", "milliseconds, modelled", Name(Way::kCpuDriven),
                     Name(Way::kPreposted));
  const auto line = [&](const char* label, const auto& value_ns) {
    out << fmt::format("  {:<32} {:>16.3f} {:>16.3f}\n", label, value_ns(cpu) / 1e6,
                       value_ns(preposted) / 1e6);
  };
  line("a node's latency, min", [](const WayFound& w) { return Summarise(w.latency_ns).min; });
  line("  median", [](const WayFound& w) { return Summarise(w.latency_ns).median; });
  line("  p99", [](const WayFound& w) { return Summarise(w.latency_ns).p99; });
  line("last node done", [](const WayFound& w) { return w.completion_ns; });
  line("  and its host knows", [](const WayFound& w) { return w.completion_ns + w.seen_ns; });
  line("skew", [](const WayFound& w) { return w.skew_ns; });
  line("processor time of hosts", [](const WayFound& w) { return w.host_cpu_ns; });
  line("  of arming", [](const WayFound& w) { return w.arm_cpu_ns; });
  if (preposted.completion_ns > 0) {
    out << fmt::format("\nlast node done, cpu-driven / preposted: {:.3f}\n",
                       cpu.completion_ns / preposted.completion_ns);
  }
  out << "\n";
}

Json SummaryJson(const std::vector<double>& values) {
  const Summary summary = Summarise(values);
  return {{"count", summary.count},
          {"min", summary.min},
          {"median", summary.median},
          {"p99", summary.p99},
          {"max", summary.max}};
}

Json WayJson(const WayFound& way) {
  return {{"work_requests_before", way.requests_before},
          {"work_requests", way.requests_after},
          {"doorbells", way.doorbells},
          {"wakeups", way.wakeups},
          {"completions_read", way.completions_read},
          {"rearms", way.rearms},
          {"latency_ns", SummaryJson(way.latency_ns)},
          {"completion_ns", SummaryJson({way.completion_ns})},
          {"skew_ns", SummaryJson({way.skew_ns})},
          {"host_cpu_ns", SummaryJson({way.host_cpu_ns})},
          {"arm_cpu_ns", SummaryJson({way.arm_cpu_ns})},
          {"seen_ns", way.seen_ns}};
}

Json ComparedJson(const Simulation& it, const VirtualComparison& options) {
  const PlanHeader& plan = it.plan->header();
  const WayFound cpu = FoundCpu(it), preposted = FoundPreposted(it);
  Json json = {{"algorithm", plan.algorithm},
               {"nodes", plan.nodes},
               {"message_bytes", plan.message.bytes},
               {"block_bytes", plan.message.block_bytes},
               {"blocks", plan.message.blocks},
               {"wait", it.wait},
               {"seed", it.seed},
               {"mode", it.mode},
               {"device_profile", options.lower.profile.name}};
  json[std::string(Name(Way::kCpuDriven))] = WayJson(cpu);
  json[std::string(Name(Way::kPreposted))] = WayJson(preposted);
  const double of_medians =
      preposted.completion_ns > 0 ? cpu.completion_ns / preposted.completion_ns : 1;
  json["completion_ratio"] = {{"of_medians", of_medians}};
  return json;
}

constexpr const char* kMeaning =
    "A model's figures, and no better than the profile's numbers (docs/profiles.md). Each way runs "
    "once: the\nsame input gives the same times. Processor time of hosts that poll is what they "
    "do, "
    "not what they look in\nvain. A preposted transfer ends with its last final completion; arming "
    "comes before, its hosts see the end after.\n";

}  // namespace

Status CompareVirtually(const std::vector<SimulatedPlan>& plans, const VirtualComparison& options,
                        std::ostream& out) {
  const Result<ProfileText> text = LoadProfileText(options.profile_path);
  if (!text.ok()) return text.status();
  const Result<emulated::Profile> profile = ProfileWith(*text, options.settings);
  if (!profile.ok()) return profile.status();
  if (profile->tcp) {
    return Rejected("its cluster sends over TCP, where no NIC can be preposted",
                    options.profile_path);
  }
  Json all = Json::array();
  for (const SimulatedPlan& plan : plans) {
    Result<Network> network = plan.NetworkIn(profile->network);
    if (!network.ok()) return network.status();
    Simulation simulation = {.groups = {{.plan = &plan.plan}},
                             .plan = &plan.plan,
                             .profile = *profile,
                             .profile_path = options.profile_path,
                             .command = "",
                             .network = *std::move(network),
                             .seed = options.seed};
    PREPOST_RETURN_IF_ERROR(
        RunSimulation({.lower = options.lower, .wait = options.wait}, &simulation));
    if (options.is_json) {
      all.push_back(ComparedJson(simulation, options));
    } else {
      Print(simulation, options, out);
    }
  }
  if (!options.is_json) {
    out << kMeaning;
    return {};
  }
  const Json json = {{"generator", kGenerator},
                     {"device", "emulated"},
                     {"clock", "virtual"},
                     {"modelled", true},
                     {"profile", {{"name", profile->name}, {"file", options.profile_path}}},
                     {"comparisons", std::move(all)}};
  PrintJson(json, out);
  return {};
}

}  // namespace prepost::tools
