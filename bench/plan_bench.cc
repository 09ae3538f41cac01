// SPDX-License-Identifier: Apache-2.0
//
// How fast plans are compiled, verified and written, and the memory that takes, per size n x k and
// ready mode.
// Each case runs in a process of its own, so that its peak memory is its own. Beside the times
// stands a bound: reading and writing the finished plan's arrays once, at the speed of memcpy
// measured in the same process; for files, doing the same with the bytes of the file in columns.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <streambuf>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/roll.h"
#include "compiler/schedules/node_order.h"
#include "compiler/schedules/rolled_schedule.h"
#include "compiler/schedules/schedule.h"
#include "ir/json/plan_json.h"
#include "ir/json/rolled_plan_json.h"
#include "ir/verify/verify.h"
#include "ir/version.h"
#include "runtime/files/plan_folder.h"

namespace prepost {
namespace {

constexpr int kUsage = 2;  ///< exit code: the command line is wrong

struct Case {
  std::string name;
  CollectiveKind collective = CollectiveKind::kMulticast;
  std::string algorithm;  ///< none: that of --algorithm
  uint32_t nodes = 0;
  uint32_t blocks = 0;
  SpecReady ready;
};

/// What a SIZE looks like.
constexpr const char* kSizes = "64x256, 64x256:barrier or allreduce/ring:64x256";

/// Parses "64x256", "64x256:READY" or "COLLECTIVE/ALGORITHM:64x256"; none if it is neither.
std::optional<Case> ParseCase(const std::string& text) {
  Case parsed{.name = text};
  std::string size = text;
  if (const size_t slash = text.find('/'); slash != std::string::npos) {
    const size_t colon = text.find(':', slash);
    const Result<CollectiveKind> collective = ParseCollective(text.substr(0, slash));
    if (colon == std::string::npos || !collective.ok()) return std::nullopt;
    parsed.collective = *collective;
    parsed.algorithm = text.substr(slash + 1, colon - slash - 1);
    size = text.substr(colon + 1);
  }
  const size_t colon = size.find(':');
  if (colon != std::string::npos) {
    const Result<SpecReady> ready = ParseReady(size.substr(colon + 1));
    if (!ready.ok()) return std::nullopt;
    parsed.ready = *ready;
  }
  if (std::sscanf(size.c_str(), "%ux%u", &parsed.nodes, &parsed.blocks) != 2 || parsed.nodes == 0 ||
      parsed.blocks == 0) {
    return std::nullopt;
  }
  return parsed;
}

/// Of blocks of a byte, or of a float in other collectives than a multicast.
Spec SpecOf(const Case& size, const std::string& algorithm) {
  Spec spec{.collective = size.collective,
            .nodes = size.nodes,
            .block_bytes = size.collective == CollectiveKind::kMulticast ? 1 : sizeof(float),
            .algorithm = size.algorithm.empty() ? algorithm : size.algorithm,
            .ready = size.ready};
  spec.message_bytes = size.blocks * spec.block_bytes;
  if (Combines(size.collective)) spec.combine = {CombineOp::kSum, ElementType::kFloat32};
  return WithImplied(spec);
}

/// Counts what is written and drops it.
class CountingBuffer : public std::streambuf {
 public:
  uint64_t bytes() const { return bytes_; }

 protected:
  std::streamsize xsputn(const char*, std::streamsize count) override {
    bytes_ += static_cast<uint64_t>(count);
    return count;
  }
  int_type overflow(int_type c) override {
    ++bytes_;
    return c;
  }

 private:
  uint64_t bytes_ = 0;
};

/// On a machine that does other things as well, the CPU time says more than the clock.
enum class Timer { kClock, kCpu };

const char* Name(Timer timer) { return timer == Timer::kCpu ? "CPU time" : "monotonic clock"; }

double Now(Timer timer) {
  timespec now = {};
  PREPOST_CHECK(
      clock_gettime(timer == Timer::kCpu ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now) == 0);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double Seconds(Timer timer, const std::function<void()>& work) {
  const double begin = Now(timer);
  work();
  return Now(timer) - begin;
}

/// Seconds to read and write `bytes` once.
double CopyBound(Timer timer, size_t bytes) {
  std::vector<char> from(bytes, 1), to(bytes, 2);
  return Seconds(timer, [&] { std::memcpy(to.data(), from.data(), bytes); });
}

struct Sample {
  double compile_s = 0, verify_s = 0, write_s = 0;
  double columns_write_s = 0, columns_read_s = 0, shards_write_s = 0, shards_read_s = 0;
};

/// A folder that goes with its owner, and its files; their pages are not the process's memory.
class ScratchFolder {
 public:
  ScratchFolder() { PREPOST_CHECK(mkdtemp(path_) != nullptr); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return path_ + ("/" + name); }

 private:
  char path_[32] = "/tmp/plan_bench.XXXXXX";
};

/// Writes `plan` in columns to a file and reads it again; the bytes of the file.
uint64_t TimeColumns(const Plan& plan, Timer timer, Sample* sample) {
  const ScratchFolder folder;
  const std::string path = folder / "plan.json";
  sample->columns_write_s = Seconds(timer, [&] {
    std::ofstream out(path, std::ios::binary);
    WritePlan(plan, out, PlanEncoding::kColumns);
    out.close();
    PREPOST_CHECK(!out.fail());
  });
  std::optional<Plan> read;
  sample->columns_read_s = Seconds(timer, [&] {
    std::ifstream in(path, std::ios::binary);
    read = std::move(*ReadPlan(in, path));
  });
  PREPOST_CHECK(*read == plan);
  return std::filesystem::file_size(path);
}

/// Writes `plan` as shards to a folder and puts it together again.
void TimeShards(const Plan& plan, Timer timer, Sample* sample) {
  const ScratchFolder folder;
  const std::string path = folder / "plan";
  sample->shards_write_s =
      Seconds(timer, [&] { PREPOST_CHECK(WritePlanFolder(plan, path, /*interrupt_fd=*/-1).ok()); });
  std::optional<Plan> read;
  sample->shards_read_s =
      Seconds(timer, [&] { read = std::move(*ReadPlanFolder(path, /*warnings=*/nullptr)); });
  PREPOST_CHECK(*read == plan);
}

/// Runs one case `repeat` times after one warm-up, and writes the result as a line of JSON.
void RunCase(const Case& size, const Spec& spec, int repeat, Timer timer, int out_fd) {
  std::vector<Sample> samples;
  uint64_t ops = 0, plan_bytes = 0, file_bytes = 0, columns_bytes = 0;
  for (int i = 0; i <= repeat; ++i) {
    Sample sample;
    Plan plan;
    sample.compile_s = Seconds(timer, [&] { plan = std::move(*Compile(spec)); });
    sample.verify_s = Seconds(timer, [&] { PREPOST_CHECK(Verify(plan).ok()); });
    CountingBuffer buffer;
    std::ostream out(&buffer);
    sample.write_s = Seconds(timer, [&] { WritePlan(plan, out); });
    file_bytes = buffer.bytes();
    columns_bytes = TimeColumns(plan, timer, &sample);
    TimeShards(plan, timer, &sample);
    ops = plan.ops().size();
    plan_bytes = ops * sizeof(Op) + plan.after_count() * sizeof(OpId) +
                 plan.channels().size() * sizeof(Channel);
    if (i > 0) samples.push_back(sample);
  }
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  nlohmann::ordered_json result = {{"size", size.name},
                                   {"nodes", size.nodes},
                                   {"blocks", size.blocks},
                                   {"algorithm", spec.algorithm},
                                   {"ready", ToString(size.ready)},
                                   {"ops", ops},
                                   {"plan_bytes", plan_bytes},
                                   {"file_bytes", file_bytes},
                                   {"columns_bytes", columns_bytes},
                                   {"peak_bytes", usage.ru_maxrss * 1024l},
                                   {"bound_s", CopyBound(timer, plan_bytes)},
                                   {"file_bound_s", CopyBound(timer, columns_bytes)},
                                   {"samples", nlohmann::ordered_json::array()}};
  for (const Sample& sample : samples) {
    result["samples"].push_back({{"compile_s", sample.compile_s},
                                 {"verify_s", sample.verify_s},
                                 {"write_s", sample.write_s},
                                 {"columns_write_s", sample.columns_write_s},
                                 {"columns_read_s", sample.columns_read_s},
                                 {"shards_write_s", sample.shards_write_s},
                                 {"shards_read_s", sample.shards_read_s}});
  }
  const std::string line = result.dump();
  PREPOST_CHECK(write(out_fd, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
}

nlohmann::ordered_json RunInChild(const Case& size, const Spec& spec, int repeat, Timer timer) {
  int fds[2];
  PREPOST_CHECK(pipe(fds) == 0);
  const pid_t child = fork();
  PREPOST_CHECK(child >= 0);
  if (child == 0) {
    RunCase(size, spec, repeat, timer, fds[1]);
    _exit(0);
  }
  close(fds[1]);
  std::string text;
  char piece[4096];
  for (ssize_t count = 0; (count = read(fds[0], piece, sizeof piece)) > 0;)
    text.append(piece, static_cast<size_t>(count));
  close(fds[0]);
  int status = 0;
  PREPOST_CHECK(waitpid(child, &status, 0) == child && status == 0);
  return nlohmann::ordered_json::parse(text);
}

/// The median of one figure over the samples.
double Median(const nlohmann::ordered_json& result, const char* key) {
  std::vector<double> values;
  for (const auto& sample : result["samples"]) values.push_back(sample[key]);
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Bounds on one node's program of a rolled plan, whatever the schedule, for a node with no more
/// than kPeersMax peers: that of `sequential`'s root names all others.
constexpr size_t kPeersMax = 64;
constexpr double kRolledSecondsMax = 1e-3;
constexpr uint64_t kRolledBytesMax = 16 << 10;

/// Nodes per rack in the topology that schedules for racks get.
constexpr uint32_t kRackNodes = 256;

/// For `nodes`, in racks of kRackNodes where the schedule knows racks.
Spec RolledSpec(const Schedule& schedule, uint32_t nodes) {
  Spec spec{.nodes = nodes, .block_bytes = 1, .algorithm = std::string(schedule.name())};
  if (!schedule.NeedsWholeRacks()) return spec;
  Network& topology = spec.topology.emplace();
  for (uint32_t node = 0; node < nodes; ++node) {
    const uint32_t rack = node / kRackNodes;
    if (node % kRackNodes == 0)
      topology.racks.push_back({.name = fmt::format("r{}", rack), .up_rate = 1, .down_rate = 1});
    topology.nodes.push_back(
        {.name = fmt::format("h{}", node), .rack = rack, .out_rate = 1, .in_rate = 1});
  }
  return spec;
}

/// The file of one node of `nodes`, alone.
struct RolledSample {
  /// Its program, with the order of all nodes; of a schedule for racks without that order, which
  /// sorts the topology.
  double make_s = 0;
  uint64_t file_bytes = 0;
  size_t peers = 0;
};
RolledSample MakeRolled(const Schedule& schedule, const Spec& spec, const NodeOrder& order,
                        NodeId node, Timer timer) {
  RolledSample sample;
  RolledPlan plan;
  sample.make_s = Seconds(timer, [&] { plan = std::move(*Roll(spec, node)); });
  if (schedule.NeedsWholeRacks()) {
    const RolledExtent extent({.nodes = spec.nodes, .racks = order.rack_begin});
    sample.make_s = Seconds(timer, [&] {
      PREPOST_CHECK(schedule.rolled()->CheckExtent(extent).ok());
      schedule.rolled()->SegmentsOf(extent, node.value);
    });
  }
  CountingBuffer buffer;
  std::ostream out(&buffer);
  WriteRolledPlan(plan, out);
  sample.file_bytes = buffer.bytes();
  std::set<NodeId> peers;
  for (const Segment& segment : plan.programs[0].segments) {
    for (const RolledSlot& slot : segment.slots) {
      if (slot.send) peers.insert(slot.send->peer);
      if (slot.recv) peers.insert(slot.recv->peer);
    }
  }
  sample.peers = peers.size();
  return sample;
}

/// A line per schedule with a rolled form. Exit code: 1 if some is beyond the bounds.
int PrintRolled(uint32_t nodes, int repeat, Timer timer) {
  std::cout << fmt::format(
      "one node's rolled program of {} nodes, prepost {}, median of {} runs after a warm-up, "
      "one core, {}; bounds for up to {} peers {:.0f} ms, {} bytes; racks of {} nodes, their "
      "order not counted\n",
      nodes, kVersion, repeat, Name(timer), kPeersMax, kRolledSecondsMax * 1e3, kRolledBytesMax,
      kRackNodes);
  std::cout << fmt::format("{:>18} {:>8} {:>8} {:>9} {:>11}\n", "schedule", "node", "peers",
                           "make ms", "bytes");
  bool is_within = true;
  for (const Schedule* schedule : Schedules()) {
    if (schedule->rolled() == nullptr) continue;
    const Spec spec = RolledSpec(*schedule, nodes);
    const NodeOrder order = OrderNodes(spec);
    for (const uint32_t node : {0u, nodes / 3, nodes - 1}) {
      std::vector<double> seconds;
      RolledSample sample;
      for (int i = 0; i <= repeat; ++i) {
        sample = MakeRolled(*schedule, spec, order, NodeId(node), timer);
        if (i > 0) seconds.push_back(sample.make_s);
      }
      std::ranges::sort(seconds);
      const double median = seconds[seconds.size() / 2];
      const bool is_above = sample.peers <= kPeersMax &&
                            (median > kRolledSecondsMax || sample.file_bytes > kRolledBytesMax);
      is_within = is_within && !is_above;
      std::cout << fmt::format("{:>18} {:>8} {:>8} {:>9.3f} {:>11}{}\n", schedule->name(), node,
                               sample.peers, median * 1e3, sample.file_bytes,
                               is_above ? "  above the bounds" : "");
    }
  }
  return is_within ? 0 : 1;
}

void PrintTable(const nlohmann::ordered_json& results, const std::string& algorithm, int repeat,
                Timer timer) {
  std::cout << fmt::format("{}, prepost {}, median of {} runs after a warm-up, one core, {}\n",
                           algorithm, kVersion, repeat, Name(timer));
  std::cout << fmt::format("{:>36} {:>9} {:>8} {:>8} {:>8} {:>15} {:>15} {:>8} {:>8} {:>15}\n",
                           "n x k", "ops", "compile", "verify", "rows", "columns", "shards", "peak",
                           "plan", "bounds");
  std::cout << fmt::format("{:>36} {:>9} {:>8} {:>8} {:>8} {:>15} {:>15} {:>8} {:>8} {:>15}\n", "",
                           "", "ms", "ms", "write ms", "write, read ms", "write, read ms", "MB",
                           "MB", "plan, file ms");
  for (const auto& result : results) {
    const auto ms = [&](const char* key) { return Median(result, key) * 1e3; };
    const auto pair = [&](const char* a, const char* b) {
      return fmt::format("{:.0f}, {:.0f}", ms(a), ms(b));
    };
    std::cout << fmt::format(
        "{:>36} {:>9} {:>8.1f} {:>8.1f} {:>8.1f} {:>15} {:>15} {:>8.1f} {:>8.1f} {:>15}\n",
        result["size"].get<std::string>(), result["ops"].get<uint64_t>(), ms("compile_s"),
        ms("verify_s"), ms("write_s"), pair("columns_write_s", "columns_read_s"),
        pair("shards_write_s", "shards_read_s"), result["peak_bytes"].get<double>() / 1e6,
        result["plan_bytes"].get<double>() / 1e6,
        fmt::format("{:.1f}, {:.1f}", result["bound_s"].get<double>() * 1e3,
                    result["file_bound_s"].get<double>() * 1e3));
  }
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Speed and memory of compiling (with a verification after every pass), verifying and writing "
      "plans.");
  std::vector<std::string> sizes = {"8x256", "64x256", "256x1024", "1024x1024:barrier"};
  std::string algorithm = "binomial_pipeline";
  int repeat = 5;
  bool json = false;
  bool is_cpu = false;
  uint32_t rolled_nodes = 0;
  CLI::Option* rolled =
      app.add_option("--rolled", rolled_nodes,
                     "Instead: one node's rolled program of so many nodes, per schedule")
          ->check(CLI::Range(2u, kNodesMax));
  app.add_option("SIZE", sizes,
                 fmt::format("[collective/schedule:]nodes x blocks[:ready mode]: {}", kSizes))
      ->excludes(rolled);
  app.add_option("--algorithm", algorithm, "Schedule")->excludes(rolled);
  app.add_option("--repeat", repeat, "Counted runs, after one warm-up")->check(CLI::Range(1, 1000));
  app.add_flag("--cpu", is_cpu,
               "CPU time instead of the clock, for machines that do other things as well");
  app.add_flag("--json", json, "Print everything, with all samples, as JSON")->excludes(rolled);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  const Timer timer = is_cpu ? Timer::kCpu : Timer::kClock;

  if (rolled_nodes != 0) return PrintRolled(rolled_nodes, repeat, timer);
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (const std::string& size : sizes) {
    const std::optional<Case> parsed = ParseCase(size);
    if (!parsed) {
      std::cerr << "plan_bench: '" << size << "' is no size such as " << kSizes << "\n";
      return kUsage;
    }
    const Spec spec = SpecOf(*parsed, algorithm);
    if (const Status status = CheckSpec(spec); !status.ok()) {
      std::cerr << "plan_bench: '" << size << "': " << status.message() << "\n";
      return kUsage;
    }
    results.push_back(RunInChild(*parsed, spec, repeat, timer));
  }
  if (json) {
    std::cout << results.dump(2) << "\n";
    return 0;
  }
  PrintTable(results, algorithm, repeat, timer);
  return 0;
}

}  // namespace
}  // namespace prepost

int main(int argc, char** argv) { return prepost::Main(argc, argv); }
