// SPDX-License-Identifier: Apache-2.0
#include "tests/support/plans.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "compiler/collectives/collective_schedule.h"
#include "compiler/compile.h"
#include "compiler/schedules/schedule.h"
#include "ir/analysis/event_times.h"
#include "ir/plan_tables.h"
#include "tests/support/sample.h"

namespace prepost::test {
namespace {

constexpr uint64_t kBlockBytes = 16;
constexpr const char* kReadies[] = {"barrier", "channel", "window=1", "window=3", "retry"};
constexpr const char* kSendWindows[] = {"none", "1", "2"};

/// Messages of `blocks` blocks; with an odd number the last one is short.
uint64_t BytesOf(uint32_t blocks) { return blocks * kBlockBytes - (blocks % 2 == 1 ? 5 : 0); }

}  // namespace

std::vector<Spec> AllSmallSpecs(SpecLimits limits, const std::vector<std::string>& schedules) {
  std::vector<Spec> specs;
  for (const std::string& algorithm : schedules) {
    for (uint32_t nodes = 1; nodes <= limits.nodes_max; ++nodes) {
      for (uint32_t blocks = 1; blocks <= limits.blocks_max; ++blocks) {
        for (const char* ready : kReadies) {
          for (const char* send_window : kSendWindows) {
            for (const uint32_t root : std::set<uint32_t>{0, nodes / 2, nodes - 1}) {
              specs.push_back(WithRacks({.nodes = nodes,
                                         .root = NodeId(root),
                                         .message_bytes = BytesOf(blocks),
                                         .block_bytes = kBlockBytes,
                                         .algorithm = algorithm,
                                         .ready = *ParseReady(ready),
                                         .send_window = *ParseSendWindow(send_window)},
                                        1 + (nodes + blocks) % 4));
            }
          }
        }
      }
    }
  }
  return specs;
}

std::vector<Spec> SpecsForExecutors(SpecLimits limits, const std::vector<std::string>& schedules) {
  std::vector<Spec> specs;
  for (const std::string& algorithm : schedules) {
    for (const char* ready : {"auto", "barrier", "channel", "window=1", "window=2", "retry"}) {
      for (uint32_t nodes = 1; nodes <= limits.nodes_max; ++nodes) {
        for (uint32_t blocks = 0; blocks <= limits.blocks_max; ++blocks) {
          specs.push_back(WithRacks({.nodes = nodes,
                                     .root = NodeId((blocks + nodes / 2) % nodes),
                                     .message_bytes = BytesOf(blocks),
                                     .block_bytes = kBlockBytes,
                                     .algorithm = algorithm,
                                     .ready = *ParseReady(ready)},
                                    1 + (nodes + blocks) % 4));
        }
      }
    }
  }
  return specs;
}

std::vector<std::string> SchedulesOf(CollectiveKind kind, uint32_t members) {
  std::vector<std::string> names = ScheduleNames(kind);
  std::erase_if(names, [&](const std::string& name) {
    return !FindCollectiveAlgorithm(kind, name, members).ok();
  });
  return names;
}

std::vector<Spec> SpecsOfCollectives(SpecLimits limits) {
  using enum CollectiveKind;
  std::vector<Spec> specs;
  for (const CollectiveKind kind :
       {kReduce, kAllreduce, kReduceScatter, kAllgather, kGather, kScatter, kAlltoall, kBarrier}) {
    for (const std::string& algorithm : ScheduleNames(kind)) {
      for (const char* ready : {"auto", "barrier", "channel", "window=2", "window=3", "retry"}) {
        for (uint32_t nodes = 1; nodes <= limits.nodes_max; ++nodes) {
          if (!FindCollectiveAlgorithm(kind, algorithm, nodes).ok()) continue;
          for (uint32_t blocks = 1; blocks <= (kind == kBarrier ? 1 : limits.blocks_max);
               ++blocks) {
            Spec spec{.collective = kind,
                      .nodes = nodes,
                      .root = NodeId((blocks + nodes / 2) % nodes),
                      .message_bytes = blocks * kBlockBytes - (blocks % 2 == 1 ? 4 : 0),
                      .block_bytes = kBlockBytes,
                      .algorithm = algorithm,
                      .ready = *ParseReady(ready)};
            if (Combines(kind))
              spec.combine = {.op = CombineOp::kSum, .type = ElementType::kFloat32};
            if (kind == kBarrier) {
              spec.combine = {.op = CombineOp::kAnd, .type = ElementType::kUint8};
              spec.message_bytes = 0;
            }
            const bool is_racked = FindAlgorithm(algorithm).ok();
            specs.push_back(is_racked ? WithRacks(spec, 1 + (nodes + blocks) % 4) : spec);
          }
        }
      }
    }
  }
  return specs;
}

std::vector<Spec> WithUnevenParts(std::vector<Spec> specs, Random& random) {
  for (Spec& spec : specs) {
    const uint64_t parts = PartsOf(spec.collective, spec.nodes);
    if (parts == 1 || random.Below(2) == 0) continue;
    const uint64_t element = std::max<uint64_t>(SizeOf(spec.combine.type), 1);
    const uint64_t most = *spec.message_bytes / element;
    for (uint64_t part = 0; part < parts; ++part)
      spec.part_bytes.push_back(random.Below(4) == 0 ? 0 : element * random.Below(most + 1));
    spec.message_bytes = *std::max_element(spec.part_bytes.begin(), spec.part_bytes.end());
  }
  return specs;
}

std::vector<Spec> SpecsOfExactCollectives(SpecLimits limits, Random& random) {
  constexpr CombineOp kOps[] = {CombineOp::kSum, CombineOp::kProd, CombineOp::kMin, CombineOp::kMax,
                                CombineOp::kAnd, CombineOp::kOr,   CombineOp::kXor};
  constexpr ElementType kTypes[] = {ElementType::kInt8,   ElementType::kUint8, ElementType::kInt16,
                                    ElementType::kUint16, ElementType::kInt32, ElementType::kUint32,
                                    ElementType::kInt64,  ElementType::kUint64};
  std::vector<Spec> specs = SpecsOfCollectives(limits);
  for (Spec& spec : specs) {
    if (!Combines(spec.collective) || spec.collective == CollectiveKind::kBarrier) continue;
    spec.combine = {.op = random.Pick(kOps), .type = random.Pick(kTypes)};
    const uint64_t bytes = *spec.message_bytes;  // the last block is short where it is not whole
    if (bytes % kBlockBytes != 0) {
      spec.message_bytes = bytes - bytes % kBlockBytes + kBlockBytes - SizeOf(spec.combine.type);
    }
  }
  return WithUnevenParts(std::move(specs), random);
}

std::vector<std::string> CollectiveLabels(const std::vector<Spec>& specs) {
  std::vector<std::string> labels;
  for (const Spec& spec : specs)
    labels.push_back(std::string(Name(spec.collective)) + "=" + spec.algorithm);
  return labels;
}

std::vector<std::string> ScheduleLabels(const std::vector<Spec>& specs) {
  std::vector<std::string> labels;
  for (const Spec& spec : specs) labels.push_back("schedule=" + spec.algorithm);
  return labels;
}

std::vector<std::string> SchedulesToRun() { return Turns(ScheduleNames()); }
std::vector<std::string> ScheduleParameters() { return TurnParameters(ScheduleNames()); }
std::string ScheduleInTurn(const std::string& parameter) {
  return NameInTurn(parameter, ScheduleNames());
}

uint64_t BlockTimesOf(const Plan& plan) {
  const std::string& algorithm = plan.header().algorithm;
  const uint64_t depth = DepthOf(PlanTables(plan)).blocks;
  const bool has_slack =
      algorithm == "two_tree" || algorithm == "scatter_allgather" || algorithm == "rack_circulant";
  PREPOST_CHECK(has_slack ? depth <= plan.header().rounds : depth == plan.header().rounds);
  return depth;
}

Spec RandomSpec(Random& random, SpecLimits limits) {
  const uint32_t nodes = random.Between(1, limits.nodes_max);
  const uint64_t bytes = random.Below(limits.blocks_max * kBlockBytes + 1);
  const Spec spec{.nodes = nodes,
                  .root = NodeId(random.Below(nodes)),
                  .message_bytes = bytes,
                  .block_bytes = kBlockBytes,
                  .algorithm = random.Pick(ScheduleNames()),
                  .ready = *ParseReady(random.Pick(kReadies)),
                  .send_window = *ParseSendWindow(random.Pick(kSendWindows))};
  return WithRacks(spec, random.Between(1, nodes));
}

Spec WithRacks(Spec spec, uint32_t rack_size) {
  if (!FindAlgorithm(spec.algorithm)->schedule->NeedsWholeRacks()) return spec;
  Network& topology = spec.topology.emplace();
  for (uint32_t node = 0; node < spec.nodes; ++node) {
    const uint32_t rack = node / rack_size;
    if (rack == topology.racks.size())
      topology.racks.push_back(
          {.name = fmt::format("r{}", rack), .up_rate = 1e9, .down_rate = 1e9});
    topology.nodes.push_back(
        {.name = fmt::format("h{}", node), .rack = rack, .out_rate = 1e9, .in_rate = 1e9});
  }
  return spec;
}

VerifiedPlan CompileOrDie(const Spec& spec, const std::vector<std::string>& skip_passes) {
  CompileOptions options;
  options.skip_passes = skip_passes;
  Result<VerifiedPlan> plan = Compile(spec, options);
  if (!plan.ok()) {
    fmt::print(stderr, "{}: {}\n", Label(spec), plan.status().ToString());
    std::abort();
  }
  return *std::move(plan);
}

VerifiedPlan PlanOf(uint32_t nodes, uint32_t blocks, const std::string& algorithm) {
  return CompileOrDie(
      {.nodes = nodes, .message_bytes = blocks * 10, .block_bytes = 10, .algorithm = algorithm});
}

VerifiedPlan PlanWithWindowsOf1(const std::string& algorithm, uint32_t nodes, uint32_t blocks,
                                uint64_t block_bytes) {
  return CompileOrDie({.nodes = nodes,
                       .message_bytes = blocks * block_bytes,
                       .block_bytes = block_bytes,
                       .algorithm = algorithm,
                       .ready = *ParseReady("window=1"),
                       .send_window = *ParseSendWindow("1")});
}

std::string Label(const Spec& spec) {
  const std::string kind =
      spec.collective == CollectiveKind::kMulticast ? "" : std::string(Name(spec.collective)) + " ";
  return fmt::format(
      "{}{} n={} root={} racks={} bytes={}{} ready={} send_window={}", kind, spec.algorithm,
      spec.nodes, spec.root.value, spec.topology ? spec.topology->racks.size() : 0,
      spec.message_bytes.value_or(0),
      spec.part_bytes.empty() ? "" : fmt::format(" of {}", fmt::join(spec.part_bytes, ",")),
      ToString(spec.ready), ToString(spec.send_window));
}

}  // namespace prepost::test
