// SPDX-License-Identifier: Apache-2.0
//
// How long a multicast takes over the local transports, from memory to memory: the time from the
// common start to the last node's completion, as `prepost run` reports it, without start-up, sums
// and files, and with all memory touched beforehand.
//
// Beside it, in the same run, what the same bytes cost without us: n-1 memcpys of the message to
// targets of their own, by one thread and by two; the same block by block, so that the block is
// still in the cache for the next target; and one stream of the message through a TCP connection
// over loopback, times n-1. One repetition measures each of them once, so that whatever else the
// machine does hits all alike: read the ratios.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <barrier>
#include <cstring>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/provenance.h"
#include "compiler/compile.h"
#include "runtime/base/clock.h"
#include "runtime/run/local_group.h"

namespace prepost {
namespace {

using Json = nlohmann::ordered_json;

struct Case {
  uint32_t nodes = 0;
  uint64_t message_bytes = 0;
  uint64_t block_bytes = 0;
};

/// What is measured, in the order of the table.
enum class Way : uint8_t { kTcp, kShm, kMemcpy1, kMemcpy2, kByBlock1, kByBlock2, kStream };
constexpr std::array kWays = {Way::kTcp,      Way::kShm,      Way::kMemcpy1, Way::kMemcpy2,
                              Way::kByBlock1, Way::kByBlock2, Way::kStream};
std::string Name(Way way) {
  switch (way) {
    case Way::kTcp:
      return "tcp";
    case Way::kShm:
      return "shm";
    case Way::kMemcpy1:
      return "memcpys, 1 thread";
    case Way::kMemcpy2:
      return "memcpys, 2 threads";
    case Way::kByBlock1:
      return "by block, 1 thread";
    case Way::kByBlock2:
      return "by block, 2 threads";
    case Way::kStream:
      return "tcp stream x (n-1)";
  }
  PREPOST_CHECK(false);
  return {};
}

struct Settings {
  std::string algorithm = "binomial_pipeline";
  WaitPolicy wait;
  size_t repeat = 15;
};

/// Runs `work(thread)` on `threads` threads, of which this is one; nanoseconds from when the first
/// of them began to when the last one ended. They begin together.
template <typename Work>
uint64_t TimeOf(size_t threads, const Work& work) {
  struct Times {
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
  };
  std::vector<Times> times(threads);
  std::barrier gate(static_cast<ptrdiff_t>(threads));
  const auto run = [&](size_t thread) {
    gate.arrive_and_wait();
    times[thread].begin_ns = MonotonicNs();
    work(thread);
    times[thread].end_ns = MonotonicNs();
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < threads; ++i) others.emplace_back(run, i);
  run(0);
  for (std::thread& thread : others) thread.join();
  return std::ranges::max(times, {}, &Times::end_ns).end_ns -
         std::ranges::min(times, {}, &Times::begin_ns).begin_ns;
}

/// Memory of a message, touched; a sealed memory file, as nodes have it.
NodeBuffer MakeMemory(uint64_t bytes) {
  NodeBuffer memory = NodeBuffer::Open(NodeId(0), bytes, nullptr).value();
  PREPOST_CHECK(memory.Reserve().ok());
  return memory;
}

class Bench {
 public:
  Bench(const Case& size, const Settings& settings)
      : size_(size),
        settings_(settings),
        plan_(Compile({.nodes = size.nodes,
                       .message_bytes = size.message_bytes,
                       .block_bytes = size.block_bytes,
                       .algorithm = settings.algorithm})
                  .value()),
        message_(MakeMemory(size.message_bytes)),
        input_(MappedInput::Open(fmt::format("/proc/self/fd/{}", message_.fd())).value()) {
    uint64_t state = 1;
    for (std::byte& byte : message_.bytes()) {
      byte = static_cast<std::byte>((state = state * 6364136223846793005u + 1) >> 56);
    }
    for (uint32_t i = 1; i < size.nodes; ++i) targets_.push_back(MakeMemory(size.message_bytes));
  }

  Result<uint64_t> Measure(Way way) {
    switch (way) {
      case Way::kTcp:
        return Multicast(TransportKind::kTcp);
      case Way::kShm:
        return Multicast(TransportKind::kShm);
      case Way::kMemcpy1:
        return Memcpys(1, size_.message_bytes);
      case Way::kMemcpy2:
        return Memcpys(2, size_.message_bytes);
      case Way::kByBlock1:
        return Memcpys(1, size_.block_bytes);
      case Way::kByBlock2:
        return Memcpys(2, size_.block_bytes);
      case Way::kStream:
        return Stream() * (size_.nodes - 1);
    }
    PREPOST_CHECK(false);
    return uint64_t{0};
  }

 private:
  Result<uint64_t> Multicast(TransportKind transport) {
    const Result<LocalRun> run = RunLocalGroup(plan_, input_, /*outputs=*/nullptr,
                                               {.transport = transport, .wait = settings_.wait});
    if (!run.ok()) return run.status();
    return run->report.elapsed_ns;
  }

  /// Each thread copies its part of the message, `step_bytes` of it to every target before the
  /// next.
  uint64_t Memcpys(size_t threads, uint64_t step_bytes) {
    return TimeOf(threads, [&](size_t thread) {
      const uint64_t end = size_.message_bytes * (thread + 1) / threads;
      for (uint64_t begin = size_.message_bytes * thread / threads; begin < end;) {
        const uint64_t bytes = std::min(step_bytes, end - begin);
        for (const NodeBuffer& target : targets_) {
          std::memcpy(target.bytes().data() + begin, message_.bytes().data() + begin, bytes);
        }
        begin += bytes;
      }
    });
  }

  /// The message once through a TCP connection over loopback.
  uint64_t Stream() {
    constexpr size_t kWriteBytes = size_t{1} << 20;
    const auto [sender, receiver] = Connect();
    return TimeOf(2, [&](size_t thread) {
      for (uint64_t done = 0; done < size_.message_bytes;) {
        const size_t rest = static_cast<size_t>(size_.message_bytes - done);
        const ssize_t moved =
            thread == 0
                ? write(sender.get(), message_.bytes().data() + done, std::min(rest, kWriteBytes))
                : read(receiver.get(), targets_[0].bytes().data() + done, rest);
        PREPOST_CHECK(moved > 0);
        done += static_cast<uint64_t>(moved);
      }
    });
  }

  static std::pair<FileDescriptor, FileDescriptor> Connect() {
    const FileDescriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    FileDescriptor client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t length = sizeof(address);
    PREPOST_CHECK(bind(listener.get(), generic, length) == 0 && listen(listener.get(), 1) == 0 &&
                  getsockname(listener.get(), generic, &length) == 0 &&
                  connect(client.get(), generic, length) == 0);
    FileDescriptor server(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    PREPOST_CHECK(server.valid());
    return {std::move(client), std::move(server)};
  }

  const Case size_;
  const Settings& settings_;
  const VerifiedPlan plan_;
  NodeBuffer message_;
  const MappedInput input_;
  std::vector<NodeBuffer> targets_;
};

/// Nanoseconds by way, one per repetition.
using Samples = std::map<Way, std::vector<uint64_t>>;

/// One repetition is a warm-up and is dropped. Each begins with another way, so that none always
/// follows the same one.
Result<Samples> RunCase(const Case& size, const Settings& settings) {
  Bench bench(size, settings);
  Samples samples;
  for (size_t repetition = 0; repetition <= settings.repeat; ++repetition) {
    for (size_t i = 0; i < kWays.size(); ++i) {
      const Way way = kWays[(repetition + i) % kWays.size()];
      const Result<uint64_t> elapsed_ns = bench.Measure(way);
      if (!elapsed_ns.ok()) return elapsed_ns.status();
      if (repetition > 0) samples[way].push_back(*elapsed_ns);
    }
  }
  return samples;
}

/// The smallest sample that `share` of all do not exceed, in milliseconds.
double Quantile(std::vector<uint64_t> samples, double share) {
  std::ranges::sort(samples);
  const double rank = std::ceil(share * static_cast<double>(samples.size()));
  return static_cast<double>(samples[static_cast<size_t>(std::max(rank, 1.0)) - 1]) / 1e6;
}
double Median(const Samples& samples, Way way) { return Quantile(samples.at(way), 0.5); }

void PrintCase(const Case& size, const Samples& samples) {
  const double memcpys = std::min(Median(samples, Way::kMemcpy1), Median(samples, Way::kMemcpy2));
  const double stream = Median(samples, Way::kStream);
  std::cout << fmt::format("{} MiB to {} nodes, blocks of {} KiB\n", size.message_bytes >> 20,
                           size.nodes, size.block_bytes >> 10);
  for (const Way way : kWays) {
    const std::vector<uint64_t>& all = samples.at(way);
    const double median = Median(samples, way);
    std::cout << fmt::format("  {:<20} {:>9.2f} {:>9.2f} {:>9.2f} {:>10.2f} {:>10.2f}\n", Name(way),
                             Quantile(all, 0), median, Quantile(all, 0.99), median / memcpys,
                             median / stream);
  }
}

Json ToJson(const Case& size, const Samples& samples) {
  Json json = {{"nodes", size.nodes},
               {"message_bytes", size.message_bytes},
               {"block_bytes", size.block_bytes},
               {"samples_ns", Json::object()}};
  for (const auto& [way, all] : samples) json["samples_ns"][Name(way)] = all;
  return json;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Multicasts over the local transports, memory to memory, beside memcpys and a TCP stream.");
  std::vector<uint64_t> sizes = {1 << 20, 64 << 20, 256 << 20};
  std::vector<uint32_t> nodes = {4, 8};
  std::vector<uint64_t> blocks = {1 << 20};
  std::string wait(Name(WaitMode::kInterrupt));
  Settings settings;
  bool json = false;
  app.add_option("SIZE", sizes, "Message sizes, such as 64MiB")->transform(CLI::AsSizeValue(false));
  app.add_option("--nodes", nodes, "With the root")->delimiter(',')->check(CLI::Range(2, 64));
  app.add_option("--block-bytes", blocks, "Block sizes")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--algorithm", settings.algorithm, "Schedule");
  app.add_option("--wait", wait, "How nodes wait")->check(CLI::IsMember(kWaitModeNames));
  app.add_option("--repeat", settings.repeat, "Counted repetitions, after one warm-up")
      ->check(CLI::Range(1, 10000));
  app.add_flag("--json", json, "Print all samples as JSON");
  CLI11_PARSE(app, argc, argv);
  settings.wait.mode =
      static_cast<WaitMode>(std::ranges::find(kWaitModeNames, wait) - kWaitModeNames.begin());

  const std::string what = fmt::format("{}, {} waits, {} repetitions; {}", settings.algorithm, wait,
                                       settings.repeat, Provenance());
  Json results = Json::array();
  if (!json) {
    std::cout << fmt::format("{}, monotonic clock\n{:<22} {:>9} {:>9} {:>9} {:>10} {:>10}\n", what,
                             "", "min ms", "median ms", "p99 ms", "x memcpys", "x stream");
  }
  for (const uint64_t bytes : sizes) {
    for (const uint32_t count : nodes) {
      for (const uint64_t block_bytes : blocks) {
        const Case size = {
            .nodes = count, .message_bytes = bytes, .block_bytes = std::min(block_bytes, bytes)};
        const Result<Samples> samples = RunCase(size, settings);
        if (!samples.ok()) {
          std::cerr << "transport_bench: " << samples.status().ToString() << "\n";
          return static_cast<int>(samples.status().code());
        }
        if (json) {
          results.push_back(ToJson(size, *samples));
        } else {
          PrintCase(size, *samples);
        }
        std::cout.flush();
      }
    }
  }
  if (json) std::cout << Json{{"what", what}, {"cases", results}}.dump(2) << "\n";
  return 0;
}

}  // namespace
}  // namespace prepost

int main(int argc, char** argv) { return prepost::Main(argc, argv); }
