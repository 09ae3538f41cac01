// SPDX-License-Identifier: Apache-2.0
//
// prepost calibrate: what this machine's hosts take, as a profile for prepost simulate.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/compile.h"
#include "ir/json/rate_text.h"
#include "ir/version.h"
#include "planning/files/named_file.h"
#include "planning/flags/profile_settings.h"
#include "planning/flags/values.h"
#include "planning/text/messages.h"
#include "planning/text/plan_text.h"
#include "runtime/calibration/host_timing.h"
#include "sim/calibration/executor_timing.h"
#include "sim/cluster/profile.h"
#include "tools/commands/commands.h"

namespace prepost::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kTransfers = 20;
/// The transfers that the executor is timed with: small blocks, with a credit for each.
constexpr uint32_t kBlocks = 1000;
constexpr uint32_t kBlockBytes = 64;
constexpr double kSecondsMax = 3600;

struct CalibrateFlags {
  std::string profile;
  std::string output = "-";
  std::string name;
  std::string look = "2s";
};

/// Everything that is measured.
struct Measured {
  sim::ExecutorTimes executor;
  CopyTime copy;
  CombineTime combine;
  WakeUpTime wake_up;
  Preemptions preemptions;
  SocketTimes sockets;
};

/// `transport`: what blocks go over in the profile's cluster.
Result<Measured> Measure(sim::TimedTransport transport, double look) {
  Measured measured;
  {
    const Ticker ticker("timing copies and sums");
    const Result<CopyTime> copy = TimeCopy();
    if (!copy.ok()) return copy.status();
    measured.copy = *copy;
    const Result<CombineTime> combine = TimeCombine();
    if (!combine.ok()) return combine.status();
    measured.combine = *combine;
  }
  {
    const Ticker ticker("timing the executor");
    Spec chain;
    chain.nodes = 3;
    chain.algorithm = "chain";
    chain.message_bytes = uint64_t{kBlocks} * kBlockBytes;
    chain.block_bytes = kBlockBytes;
    chain.ready = {.automatic = false, .ready = {.mode = ReadyMode::kWindow, .window = 1}};
    chain.send_window = {.automatic = false, .window = 1};
    const Result<VerifiedPlan> plan = Compile(chain);
    if (!plan.ok()) return plan.status();
    const Result<sim::ExecutorTimes> times = sim::TimeExecutor(*plan, kTransfers, transport);
    if (!times.ok()) return times.status();
    measured.executor = *times;
  }
  {
    const Ticker ticker("waking a sleeper");
    const Result<WakeUpTime> wake_up = TimeWakeUp();
    if (!wake_up.ok()) return wake_up.status();
    measured.wake_up = *wake_up;
  }
  {
    const Ticker ticker("timing sockets");
    const Result<SocketTimes> sockets = TimeSockets();
    if (!sockets.ok()) return sockets.status();
    measured.sockets = *sockets;
  }
  const Ticker ticker("looking at the clock");
  measured.preemptions =
      CountPreemptions(std::chrono::nanoseconds(static_cast<int64_t>(std::ceil(look * 1e9))));
  return measured;
}

/// "AMD EPYC 7B13, 2 cores, Linux 6.1.0"; what is not known is left out.
std::string MachineText() {
  std::string model;
  std::ifstream cpus("/proc/cpuinfo");
  for (std::string line; model.empty() && std::getline(cpus, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos)
      model = line.substr(colon + 2);
  }
  if (model.empty()) model = "unknown processor";
  std::string text =
      fmt::format("{}, {} core{}", model, UsableCores(), UsableCores() == 1 ? "" : "s");
  std::ifstream release("/proc/sys/kernel/osrelease");
  if (std::string line; std::getline(release, line)) text += ", Linux " + line;
  return text;
}

/// To three digits: more were not measured.
double Rounded(double value) {
  if (value == 0) return 0;
  const double scale = std::pow(10, 2 - std::floor(std::log10(value)));
  return std::round(value * scale) / scale;
}

/// One number of the profile, and how it was measured.
struct Entry {
  const char* section;
  const char* key;
  Json value;
  std::string how;
};

Json SecondsJson(double seconds) { return WriteLatency(Rounded(seconds)); }
Json BytesPerSecond(double rate) { return WriteRate(Rounded(rate)); }

/// What the executor and its endpoint take, by what blocks go over.
std::vector<Entry> ExecutorEntries(const Measured& measured, bool has_tcp) {
  const sim::ExecutorTimes& it = measured.executor;
  const std::string steps =
      fmt::format("mean of the middle half of {} or more, caches warm; ", it.samples);
  const auto how = [&](const char* over_nics, const char* over_tcp) {
    return steps + (has_tcp ? over_tcp : over_nics);
  };
  constexpr const char* kReaction =
      "the executor's reaction alone: what the endpoint does in a look is counted by its system "
      "calls, host.poll and tcp.system_call";
  const double poll = it.poll + (has_tcp ? measured.sockets.poll : 0);
  const std::string how_poll = fmt::format(
      "the executor's part, {}, and the processor time of an epoll_wait that finds nothing and "
      "does "
      "not wait, over {} TCP connections of loopback, median",
      WriteLatency(Rounded(it.poll)), measured.sockets.connections);
  return {
      {"host", "post_send", SecondsJson(it.post_send),
       how("the endpoint for NICs writes a WQE and rings a doorbell, here a store to memory",
           "the endpoint for TCP notes what is to be sent; its system call is tcp.system_call")},
      {"host", "post_receive", SecondsJson(it.post_receive),
       how("the endpoint for NICs writes a WQE",
           "the endpoint for TCP notes where bytes go; its system call is tcp.system_call")},
      {"host", "poll", SecondsJson(poll), how("a look at a CQ, nothing found", how_poll.c_str())},
      {"host", "completion", SecondsJson(it.completion),
       how("the CQE of a block, from the CQ to the executor's reaction, without the posts that "
           "follow",
           kReaction)},
      {"host", "credit", SecondsJson(it.credit),
       how("the CQE of a credit, from the CQ to the executor's reaction, without the posts that "
           "follow",
           kReaction)},
  };
}

std::vector<Entry> EntriesOf(const Measured& measured, bool has_tcp, bool has_segments) {
  std::vector<Entry> entries = ExecutorEntries(measured, has_tcp);
  const std::vector<Entry> others = {
      {"host", "cores", UsableCores(), "cores that the command may use"},
      {"host", "interrupt", SecondsJson(measured.wake_up.seconds),
       fmt::format("median of {}: from a signal on an eventfd to the return of the thread that "
                   "sleeps; a card's interrupt comes before",
                   measured.wake_up.samples)},
      {"host", "message_start", SecondsJson(measured.executor.start),
       fmt::format("mean of the middle half of {}: the executor's start without its posts",
                   kTransfers)},
      {"host", "message_setup", "0s", "Prepost's executor does nothing more for a first block"},
      {"host", "copy_rate", BytesPerSecond(measured.copy.rate),
       fmt::format("memcpy of {} MiB, median of {}", measured.copy.bytes >> 20,
                   measured.copy.repetitions)},
      {"host", "combine", SecondsJson(measured.combine.seconds),
       "a call that adds one float32, median of many, caches warm"},
      {"host", "combine_rate", BytesPerSecond(measured.combine.rate),
       fmt::format("a sum of float32 of {} MiB, in place, median of {}",
                   measured.combine.bytes >> 20, measured.combine.repetitions)},
  };
  entries.insert(entries.end(), others.begin(), others.end());
  entries.push_back({"control", "system_call", SecondsJson(measured.sockets.system_call),
                     "processor time of a send or receive of 1 byte over loopback, median"});
  entries.push_back({"control", "latency", SecondsJson(measured.wake_up.seconds),
                     "as host.interrupt: the wake-up of the thread that sleeps; what cards do and "
                     "their interrupts come besides"});
  if (has_segments) {
    entries.push_back({"tcp", "segment_calls", SecondsJson(measured.sockets.segment_calls),
                       "processor time of epoll_wait, a receive of 1 byte and one of nothing over "
                       "loopback, median"});
  }
  if (has_tcp) {
    entries.push_back({"tcp", "system_call", SecondsJson(measured.sockets.system_call),
                       "processor time of a send or receive of 1 byte over loopback, median"});
    entries.push_back({"tcp", "copy_rate", BytesPerSecond(measured.sockets.copy_rate),
                       fmt::format("processor time of sending or receiving {} MiB over loopback",
                                   measured.sockets.bytes >> 20)});
  }
  return entries;
}

constexpr std::string_view kCalibrated = ", calibrated";

/// `base`, with this machine's hosts.
Json MakeProfile(Json base, const Measured& measured, const CalibrateFlags& flags) {
  const std::string machine = MachineText();
  const std::string by = fmt::format("prepost calibrate ({}) on {}: ", kVersion, machine);
  std::string base_name = base["name"];
  // What has been calibrated before keeps nothing of that.
  if (base_name.ends_with(kCalibrated)) base_name.erase(base_name.size() - kCalibrated.size());
  base["name"] = flags.name.empty() ? base_name + std::string(kCalibrated) : flags.name;
  base["cluster"] = fmt::format("network and NICs of {}, hosts measured on {}", base_name, machine);
  const bool has_tcp = base.contains("tcp");
  const bool has_segments = has_tcp && base["tcp"].contains("segment_bytes");
  for (const Entry& entry : EntriesOf(measured, has_tcp, has_segments)) {
    base[entry.section][entry.key] = {{"value", entry.value}, {"measured", by + entry.how}};
  }
  base["host"].erase("preemption");
  base["host"].erase("neighbours");
  const Preemptions& found = measured.preemptions;
  if (found.count != 0) {
    const std::string how =
        by + fmt::format(
                 "{} gaps of 5 us or more in {:.3g} s of looking at "
                 "the clock, deviation {}",
                 found.count, found.seconds, WriteLatency(Rounded(found.deviation)));
    const bool varies = found.deviation > found.length / 2;
    base["host"]["preemption"] = {
        {"rate", {{"value", Rounded(found.rate)}, {"measured", how}}},
        {"length", {{"value", SecondsJson(found.length)}, {"measured", how}}},
        {"lengths", {{"value", varies ? "exponential" : "fixed"}, {"measured", how}}}};
  }
  return base;
}

void PrintTable(const Json& profile, const Preemptions& found, std::ostream& out) {
  out << profile["cluster"].get<std::string>() << "\n";
  const auto text = [](const Json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  for (const char* section : {"host", "tcp", "control"}) {
    if (!profile.contains(section)) continue;
    for (const auto& [key, entry] : profile[section].items()) {
      if (entry.contains("measured")) {
        out << fmt::format("  {:<20} {:>12}\n", fmt::format("{}.{}", section, key),
                           text(entry["value"]));
      } else if (key == "preemption") {
        out << fmt::format("  {:<20} {:>12} per s, each {} ({})\n", "host.preemption",
                           text(entry["rate"]["value"]), text(entry["length"]["value"]),
                           text(entry["lengths"]["value"]));
      }
    }
  }
  if (found.count == 0 && found.seconds > 0) {
    out << fmt::format("  {:<20} {:>12} in {}\n", "host.preemption", "none",
                       WriteLatency(Rounded(found.seconds)));
  }
}

Status Run(const CalibrateFlags& flags) {
  const Result<double> look = ParseLatency(flags.look);
  if (!look.ok()) return {StatusCode::kUsage, "--look: " + look.status().message()};
  if (*look > kSecondsMax) return {StatusCode::kUsage, "--look: more than an hour"};
  if (flags.output != "-") PREPOST_RETURN_IF_ERROR(CheckWritable(flags.output));
  const Result<ProfileText> text = LoadProfileText(flags.profile);
  if (!text.ok()) return text.status();
  const Result<sim::Profile> base = ProfileWith(*text, {});
  if (!base.ok()) return base.status();
  const auto transport = base->is_tcp ? sim::TimedTransport::kTcp : sim::TimedTransport::kNics;
  const MachineUse before = UseOfMachine();
  const uint64_t start = MonotonicNs();
  const Result<Measured> measured = Measure(transport, *look);
  if (!measured.ok()) return measured.status();
  const std::string busy =
      WhyBusy(before, UseOfMachine(), static_cast<double>(MonotonicNs() - start) * 1e-9);
  if (!busy.empty()) {
    PrintWarnings("this machine",
                  {fmt::format("{}; what was measured is of a busy machine", busy)});
  }
  const Json profile = MakeProfile(Json::parse(text->text), *measured, flags);
  std::istringstream made(profile.dump());
  const Result<sim::Profile> check = sim::ReadProfile(made, "what was measured");
  if (!check.ok()) return check.status();
  PREPOST_RETURN_IF_ERROR(
      WriteFile(flags.output, [&](std::ostream& out) { PrintJson(profile, out); }));
  if (flags.output != "-") PrintTable(profile, measured->preemptions, std::cout);
  return {};
}

}  // namespace

void AddCalibrate(CLI::App& app, Action* action) {
  auto flags = std::make_shared<CalibrateFlags>();
  CLI::App* command =
      app.add_subcommand("calibrate", "Measure what this machine's hosts take, for simulate");
  command->footer(
      "Times the CPU executor and its endpoint as they write WQEs and read CQEs of emulated NICs, "
      "or, where the profile's\n"
      "blocks go over TCP, as they post to connections of this machine to itself; copies, "
      "wake-ups, "
      "system calls on such\n"
      "connections, and how often something else takes the core. It writes the profile that "
      "--profile names with these\n"
      "numbers in place of its hosts' own; network and NICs stay as they are. Run it on a machine "
      "that is otherwise idle.\n"
      "It takes some seconds.\n\n"
      "Examples:\n"
      "  prepost calibrate --profile ndr400 -o here.json\n"
      "  prepost calibrate --profile tcp-10g --look 500ms -o here.json");
  command
      ->add_option(
          "--profile", flags->profile,
          "The rest of the cluster, network and NICs: a file, - for stdin, or " + ShippedProfiles())
      ->type_name("P")
      ->required()
      ->check(NameOf("a file"));
  command->add_option("-o,--output", flags->output, "Profile to write, - for stdout [-]")
      ->type_name("FILE")
      ->check(NameOf("a file"));
  command->add_option("--name", flags->name, "The profile's name [that of P, calibrated]")
      ->type_name("NAME");
  command
      ->add_option("--look", flags->look, "How long to look for preemptions; 0s: not at all [2s]")
      ->type_name("TIME");
  command->callback([flags, action] { *action = [flags] { return Run(*flags); }; });
}

}  // namespace prepost::tools
