// SPDX-License-Identifier: Apache-2.0
//
// How fast a transfer in virtual time is simulated, by both executors, in block transfers per
// second of one core's time, beside the aim; how long a whole run takes, step by step, and its
// memory; and a hash of all times that come out, which no change for speed may change. The least of
// a case's runs counts: what else the machine does only adds to it. They come one after the other:
// between other cases a virtual machine gives memory back to its host, and takes longer to get it
// again. The first run is a warm-up, unless it is the only one (--repeat 0).
//
//   build/bench/bench/virtual_bench                                    512x256
//   build/bench/bench/virtual_bench 4096x1024 --repeat 0 --no-cqes     the largest aimed at
//   build/bench/bench/virtual_bench --ready barrier                    no credits
//   build/bench/bench/virtual_bench 64x64 128x128 256x256 --csv        cost against size
//   build/bench/bench/virtual_bench 48x8 --groups 48 --repeat 1        links that many share
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "bench/provenance.h"
#include "compiler/compile.h"
#include "compiler/schedules/schedule.h"
#include "runtime/base/clock.h"
#include "sim/runs/cpu_driven.h"
#include "sim/runs/preposted.h"

namespace prepost {
namespace {

using sim::kRunStepNames;
using sim::RunStep;
using Json = nlohmann::ordered_json;

constexpr double kAim = 1e6;  ///< block transfers per second, of the step `run`
constexpr uint64_t kBlockBytes = 1 << 20;
constexpr size_t kSteps = kRunStepNames.size();

/// 100 Gb/s for all, one rack.
Network MakeNetwork(uint32_t nodes, double latency) {
  Network network = Network::Uniform(nodes);
  for (Network::Node& node : network.nodes) node.out_rate = node.in_rate = 12.5e9;
  network.rack_latency = network.core_latency = latency;
  return network;
}

/// "none": nothing but blocks takes time. "typical": everything does; assumed figures of the size
/// that data sheets give.
sim::NicCosts CostsOf(const std::string& name) {
  if (name == "none") return {};
  return {.wqe = 50'000,
          .wait = 100'000,
          .cqe = 100'000,
          .doorbell = 300'000,
          .message_overhead_bytes = 100};
}

/// The costs of hosts, in the same way.
sim::HostCosts HostCostsOf(const std::string& name) {
  if (name == "none") return {};
  return {.post_send = 150'000,
          .post_receive = 100'000,
          .poll = 50'000,
          .completion = 600'000,
          .credit = 600'000};
}

double PeakMegabytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

double Least(const std::vector<double>& values) { return std::ranges::min(values); }

/// What executes: "inline" and "managed" are preposted queues, "cpu" are hosts.
struct Case {
  uint32_t nodes = 0;
  uint32_t blocks = 0;
  uint32_t groups = 1;  ///< the same multicast at once, node i of group g on host i + g
  std::string ready;    ///< a spec's word
  std::string executor;
  std::string costs;
};

/// FNV-1a: two runs with the same hash of their times are the same.
class Hash {
 public:
  void Add(uint64_t value) {
    for (int i = 0; i < 8; ++i) value_ = (value_ ^ (value >> (8 * i) & 0xff)) * 0x100000001b3;
  }
  void Add(const std::vector<sim::UsedLink>& links) {
    for (const auto& link : links) {
      Add(link.resource.index);
      Add(link.use.bytes);
      Add(static_cast<uint64_t>(link.use.busy));
    }
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

std::vector<sim::Group> GroupsOf(const Case& it, const VerifiedPlan& plan) {
  std::vector<sim::Group> groups(it.groups);
  for (uint32_t g = 0; g < it.groups; ++g) {
    groups[g].plan = &plan;
    if (it.groups == 1) break;
    for (uint32_t i = 0; i < it.nodes; ++i) groups[g].hosts.emplace_back((i + g) % it.nodes);
  }
  return groups;
}

/// What is reported about one run, whatever has executed.
struct Outcome {
  emulated::Picoseconds completion = 0;
  emulated::EngineCounters counters;
  uint64_t times_hash = 0;
};

Outcome RunPreposted(const Case& it, const VerifiedPlan& plan, const Network& network,
                     bool keep_cqes, const std::function<void(RunStep)>& done) {
  const bool is_inline = it.executor == "inline";
  const sim::PrepostedResult run = *sim::RunPreposted(
      GroupsOf(it, plan), network,
      {.costs = CostsOf(it.costs),
       .lower = {.mode = is_inline ? nic::LoweringMode::kInline : nic::LoweringMode::kManaged},
       .keep_cqes = keep_cqes,
       .done = done});
  Hash hash;
  emulated::Picoseconds completion = 0;
  for (const auto& group : run.groups) {
    for (const auto& node : group.nodes) {
      hash.Add(static_cast<uint64_t>(node.completion));
      hash.Add(static_cast<uint64_t>(node.doorbells));
    }
    completion = std::max(completion, group.completion);
  }
  hash.Add(run.links);
  return {completion, run.counters, hash.value()};
}

Outcome RunDriven(const Case& it, const VerifiedPlan& plan, const Network& network, uint32_t ring,
                  const std::function<void(RunStep)>& done) {
  const sim::CpuDrivenResult run = *sim::RunCpuDriven(GroupsOf(it, plan), network,
                                                      {.nic = CostsOf(it.costs),
                                                       .host = HostCostsOf(it.costs),
                                                       .ring_wqes_max = ring,
                                                       .done = done});
  Hash hash;
  emulated::Picoseconds completion = 0;
  for (const auto& group : run.groups) {
    for (const auto& node : group.nodes) {
      hash.Add(static_cast<uint64_t>(node.completion));
      hash.Add(node.work.polls);
      hash.Add(static_cast<uint64_t>(node.work.busy));
    }
    completion = std::max(completion, group.completion);
  }
  hash.Add(run.links);
  return {completion, run.counters, hash.value()};
}

/// What is the same for all cases.
struct Options {
  std::string algorithm = "binomial_pipeline";
  int repeat = 5;
  bool keep_cqes = true;
  uint32_t ring = 32768;
};

Spec SpecOf(const Case& it, const Options& options) {
  return {.nodes = it.nodes,
          .message_bytes = it.blocks * kBlockBytes,
          .block_bytes = kBlockBytes,
          .algorithm = options.algorithm,
          .ready = *ParseReady(it.ready)};
}

/// A case and what was found of it.
struct Samples {
  Case of;
  const VerifiedPlan* plan = nullptr;
  std::array<std::vector<double>, kSteps> seconds;  ///< by step, then run
  std::vector<double> totals;
  std::array<double, kSteps> peaks_mb = {};  ///< of the program so far
  double peak_mb = 0;                        ///< the same, at the end
  double compiled_mb = 0;                    ///< when all plans had been compiled
  Outcome result;
};

/// Once; a warm-up leaves no times.
void RunCase(const Options& options, bool is_warm_up, Samples* samples) {
  const Case& it = samples->of;
  const VerifiedPlan& plan = *samples->plan;
  const Network network = MakeNetwork(it.nodes, it.costs == "none" ? 0 : 1e-6);
  std::array<double, kSteps> sample = {};
  uint64_t last_ns = ThreadCpuNs();
  const uint64_t start_ns = last_ns;
  const auto done = [&](RunStep step) {
    const uint64_t now_ns = ThreadCpuNs();
    sample[static_cast<size_t>(step)] = 1e-9 * static_cast<double>(now_ns - last_ns);
    last_ns = now_ns;
    samples->peaks_mb[static_cast<size_t>(step)] = PeakMegabytes();
  };
  samples->result = it.executor == "cpu" ? RunDriven(it, plan, network, options.ring, done)
                                         : RunPreposted(it, plan, network, options.keep_cqes, done);
  samples->peak_mb = PeakMegabytes();
  if (is_warm_up) return;
  for (size_t step = 0; step < kSteps; ++step) samples->seconds[step].push_back(sample[step]);
  samples->totals.push_back(1e-9 * static_cast<double>(ThreadCpuNs() - start_ns));
}

Json ToJson(const Samples& samples) {
  const Case& it = samples.of;
  const double transfers = static_cast<double>(it.nodes - 1) * it.blocks * it.groups;
  const std::vector<double>& run = samples.seconds[static_cast<size_t>(RunStep::kRun)];
  Json out = {{"nodes", it.nodes},
              {"blocks", it.blocks},
              {"groups", it.groups},
              {"ready", ToString(samples.plan->header().ready)},
              {"executor", it.executor},
              {"costs", it.costs},
              {"transfers", transfers},
              {"messages", samples.result.counters.messages},
              {"wqes", samples.result.counters.wqes},
              {"modelled_completion_ps", samples.result.completion},
              {"times_hash", fmt::format("{:016x}", samples.result.times_hash)},
              {"aim_transfers_per_s", kAim},
              {"transfers_per_s", transfers / Least(run)},
              {"total_s", samples.totals},
              {"compile_peak_mb", samples.compiled_mb},
              {"peak_mb", samples.peak_mb}};
  for (size_t step = 0; step < kSteps; ++step) {
    out[std::string(kRunStepNames[step])] = {{"least_s", Least(samples.seconds[step])},
                                             {"peak_mb", samples.peaks_mb[step]},
                                             {"s", samples.seconds[step]}};
  }
  return out;
}

/// A row per case, for a picture of cost against size.
void PrintCsv(const Json& results) {
  std::cout << "nodes,blocks,ready,executor,costs,transfers,messages,wqes";
  for (const std::string_view name : kRunStepNames) std::cout << "," << name << "_s";
  std::cout << ",total_s,transfers_per_s,peak_mb,modelled_completion_ps,times_hash\n";
  for (const Json& it : results) {
    std::cout << fmt::format("{},{},{},{},{},{},{},{}", it["nodes"].get<int>(),
                             it["blocks"].get<int>(), it["ready"].get<std::string>(),
                             it["executor"].get<std::string>(), it["costs"].get<std::string>(),
                             it["transfers"].get<double>(), it["messages"].get<uint64_t>(),
                             it["wqes"].get<uint64_t>());
    for (const std::string_view name : kRunStepNames) {
      std::cout << fmt::format(",{:.6f}", it[std::string(name)]["least_s"].get<double>());
    }
    std::cout << fmt::format(
        ",{:.6f},{:.0f},{:.0f},{},{}\n", Least(it["total_s"].get<std::vector<double>>()),
        it["transfers_per_s"].get<double>(), it["peak_mb"].get<double>(),
        it["modelled_completion_ps"].get<int64_t>(), it["times_hash"].get<std::string>());
  }
}

void PrintTable(const Json& results, const Options& options) {
  std::cout << fmt::format(
      "{}\n{}, seconds of processor time, the least of {} runs; million block transfers "
      "per second in `run`, aim {}\n{:>11} {:>9} {:>8} {:>8} {:>9}",
      Provenance(), options.algorithm, std::max(options.repeat, 1), kAim / 1e6, "n x k", "ready",
      "executor", "costs", "M/s");
  for (const std::string_view name : kRunStepNames) std::cout << fmt::format(" {:>9}", name);
  std::cout << "     total   peak MB  hash of times\n";
  for (const Json& it : results) {
    std::cout << fmt::format("{:>11} {:>9} {:>8} {:>8} {:>9.3f}",
                             fmt::format("{}x{}", it["nodes"].get<int>(), it["blocks"].get<int>()),
                             it["ready"].get<std::string>(), it["executor"].get<std::string>(),
                             it["costs"].get<std::string>(),
                             it["transfers_per_s"].get<double>() / 1e6);
    for (const std::string_view name : kRunStepNames) {
      std::cout << fmt::format(" {:>9.3f}", it[std::string(name)]["least_s"].get<double>());
    }
    std::cout << fmt::format(" {:>9.3f} {:>9.0f}  {}\n",
                             Least(it["total_s"].get<std::vector<double>>()),
                             it["peak_mb"].get<double>(), it["times_hash"].get<std::string>());
  }
}

int Main(int argc, char** argv) {
  CLI::App app("How fast transfers are simulated.");
  std::vector<std::string> sizes = {"512x256"};
  std::vector<std::string> executors = {"inline", "managed", "cpu"};
  std::vector<std::string> costs = {"none", "typical"};
  std::vector<std::string> readies = {"auto"};
  Options options;
  uint32_t groups = 1;
  bool no_cqes = false;
  bool json = false;
  bool csv = false;
  app.add_option("SIZE", sizes, "nodes x blocks, such as 64x256");
  app.add_option("--algorithm", options.algorithm, "Schedule")
      ->check(CLI::IsMember(ScheduleNames()));
  app.add_option("--ready", readies, "auto, barrier, channel, window=W, retry")
      ->check([](const std::string& word) { return ParseReady(word).status().message(); });
  app.add_option("--executor", executors, "inline and managed (preposted), cpu")
      ->check(CLI::IsMember({"inline", "managed", "cpu"}));
  app.add_option("--costs", costs, "none, typical")->check(CLI::IsMember({"none", "typical"}));
  app.add_option("--groups", groups, "Multicasts at once, with other roots, on the same hosts")
      ->check(CLI::Range(1, 4096));
  app.add_option("--repeat", options.repeat, "Counted runs, after one warm-up; 0: only one run")
      ->check(CLI::Range(0, 1000));
  app.add_flag("--no-cqes", no_cqes, "CQs that nobody reads on the way hold one CQE");
  app.add_option("--ring", options.ring,
                 "WQEs that the rings of hosts hold at most; a power of two")
      ->check(CLI::IsMember({8, 16, 32, 64, 256, 1024, 32768}));
  app.add_flag("--json", json, "Print everything, with all samples, as JSON");
  app.add_flag("--csv", csv, "Print a row per case");
  CLI11_PARSE(app, argc, argv);
  options.keep_cqes = !no_cqes;

  std::vector<Samples> cases;
  for (const std::string& size : sizes) {
    uint32_t nodes = 0, blocks = 0;
    if (std::sscanf(size.c_str(), "%ux%u", &nodes, &blocks) != 2 || nodes < 2 || blocks == 0) {
      std::cerr << "virtual_bench: '" << size << "' is no size such as 64x256\n";
      return 2;
    }
    for (const std::string& ready : readies) {
      for (const std::string& executor : executors) {
        for (const std::string& cost : costs) {
          cases.emplace_back().of = {nodes, blocks, groups, ready, executor, cost};
        }
      }
    }
  }
  std::map<std::tuple<uint32_t, uint32_t, std::string>, VerifiedPlan> plans;
  for (Samples& it : cases) {
    const std::tuple key(it.of.nodes, it.of.blocks, it.of.ready);
    auto found = plans.find(key);
    if (found == plans.end()) found = plans.emplace(key, *Compile(SpecOf(it.of, options))).first;
    it.plan = &found->second;
  }
  for (Samples& it : cases) it.compiled_mb = PeakMegabytes();
  for (Samples& it : cases) {
    for (int i = 0; i <= options.repeat; ++i)
      RunCase(options, /*is_warm_up=*/i == 0 && options.repeat != 0, &it);
  }
  Json results = Json::array();
  for (const Samples& it : cases) results.push_back(ToJson(it));
  if (csv) {
    PrintCsv(results);
  } else if (json) {
    std::cout << Json{{"provenance", Provenance()}, {"cases", results}}.dump(2) << "\n";
  } else {
    PrintTable(results, options);
  }
  return 0;
}

}  // namespace
}  // namespace prepost

int main(int argc, char** argv) { return prepost::Main(argc, argv); }
