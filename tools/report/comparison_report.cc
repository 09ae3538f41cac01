// SPDX-License-Identifier: Apache-2.0
#include "tools/report/comparison_report.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <ostream>
#include <string_view>

#include "ir/base/count.h"
#include "ir/base/utf8.h"
#include "ir/version.h"
#include "planning/simulation/simulation_report.h"
#include "planning/text/plan_text.h"
#include "runtime/base/statistics.h"

namespace prepost::tools {
namespace {

using local::Comparison;
using local::HostCounts;
using local::TransferSample;
using local::Way;
using sim::Picoseconds;
using Json = nlohmann::ordered_json;
using Lines = std::vector<ComparedPlan::Line>;

constexpr Way kWays[] = {Way::kCpuDriven, Way::kPreposted};

std::string MillisecondsText(double ns) { return fmt::format("{:.3f}", ns / 1e6); }

/// "inline", "managed by one master per lane".
std::string QueuesText(const nic::LowerOptions& lower) {
  const std::string mode(Name(lower.mode));
  if (lower.mode != nic::LoweringMode::kManaged) return mode;
  return fmt::format("{} by one master per {}", mode, Name(lower.masters));
}

/// The plan, and how both ways carry it.
std::string HeadOf(const PlanHeader& plan, const nic::LowerOptions& lower, std::string_view wait) {
  return fmt::format("{}\nqueues {}, device profile {}; hosts wait by {}\n", PlanText(plan),
                     QueuesText(lower), Printable(lower.profile.name), wait);
}

Json SummaryJson(const Summary& summary) {
  return {{"count", summary.count},
          {"min", summary.min},
          {"median", summary.median},
          {"p99", summary.p99},
          {"max", summary.max}};
}

/// One line of the counts: which step of a transfer, and what of it.
struct CountLine {
  const char* label;
  HostCounts TransferSample::*step;
  uint64_t HostCounts::*count;
};
constexpr CountLine kRearmsLine = {"re-arms during it", &TransferSample::during,
                                   &HostCounts::rearms};
constexpr CountLine kCountLines[] = {
    {"work requests before the start", &TransferSample::before, &HostCounts::work_requests},
    {"work requests at the start", &TransferSample::at_start, &HostCounts::work_requests},
    {"work requests during it", &TransferSample::during, &HostCounts::work_requests},
    {"doorbells at the start", &TransferSample::at_start, &HostCounts::doorbells},
    {"doorbells during it", &TransferSample::during, &HostCounts::doorbells},
    {"requests for events before it", &TransferSample::before, &HostCounts::event_requests},
    {"requests for events during it", &TransferSample::during, &HostCounts::event_requests},
    {"wake-ups", &TransferSample::during, &HostCounts::wakeups},
    {"completions read", &TransferSample::during, &HostCounts::cqes_read},
};

/// "12", or "12..15" where repetitions differ.
std::string RangeOf(const std::vector<TransferSample>& samples, const CountLine& line) {
  const auto count = [&](const TransferSample& sample) { return sample.*line.step.*line.count; };
  const auto [least, most] = std::ranges::minmax(samples, {}, count);
  return count(least) == count(most) ? fmt::format("{}", count(least))
                                     : fmt::format("{}..{}", count(least), count(most));
}

Summary SummariseNs(const std::vector<TransferSample>& samples, uint64_t TransferSample::*field) {
  std::vector<double> values;
  for (const TransferSample& sample : samples) values.push_back(static_cast<double>(sample.*field));
  return Summarise(std::move(values));
}

/// Summarises the latency of every node in every repetition.
Summary SummariseLatencies(const std::vector<TransferSample>& samples) {
  std::vector<double> values;
  for (const TransferSample& sample : samples) {
    for (const uint64_t ns : sample.latency_ns) values.push_back(static_cast<double>(ns));
  }
  return Summarise(std::move(values));
}

constexpr CountLine kDeviceCountLines[] = {
    {"work requests before the start", &TransferSample::before, &HostCounts::work_requests},
    {"work requests at the start", &TransferSample::at_start, &HostCounts::work_requests},
    {"work requests during it", &TransferSample::during, &HostCounts::work_requests},
    {"wake-ups", &TransferSample::during, &HostCounts::wakeups},
    {"completions read", &TransferSample::during, &HostCounts::cqes_read},
};

/// `on_nics`: on emulated NICs, which count more.
Lines CountsOf(const Comparison& comparison, bool on_nics) {
  Lines lines;
  const auto add = [&](const CountLine& line) {
    lines.push_back({line.label,
                     {RangeOf(comparison.of(Way::kCpuDriven), line),
                      RangeOf(comparison.of(Way::kPreposted), line)}});
  };
  if (on_nics) {
    for (const CountLine& line : kCountLines) add(line);
  } else {
    for (const CountLine& line : kDeviceCountLines) add(line);
  }
  if (comparison.rearms_max == 0) return lines;
  add(kRearmsLine);
  lines.push_back({"  bound", {"", fmt::to_string(comparison.rearms_max)}});
  return lines;
}

Lines TimesOf(const Comparison& comparison, bool on_nics) {
  Lines lines;
  const auto add = [&](const char* label, const auto& value_ns) {
    lines.push_back({label,
                     {MillisecondsText(value_ns(comparison.of(Way::kCpuDriven))),
                      MillisecondsText(value_ns(comparison.of(Way::kPreposted)))}});
  };
  const auto median_of = [](uint64_t TransferSample::*field) {
    return [field](const auto& samples) { return SummariseNs(samples, field).median; };
  };
  add("a node's latency, min", [](const auto& s) { return SummariseLatencies(s).min; });
  add("  median", [](const auto& s) { return SummariseLatencies(s).median; });
  add("  p99", [](const auto& s) { return SummariseLatencies(s).p99; });
  add("  max", [](const auto& s) { return SummariseLatencies(s).max; });
  add("last node done, median", median_of(&TransferSample::completion_ns));
  add("skew, median", median_of(&TransferSample::skew_ns));
  add("  max", [](const auto& s) { return SummariseNs(s, &TransferSample::skew_ns).max; });
  add("processor time of hosts, median", median_of(&TransferSample::host_cpu_ns));
  if (!on_nics) return lines;
  add("  of the NICs' thread, median", median_of(&TransferSample::engine_cpu_ns));
  add("  of arming, median", median_of(&TransferSample::arm_cpu_ns));
  return lines;
}

Json CountsJson(const HostCounts& counts) {
  return {{"work_requests", counts.work_requests},   {"doorbells", counts.doorbells},
          {"event_requests", counts.event_requests}, {"wakeups", counts.wakeups},
          {"completions_read", counts.cqes_read},    {"rearms", counts.rearms}};
}

Json SampleJson(const TransferSample& sample) {
  return {{"before", CountsJson(sample.before)},   {"at_start", CountsJson(sample.at_start)},
          {"during", CountsJson(sample.during)},   {"latency_ns", sample.latency_ns},
          {"completion_ns", sample.completion_ns}, {"skew_ns", sample.skew_ns},
          {"host_cpu_ns", sample.host_cpu_ns},     {"engine_cpu_ns", sample.engine_cpu_ns},
          {"arm_cpu_ns", sample.arm_cpu_ns},       {"rnr_retries", sample.rnr_retries}};
}

Json WayJson(const std::vector<TransferSample>& samples) {
  Json all = Json::array();
  for (const TransferSample& sample : samples) all.push_back(SampleJson(sample));
  return {{"latency_ns", SummaryJson(SummariseLatencies(samples))},
          {"completion_ns", SummaryJson(SummariseNs(samples, &TransferSample::completion_ns))},
          {"skew_ns", SummaryJson(SummariseNs(samples, &TransferSample::skew_ns))},
          {"host_cpu_ns", SummaryJson(SummariseNs(samples, &TransferSample::host_cpu_ns))},
          {"arm_cpu_ns", SummaryJson(SummariseNs(samples, &TransferSample::arm_cpu_ns))},
          {"engine_cpu_ns", SummaryJson(SummariseNs(samples, &TransferSample::engine_cpu_ns))},
          {"samples", std::move(all)}};
}

Json MachineJson() {
  utsname name = {};
  uname(&name);
  return {{"cores", sysconf(_SC_NPROCESSORS_ONLN)},
          {"system", fmt::format("{} {} {}", name.sysname, name.release, name.machine)}};
}

constexpr const char* kDeviceMeaning =
    "Each node is a process that has the device for itself. Counts are of these processes: what "
    "the\n"
    "library behind the device does in threads of its own is in none of them, and takes the cores "
    "that\n"
    "hosts use where it is software. Times are of this machine.\n";
constexpr const char* kMeaning =
    "The NICs are emulated: one thread is all of them, on the cores that the hosts use, and moves\n"
    "bytes by memcpy. Counts are what a NIC would be told, from the plan and our executor; no NIC\n"
    "has run it. Times are not a NIC's: no link is there to wait for, and hosts that do less "
    "leave\n"
    "more of the cores to the NICs, as no NIC would notice. On hardware each doorbell and request\n"
    "for an event is a write over PCIe, and each wake-up an interrupt.\n";

double Nanoseconds(Picoseconds time) {
  return static_cast<double>(time) / static_cast<double>(emulated::kPicosecondsPerNanosecond);
}

/// What hosts do and how long it takes, one way.
struct ModelledWay {
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

void FillTimes(const sim::RunTimes& times, ModelledWay* way) {
  for (const Picoseconds at : times.groups[0].knows) way->latency_ns.push_back(Nanoseconds(at));
  way->received_ns = Nanoseconds(times.completion);
  way->completion_ns = Nanoseconds(times.known);
  const auto [first, last] = std::ranges::minmax(way->latency_ns);
  way->skew_ns = last - first;
}

ModelledWay ModelledCpu(const sim::Simulation& it) {
  ModelledWay way;
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

ModelledWay ModelledPreposted(const sim::Simulation& it) {
  ModelledWay way;
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

Lines CountsOf(const ModelledWay& cpu, const ModelledWay& preposted) {
  Lines lines;
  const auto add = [&](const char* label, uint64_t ModelledWay::*field) {
    lines.push_back({label, {fmt::to_string(cpu.*field), fmt::to_string(preposted.*field)}});
  };
  add("work requests before the start", &ModelledWay::requests_before);
  add("work requests from the start on", &ModelledWay::requests_after);
  add("doorbells from the start on", &ModelledWay::doorbells);
  add("wake-ups", &ModelledWay::wakeups);
  add("completions read", &ModelledWay::completions_read);
  if (preposted.rearms != 0) add("re-arms during it", &ModelledWay::rearms);
  return lines;
}

Lines TimesOf(const ModelledWay& cpu, const ModelledWay& preposted,
              std::optional<double> barrier_seconds) {
  Lines lines;
  const auto add = [&](const char* label, const auto& value_ns) {
    lines.push_back(
        {label, {MillisecondsText(value_ns(cpu)), MillisecondsText(value_ns(preposted))}});
  };
  add("last node has the message", [](const auto& w) { return w.received_ns; });
  add("a host knows after, min", [](const auto& w) { return Summarise(w.latency_ns).min; });
  add("  median", [](const auto& w) { return Summarise(w.latency_ns).median; });
  add("  p99", [](const auto& w) { return Summarise(w.latency_ns).p99; });
  add("  max: last node done", [](const auto& w) { return w.completion_ns; });
  add("skew of hosts", [](const auto& w) { return w.skew_ns; });
  add("processor time of hosts", [](const auto& w) { return w.host_cpu_ns; });
  add("  of arming", [](const auto& w) { return w.arm_cpu_ns; });
  if (barrier_seconds)
    add("barrier, after arming", [&](const auto&) { return *barrier_seconds * 1e9; });
  return lines;
}

Json ModelledWayJson(const ModelledWay& way) {
  return {{"work_requests_before", way.requests_before},
          {"work_requests", way.requests_after},
          {"doorbells", way.doorbells},
          {"wakeups", way.wakeups},
          {"completions_read", way.completions_read},
          {"rearms", way.rearms},
          {"latency_ns", SummaryJson(Summarise(way.latency_ns))},
          {"received_ns", SummaryJson(Summarise({way.received_ns}))},
          {"completion_ns", SummaryJson(Summarise({way.completion_ns}))},
          {"skew_ns", SummaryJson(Summarise({way.skew_ns}))},
          {"host_cpu_ns", SummaryJson(Summarise({way.host_cpu_ns}))},
          {"arm_cpu_ns", SummaryJson(Summarise({way.arm_cpu_ns}))}};
}

constexpr const char* kModelMeaning =
    "A model's figures, and no better than the profile's numbers (docs/simulate.md). Each way runs "
    "once: the\nsame input gives the same times. Processor time of hosts that poll is what they "
    "do, "
    "not what they look in\nvain. Times begin when all are armed; arming comes before.\n";

void PrintLines(const char* head, const Lines& lines, std::ostream& out) {
  out << fmt::format("\n{:<34} {:>16} {:>16}\n", head, Name(Way::kCpuDriven),
                     Name(Way::kPreposted));
  for (const ComparedPlan::Line& line : lines)
    out << fmt::format("  {:<32} {:>16} {:>16}\n", line.label, line.ways[0], line.ways[1]);
}

}  // namespace

ComparedPlan ComparedByClock(const PlanHeader& plan, const local::CompareOptions& options,
                             const Comparison& comparison, const std::string& device) {
  const bool on_nics = device == "emulated";
  const std::string_view wait = Name(options.wait.mode);
  const local::CompareRatio ratio = RatioOf(comparison);
  Json json = PlanJson(plan);
  json.update({{"wait", wait},
               {"repetitions", options.repetitions},
               {"stress_threads", options.stress_threads},
               {"seed", options.seed}});
  if (on_nics) {
    json.update({{"mode", Name(options.lower.mode)},
                 {"device_profile", options.lower.profile.name},
                 {"rearms_bound", comparison.rearms_max}});
  }
  for (const Way way : kWays) json[std::string(Name(way))] = WayJson(comparison.of(way));
  json["completion_ratio"] = {{"of_medians", ratio.of_medians},
                              {"of_pairs", SummaryJson(ratio.of_pairs)}};
  const std::string head = on_nics ? HeadOf(plan, options.lower, wait)
                                   : fmt::format("{}\nhosts wait by {}\n", PlanText(plan), wait);
  return {.head = head +
                  fmt::format("{}; {} each way, alternating; {} beside them, on {}\n",
                              on_nics ? "emulated NICs" : "device " + Printable(device),
                              Count(options.repetitions, "repetition"),
                              Count(options.stress_threads, "busy thread"),
                              Count(static_cast<uint64_t>(sysconf(_SC_NPROCESSORS_ONLN)), "core")),
          .counts = CountsOf(comparison, on_nics),
          .milliseconds = TimesOf(comparison, on_nics),
          .ratio = fmt::format(
              "\nlast node done, cpu-driven / preposted: {:.2f} by medians; by pair "
              "{:.2f} to {:.2f}, median {:.2f}\n",
              ratio.of_medians, ratio.of_pairs.min, ratio.of_pairs.max, ratio.of_pairs.median),
          .json = std::move(json)};
}

ComparedPlan ComparedInModel(const sim::Simulation& it, const nic::LowerOptions& lower) {
  const ModelledWay cpu = ModelledCpu(it), preposted = ModelledPreposted(it);
  const std::optional<double> barrier = BarrierSeconds(it);
  const sim::Gain gain = GainOf(it);
  const std::optional<sim::Gain> with = GainWithBarrier(it);
  const Picoseconds offload = it.offload_times.groups[0].offload();
  // Null where nothing is sent.
  const auto ratio = [](double value) {
    return Json{{"of_medians", value > 0 ? Json(value) : Json()}};
  };
  Json json = PlanJson(it.plan->header());
  json.update({{"wait", it.wait},
               {"seed", it.seed},
               {"mode", it.mode},
               {"device_profile", lower.profile.name},
               {Name(Way::kCpuDriven), ModelledWayJson(cpu)},
               {Name(Way::kPreposted), ModelledWayJson(preposted)},
               {"offload_ns", Nanoseconds(offload)},
               {"barrier_ns", barrier ? Json(*barrier * 1e9) : Json()},
               {"detection_ns", DetectionSeconds(it) * 1e9},
               {"received_ratio", ratio(gain.completion)},
               {"completion_ratio", ratio(gain.known)},
               {"received_ratio_with_barrier", ratio(with ? with->completion : 0)},
               {"completion_ratio_with_barrier", ratio(with ? with->known : 0)}});
  ComparedPlan found = {
      .head = HeadOf(it.plan->header(), lower, it.wait) +
              fmt::format("modelled, with the profile {} ({}){}\n", Printable(it.profile.name),
                          Printable(it.profile_path), DeviationsText(it.deviations)),
      .counts = CountsOf(cpu, preposted),
      .milliseconds = TimesOf(cpu, preposted, barrier),
      .ratio = "",
      .json = std::move(json)};
  if (gain.completion <= 0) return found;
  const auto line = [](const std::string& label, const sim::Gain& of) {
    return fmt::format(
        "{}: {:.3f} until the last node has the message, {:.3f} until the last host knows\n", label,
        of.completion, of.known);
  };
  found.ratio = line("\ncpu-driven / preposted", gain);
  if (with) found.ratio += line(BarrierText(it), *with);
  found.ratio += fmt::format(
      "offload time, from the last doorbell to the last final completion: {}\n", TimeText(offload));
  return found;
}

ComparisonReport ReportOfMachine(const std::string& device) {
  return {.is_modelled = false,
          .device = device,
          .json = {{"generator", kGenerator},
                   {"device", device},
                   {"clock", "CLOCK_MONOTONIC"},
                   {"machine", MachineJson()}},
          .plans = {}};
}

ComparisonReport ReportOfModel(const sim::Profile& profile, const std::string& profile_path,
                               const std::vector<std::string>& deviations) {
  return {.is_modelled = true,
          .json = {{"generator", kGenerator},
                   {"device", "emulated"},
                   {"clock", "virtual"},
                   {"modelled", true},
                   {"profile", {{"name", profile.name}, {"file", profile_path}}},
                   {"deviations", deviations}},
          .plans = {}};
}

void Print(const ComparisonReport& report, std::ostream& out) {
  for (const ComparedPlan& it : report.plans) {
    out << it.head;
    PrintLines("per transfer, all hosts together", it.counts, out);
    PrintLines(report.is_modelled ? "milliseconds, modelled" : "milliseconds", it.milliseconds,
               out);
    out << it.ratio << "\n";
  }
  out << (report.is_modelled            ? kModelMeaning
          : report.device == "emulated" ? kMeaning
                                        : kDeviceMeaning);
}

Json ToJson(const ComparisonReport& report) {
  Json json = report.json;
  Json& all = json["comparisons"] = Json::array();
  for (const ComparedPlan& it : report.plans) all.push_back(it.json);
  return json;
}

}  // namespace prepost::tools
