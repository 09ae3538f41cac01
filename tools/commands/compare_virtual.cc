// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/compare_virtual.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "backends/local/comparison.h"
#include "ir/utf8.h"
#include "ir/version.h"
#include "runtime/statistics.h"
#include "sim/simulation.h"
#include "tools/commands/simulation_run.h"
#include "tools/flags/named_file.h"
#include "tools/flags/profile_settings.h"
#include "tools/report/compare_print.h"
#include "tools/report/plan_text.h"
#include "tools/report/simulation_print.h"

namespace prepost::tools {
namespace {

using emulated::Picoseconds;
using local::Way;
using Json = nlohmann::ordered_json;

/// What is other than in the profile, or drawn.
std::vector<std::string> Deviations(const ModelledComparison& options) {
  std::vector<std::string> deviations;
  for (const std::string& setting : options.settings) deviations.push_back("--set " + setting);
  deviations.insert(deviations.end(), options.others.begin(), options.others.end());
  if (options.profile.host.preemptions_per_second != 0)
    deviations.push_back(fmt::format("seed {}", options.seed));
  return deviations;
}

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
  std::vector<double> latency_ns = {};  ///< by node: its host knows
  double received_ns = 0;               ///< all nodes have the message
  double completion_ns = 0;             ///< the last host knows
  double skew_ns = 0;                   ///< of hosts
  double host_cpu_ns = 0;               ///< from the start on, all hosts
  double arm_cpu_ns = 0;                ///< before, all hosts
};

void FillTimes(const sim::RunTimes& times, WayFound* way) {
  for (const Picoseconds at : times.groups[0].knows) way->latency_ns.push_back(Nanoseconds(at));
  way->received_ns = Nanoseconds(times.completion);
  way->completion_ns = Nanoseconds(times.known);
  const auto [first, last] = std::ranges::minmax(way->latency_ns);
  way->skew_ns = last - first;
}

WayFound FoundCpu(const sim::Simulation& it) {
  WayFound way;
  for (const auto& node : it.cpu->groups[0].nodes) {
    way.requests_after += node.work.posts;
    way.doorbells += node.work.doorbells;
    way.wakeups += node.work.wakeups;
    way.completions_read += node.work.completions;
    way.host_cpu_ns += Nanoseconds(node.work.busy);
  }
  way.requests_before = PostsBefore(it, *it.cpu);
  way.arm_cpu_ns =
      static_cast<double>(way.requests_before) * sim::ToSeconds(it.profile.host.post_receive) * 1e9;
  FillTimes(it.cpu_times, &way);
  return way;
}

WayFound FoundPreposted(const sim::Simulation& it) {
  WayFound way;
  const sim::PrepostedWork work = WorkOf(it, *it.offload);
  way.requests_before = work.posts_before;
  way.requests_after = work.posts;
  way.doorbells = work.doorbells;
  way.wakeups = work.wakeups;
  way.completions_read = work.completions;
  way.rearms = work.rearms;
  way.arm_cpu_ns = work.arming_seconds * 1e9;
  way.host_cpu_ns = work.busy_seconds * 1e9;
  FillTimes(it.offload_times, &way);
  return way;
}

void Print(const sim::Simulation& it, const ModelledComparison& options, std::ostream& out) {
  const WayFound cpu = FoundCpu(it), preposted = FoundPreposted(it);
  out << ComparedHead(it.plan->header(), options.lower, it.wait)
      << fmt::format("modelled, with the profile {} ({}){}\n", Printable(it.profile.name),
                     Printable(it.profile_path), DeviationsText(it.deviations));
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
  line("last node has the message", [](const WayFound& w) { return w.received_ns; });
  line("a host knows after, min", [](const WayFound& w) { return Summarise(w.latency_ns).min; });
  line("  median", [](const WayFound& w) { return Summarise(w.latency_ns).median; });
  line("  p99", [](const WayFound& w) { return Summarise(w.latency_ns).p99; });
  line("  max: last node done", [](const WayFound& w) { return w.completion_ns; });
  line("skew of hosts", [](const WayFound& w) { return w.skew_ns; });
  line("processor time of hosts", [](const WayFound& w) { return w.host_cpu_ns; });
  line("  of arming", [](const WayFound& w) { return w.arm_cpu_ns; });
  if (const std::optional<double> barrier = BarrierSeconds(it))
    line("barrier, after arming", [&](const WayFound&) { return *barrier * 1e9; });
  if (const sim::Gain gain = GainOf(it); gain.completion > 0) {
    out << fmt::format(
        "\ncpu-driven / preposted: {:.3f} until the last node has the message, {:.3f} until the "
        "last "
        "host knows\noffload time, from the last doorbell to the last final completion: {}\n",
        gain.completion, gain.known, TimeText(it.offload_times.groups[0].offload()));
  }
  out << "\n";
}

Json ModelledSummaryJson(const std::vector<double>& values) {
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
          {"latency_ns", ModelledSummaryJson(way.latency_ns)},
          {"received_ns", ModelledSummaryJson({way.received_ns})},
          {"completion_ns", ModelledSummaryJson({way.completion_ns})},
          {"skew_ns", ModelledSummaryJson({way.skew_ns})},
          {"host_cpu_ns", ModelledSummaryJson({way.host_cpu_ns})},
          {"arm_cpu_ns", ModelledSummaryJson({way.arm_cpu_ns})}};
}

Json ComparedJson(const sim::Simulation& it, const ModelledComparison& options) {
  const WayFound cpu = FoundCpu(it), preposted = FoundPreposted(it);
  Json json = PlanJson(it.plan->header());
  json.update({{"wait", it.wait},
               {"seed", it.seed},
               {"mode", it.mode},
               {"device_profile", options.lower.profile.name}});
  json[std::string(Name(Way::kCpuDriven))] = WayJson(cpu);
  json[std::string(Name(Way::kPreposted))] = WayJson(preposted);
  const sim::GroupTimes& group = it.offload_times.groups[0];
  json["offload_ns"] = Nanoseconds(group.offload());
  const std::optional<double> barrier = BarrierSeconds(it);
  json["barrier_ns"] = barrier ? Json(*barrier * 1e9) : Json();
  json["detection_ns"] = DetectionSeconds(it) * 1e9;
  const sim::Gain gain = GainOf(it);
  // Null where nothing is sent.
  const auto ratio = [](double value) {
    return Json{{"of_medians", value > 0 ? Json(value) : Json()}};
  };
  json["received_ratio"] = ratio(gain.completion);
  json["completion_ratio"] = ratio(gain.known);
  return json;
}

constexpr const char* kMeaning =
    "A model's figures, and no better than the profile's numbers (docs/simulate.md). Each way runs "
    "once: the\nsame input gives the same times. Processor time of hosts that poll is what they "
    "do, "
    "not what they look in\nvain. Times begin when all are armed; arming comes before.\n";

}  // namespace

Status CompareVirtually(const std::vector<SimulatedPlan>& plans, const ModelledComparison& options,
                        std::ostream& out) {
  const sim::Profile& profile = options.profile;
  Json all = Json::array();
  for (const SimulatedPlan& plan : plans) {
    Result<Network> network = plan.NetworkIn(profile.network);
    if (!network.ok()) return network.status();
    sim::Simulation simulation = {.groups = {{.plan = &plan.plan}},
                                  .plan = &plan.plan,
                                  .profile = profile,
                                  .profile_path = options.profile_path,
                                  .command = "",
                                  .deviations = Deviations(options),
                                  .network = *std::move(network),
                                  .seed = options.seed};
    const SimulationOptions run = {.lower = options.lower, .wait = options.wait};
    const Status status = RunSimulation(run, &simulation);
    if (!status.ok()) {
      std::vector<std::string> given;
      for (const ProfileSetting& it : SettingsOf(options.settings)) given.push_back(it.given);
      return FailureOf(status, run, simulation, given,
                       options.path.empty() ? "the plan" : NameOfInput(options.path));
    }
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
                     {"profile", {{"name", profile.name}, {"file", options.profile_path}}},
                     {"deviations", Deviations(options)},
                     {"comparisons", std::move(all)}};
  PrintJson(json, out);
  return {};
}

}  // namespace prepost::tools
