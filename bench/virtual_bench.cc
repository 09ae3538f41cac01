// SPDX-License-Identifier: Apache-2.0
//
// How fast a transfer in virtual time is reckoned, in block transfers per second of one core's
// time, beside the aim; how long a whole run takes, step by step, and its memory. The first run of a
// size is a warm-up, unless it is the only one (--repeat 0).
//
//   build/release/bench/virtual_bench                                    512x256
//   build/release/bench/virtual_bench 4096x1024 --repeat 0 --no-cqes     the largest aimed at
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/provenance.h"
#include "prepost/backends/emulated/virtual_offload.h"
#include "prepost/compiler/compile.h"
#include "prepost/compiler/schedule.h"
#include "prepost/runtime/clock.h"

namespace prepost {
namespace {

using emulated::kVirtualStepNames;
using emulated::VirtualStep;
using Json = nlohmann::ordered_json;

constexpr double kAim = 1e6;  ///< block transfers per second, of the step `run`
constexpr uint64_t kBlockBytes = 1 << 20;
constexpr size_t kSteps = kVirtualStepNames.size();

/// 100 Gb/s for all, one rack.
Network MakeNetwork(uint32_t nodes, double latency) {
  Network network = Network::Uniform(nodes);
  for (Network::Node& node : network.nodes) node.out_rate = node.in_rate = 12.5e9;
  network.rack_latency = network.core_latency = latency;
  return network;
}

/// "none": nothing but blocks takes time. "typical": everything does; assumed figures of the size
/// that data sheets give.
emulated::NicCosts CostsOf(const std::string& name) {
  if (name == "none") return {};
  return {.wqe = 50'000,
          .wait = 100'000,
          .cqe = 100'000,
          .doorbell = 300'000,
          .message_overhead_bytes = 100};
}

double PeakMegabytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct Case {
  uint32_t nodes = 0;
  uint32_t blocks = 0;
  nic::LoweringMode mode = nic::LoweringMode::kInline;
  std::string costs;
};

Json RunCase(const Case& it, const std::string& algorithm, int repeat, bool keep_cqes) {
  const Spec spec{.nodes = it.nodes,
                  .message_bytes = it.blocks * kBlockBytes,
                  .block_bytes = kBlockBytes,
                  .algorithm = algorithm};
  const Plan plan = *Compile(spec);
  const double compiled_mb = PeakMegabytes();
  const Network network = MakeNetwork(it.nodes, it.costs == "none" ? 0 : 1e-6);
  std::array<std::vector<double>, kSteps> seconds;
  std::array<double, kSteps> peaks_mb = {};  // of the program so far
  std::vector<double> totals;
  emulated::VirtualOffload result;
  for (int i = 0; i <= repeat; ++i) {
    std::array<double, kSteps> sample = {};
    uint64_t last_ns = ThreadCpuNs();
    const uint64_t start_ns = last_ns;
    result = *emulated::RunVirtualOffload(plan, network,
                                          {.costs = CostsOf(it.costs),
                                           .lower = {.mode = it.mode},
                                           .keep_cqes = keep_cqes,
                                           .done = [&](VirtualStep step) {
                                             const uint64_t now_ns = ThreadCpuNs();
                                             sample[static_cast<size_t>(step)] =
                                                 1e-9 * static_cast<double>(now_ns - last_ns);
                                             last_ns = now_ns;
          peaks_mb[static_cast<size_t>(step)] = PeakMegabytes();
                                           }});
    if (i == 0 && repeat != 0) continue;
    for (size_t step = 0; step < kSteps; ++step) seconds[step].push_back(sample[step]);
    totals.push_back(1e-9 * static_cast<double>(ThreadCpuNs() - start_ns));
  }
  const double transfers = static_cast<double>(it.nodes - 1) * it.blocks;
  Json out = {
      {"nodes", it.nodes},
      {"blocks", it.blocks},
      {"mode", Name(it.mode)},
      {"costs", it.costs},
      {"transfers", transfers},
      {"messages", result.counters.messages},
      {"wqes", result.counters.wqes},
      {"modelled_completion_ps", result.completion},
      {"aim_transfers_per_s", kAim},
      {"transfers_per_s", transfers / Median(seconds[static_cast<size_t>(VirtualStep::kRun)])},
      {"total_s", totals},
      {"compile_peak_mb", compiled_mb},
      {"peak_mb", PeakMegabytes()}};
  for (size_t step = 0; step < kSteps; ++step) {
    out[std::string(kVirtualStepNames[step])] = {{"median_s", Median(seconds[step])},
                                                 {"peak_mb", peaks_mb[step]},
                                                 {"s", seconds[step]}};
  }
  return out;
}

void PrintTable(const Json& results, const std::string& algorithm, int repeat) {
  std::cout << fmt::format(
      "{}\n{}, seconds of processor time, median of {} runs; million block transfers "
      "per second in `run`, aim {}\n{:>11} {:>8} {:>8} {:>9}",
      Provenance(), algorithm, std::max(repeat, 1), kAim / 1e6, "n x k", "mode", "costs", "M/s");
  for (const std::string_view name : kVirtualStepNames) std::cout << fmt::format(" {:>9}", name);
  std::cout << "     total   peak MB\n";
  for (const Json& it : results) {
    std::cout << fmt::format("{:>11} {:>8} {:>8} {:>9.3f}",
                             fmt::format("{}x{}", it["nodes"].get<int>(), it["blocks"].get<int>()),
                             it["mode"].get<std::string>(), it["costs"].get<std::string>(),
                             it["transfers_per_s"].get<double>() / 1e6);
    for (const std::string_view name : kVirtualStepNames) {
      std::cout << fmt::format(" {:>9.3f}", it[std::string(name)]["median_s"].get<double>());
    }
    std::cout << fmt::format(" {:>9.3f} {:>9.0f}\n",
                             Median(it["total_s"].get<std::vector<double>>()),
                             it["peak_mb"].get<double>());
  }
}

int Main(int argc, char** argv) {
  CLI::App app("How fast transfers in virtual time are reckoned.");
  std::vector<std::string> sizes = {"512x256"};
  std::vector<std::string> modes = {"inline", "managed"};
  std::vector<std::string> costs = {"none", "typical"};
  std::string algorithm = "binomial_pipeline";
  int repeat = 5;
  bool no_cqes = false;
  bool json = false;
  app.add_option("SIZE", sizes, "nodes x blocks, such as 64x256");
  app.add_option("--algorithm", algorithm, "Schedule")->check(CLI::IsMember(ScheduleNames()));
  app.add_option("--mode", modes, "inline, managed")->check(CLI::IsMember({"inline", "managed"}));
  app.add_option("--costs", costs, "none, typical")->check(CLI::IsMember({"none", "typical"}));
  app.add_option("--repeat", repeat, "Counted runs, after one warm-up; 0: only one run")
      ->check(CLI::Range(0, 1000));
  app.add_flag("--no-cqes", no_cqes, "CQs that nobody reads on the way hold one CQE");
  app.add_flag("--json", json, "Print everything, with all samples, as JSON");
  CLI11_PARSE(app, argc, argv);

  Json results = Json::array();
  for (const std::string& size : sizes) {
    uint32_t nodes = 0, blocks = 0;
    if (std::sscanf(size.c_str(), "%ux%u", &nodes, &blocks) != 2 || nodes < 2 || blocks == 0) {
      std::cerr << "virtual_bench: '" << size << "' is no size such as 64x256\n";
      return 2;
    }
    for (const std::string& mode : modes) {
      for (const std::string& cost : costs) {
        const Case it{nodes, blocks,
                      mode == "inline" ? nic::LoweringMode::kInline : nic::LoweringMode::kManaged,
                      cost};
        results.push_back(RunCase(it, algorithm, repeat, !no_cqes));
      }
    }
  }
  if (json) {
    std::cout << Json{{"provenance", Provenance()}, {"cases", results}}.dump(2) << "\n";
  } else {
    PrintTable(results, algorithm, repeat);
  }
  return 0;
}

}  // namespace
}  // namespace prepost

int main(int argc, char** argv) { return prepost::Main(argc, argv); }
