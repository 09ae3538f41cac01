// SPDX-License-Identifier: Apache-2.0
#include "tools/report/compare_print.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "ir/count.h"
#include "ir/utf8.h"
#include "ir/version.h"
#include "runtime/statistics.h"
#include "tools/report/plan_text.h"

namespace prepost::tools {
namespace {

using local::Comparison;
using local::HostCounts;
using local::TransferSample;
using local::Way;
using Json = nlohmann::ordered_json;

constexpr Way kWays[] = {Way::kCpuDriven, Way::kPreposted};

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

/// Of every node in every repetition.
Summary SummariseLatencies(const std::vector<TransferSample>& samples) {
  std::vector<double> values;
  for (const TransferSample& sample : samples) {
    for (const uint64_t ns : sample.latency_ns) values.push_back(static_cast<double>(ns));
  }
  return Summarise(std::move(values));
}

std::string Heading(const ComparedPlan& it) {
  return ComparedHead(it.plan, it.options.lower, Name(it.options.wait.mode)) +
         fmt::format("emulated NICs; {} each way, alternating; {} beside them, on {}\n",
                     Count(it.options.repetitions, "repetition"),
                     Count(it.options.stress_threads, "busy thread"),
                     Count(static_cast<uint64_t>(sysconf(_SC_NPROCESSORS_ONLN)), "core"));
}

void PrintCounts(const Comparison& comparison, std::ostream& out) {
  out << fmt::format("\n{:<34} {:>16} {:>16}\n", "per transfer, all hosts together",
                     Name(Way::kCpuDriven), Name(Way::kPreposted));
  const auto print = [&](const CountLine& line) {
    out << fmt::format("  {:<32} {:>16} {:>16}\n", line.label,
                       RangeOf(comparison.of(Way::kCpuDriven), line),
                       RangeOf(comparison.of(Way::kPreposted), line));
  };
  for (const CountLine& line : kCountLines) print(line);
  if (comparison.rearms_max == 0) return;
  print(kRearmsLine);
  out << fmt::format("  {:<32} {:>16} {:>16}\n", "  bound", "", comparison.rearms_max);
}

void PrintTimes(const Comparison& comparison, std::ostream& out) {
  out << fmt::format("\n{:<34} {:>16} {:>16}\n", "milliseconds", Name(Way::kCpuDriven),
                     Name(Way::kPreposted));
  const auto line = [&](const char* label, const auto& value_ns) {
    out << fmt::format("  {:<32} {:>16.3f} {:>16.3f}\n", label,
                       value_ns(comparison.of(Way::kCpuDriven)) / 1e6,
                       value_ns(comparison.of(Way::kPreposted)) / 1e6);
  };
  const auto median_of = [](uint64_t TransferSample::*field) {
    return [field](const auto& samples) { return SummariseNs(samples, field).median; };
  };
  line("a node's latency, min", [](const auto& s) { return SummariseLatencies(s).min; });
  line("  median", [](const auto& s) { return SummariseLatencies(s).median; });
  line("  p99", [](const auto& s) { return SummariseLatencies(s).p99; });
  line("  max", [](const auto& s) { return SummariseLatencies(s).max; });
  line("last node done, median", median_of(&TransferSample::completion_ns));
  line("skew, median", median_of(&TransferSample::skew_ns));
  line("  max", [](const auto& s) { return SummariseNs(s, &TransferSample::skew_ns).max; });
  line("processor time of hosts, median", median_of(&TransferSample::host_cpu_ns));
  line("  of the NICs' thread, median", median_of(&TransferSample::engine_cpu_ns));
  line("  of arming, median", median_of(&TransferSample::arm_cpu_ns));
  const local::CompareRatio ratio = RatioOf(comparison);
  out << fmt::format(
      "\nlast node done, cpu-driven / preposted: {:.2f} by medians; by pair {:.2f} to {:.2f}, "
      "median "
      "{:.2f}\n",
      ratio.of_medians, ratio.of_pairs.min, ratio.of_pairs.max, ratio.of_pairs.median);
}

Json SummaryJson(const Summary& summary) {
  return {{"count", summary.count},
          {"min", summary.min},
          {"median", summary.median},
          {"p99", summary.p99},
          {"max", summary.max}};
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

Json ComparedJson(const ComparedPlan& it) {
  const local::CompareRatio ratio = RatioOf(it.comparison);
  Json json = PlanJson(it.plan);
  json.update({{"wait", Name(it.options.wait.mode)},
               {"repetitions", it.options.repetitions},
               {"stress_threads", it.options.stress_threads},
               {"seed", it.options.seed},
               {"mode", Name(it.options.lower.mode)},
               {"device_profile", it.options.lower.profile.name},
               {"rearms_bound", it.comparison.rearms_max}});
  for (const Way way : kWays) json[std::string(Name(way))] = WayJson(it.comparison.of(way));
  json["completion_ratio"] = {{"of_medians", ratio.of_medians},
                              {"of_pairs", SummaryJson(ratio.of_pairs)}};
  return json;
}

Json MachineJson() {
  utsname name = {};
  uname(&name);
  return {{"cores", sysconf(_SC_NPROCESSORS_ONLN)},
          {"system", fmt::format("{} {} {}", name.sysname, name.release, name.machine)}};
}

constexpr const char* kMeaning =
    "The NICs are emulated: one thread is all of them, on the cores that the hosts use, and moves\n"
    "bytes by memcpy. Counts are those of real NICs. Times are not: no link is there to wait for, "
    "and\n"
    "hosts that do less leave more of the cores to the NICs, as no real NIC would notice. On "
    "hardware\n"
    "each doorbell and request for an event is a write over PCIe, and each wake-up an interrupt.\n";

/// "inline", "managed by one master per lane".
std::string QueuesText(const nic::LowerOptions& lower) {
  const std::string mode(Name(lower.mode));
  if (lower.mode != nic::LoweringMode::kManaged) return mode;
  return fmt::format("{} by one master per {}", mode, Name(lower.masters));
}

}  // namespace

std::string ComparedHead(const PlanHeader& plan, const nic::LowerOptions& lower,
                         std::string_view wait) {
  return fmt::format("{}\nqueues {}, device profile {}; hosts wait by {}\n", PlanText(plan),
                     QueuesText(lower), Printable(lower.profile.name), wait);
}

void PrintComparisons(const std::vector<ComparedPlan>& compared, std::ostream& out) {
  for (const ComparedPlan& it : compared) {
    out << Heading(it);
    PrintCounts(it.comparison, out);
    PrintTimes(it.comparison, out);
    out << "\n";
  }
  out << kMeaning;
}

void PrintComparisonsJson(const std::vector<ComparedPlan>& compared, std::ostream& out) {
  Json all = Json::array();
  for (const ComparedPlan& it : compared) all.push_back(ComparedJson(it));
  const Json json = {{"generator", kGenerator},
                     {"device", "emulated"},
                     {"clock", "CLOCK_MONOTONIC"},
                     {"machine", MachineJson()},
                     {"comparisons", std::move(all)}};
  out << json.dump(2) << "\n";
}

}  // namespace prepost::tools
