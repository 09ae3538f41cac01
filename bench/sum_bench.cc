// SPDX-License-Identifier: Apache-2.0
//
// What the sums of copies cost (runtime/files/message_sum.h): BLAKE2b-256 of memory that is not in
// a cache, on one core, and memcpy of the same bytes beside it, one after the other in each
// repetition. In GB (10^9 bytes) per second of processor time, so that other programs disturb less.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/provenance.h"
#include "runtime/base/clock.h"
#include "runtime/files/message_sum.h"

namespace prepost {
namespace {

constexpr std::array kWays = {"BLAKE2b-256", "memcpy"};

template <typename Work>
double GigabytesPerSecond(size_t bytes, Work work) {
  const uint64_t before_ns = ThreadCpuNs();
  work();
  return static_cast<double>(bytes) / static_cast<double>(ThreadCpuNs() - before_ns);
}

int Main(int argc, char** argv) {
  CLI::App app("GB per second of processor time of what sums need");
  size_t mebibytes = 256;
  uint32_t repetitions = 15;
  bool json = false;
  app.add_option("--mebibytes", mebibytes, "Memory that is summed [256]")
      ->check(CLI::Range(1, 65536));
  app.add_option("--repeat", repetitions, "Repetitions, after one that does not count [15]")
      ->check(CLI::Range(1, 10000));
  app.add_flag("--json", json, "Print all samples as JSON");
  CLI11_PARSE(app, argc, argv);

  std::vector<std::byte> memory(mebibytes << 20), copy(memory.size());
  for (size_t i = 0; i < memory.size(); ++i)
    memory[i] = static_cast<std::byte>(i * 2654435761u >> 13);
  std::array<std::vector<double>, kWays.size()> samples;
  for (uint32_t i = 0; i <= repetitions; ++i) {
    const std::array<double, kWays.size()> sample = {
        GigabytesPerSecond(memory.size(), [&] { PREPOST_CHECK(SumMemory(memory).ok()); }),
        GigabytesPerSecond(memory.size(),
                           [&] { std::memcpy(copy.data(), memory.data(), memory.size()); })};
    for (size_t way = 0; i > 0 && way < kWays.size(); ++way) samples[way].push_back(sample[way]);
  }
  nlohmann::ordered_json all = {
      {"provenance", Provenance()}, {"mebibytes", mebibytes}, {"gigabytes_per_second", {}}};
  if (!json) std::cout << fmt::format("{}; {} MiB\n", Provenance(), mebibytes);
  for (size_t way = 0; way < kWays.size(); ++way) {
    all["gigabytes_per_second"][kWays[way]] = samples[way];
    std::ranges::sort(samples[way]);
    if (json) continue;
    std::cout << fmt::format("{:<12} {:.2f} GB/s ({:.2f}..{:.2f}, {})\n", kWays[way],
                             samples[way][samples[way].size() / 2], samples[way].front(),
                             samples[way].back(), samples[way].size());
  }
  if (json) std::cout << all.dump(2) << "\n";
  return 0;
}

}  // namespace
}  // namespace prepost

int main(int argc, char** argv) { return prepost::Main(argc, argv); }
