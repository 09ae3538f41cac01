// SPDX-License-Identifier: Apache-2.0
//
// How fast plans become bytes for NICs: lowering, encoding, linking and validation, each in WQEs
// per second of one core's time, beside the aim. Node by node, as the command does it, so that the
// memory is one node's. Verifying the plan, which Lower() does first, is not lowering and stands
// beside it. Every repetition measures everything once: whatever else the machine does hits all
// alike.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "backends/emulated/fabric.h"
#include "backends/local/armed_group.h"
#include "backends/nic/host/armed_node.h"
#include "backends/nic/program/encode.h"
#include "backends/nic/program/link.h"
#include "backends/nic/program/lower.h"
#include "backends/nic/program/node_lowering.h"
#include "backends/nic/validate/object_table.h"
#include "bench/provenance.h"
#include "compiler/compile.h"
#include "compiler/schedules/schedule.h"
#include "ir/verify/verify.h"
#include "runtime/base/clock.h"

namespace prepost {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kAim = 5e6;  ///< WQEs per second

/// The last two are of emulated devices: making and filling all nodes' queues, and validating what
/// is in them, which is done before any doorbell.
enum Step : size_t { kVerify, kLower, kEncode, kLink, kValidate, kArm, kCheckArmed, kSteps };
constexpr const char* kStepNames[kSteps] = {"verify",   "lower", "encode",     "link",
                                            "validate", "arm",   "check_armed"};

/// Seconds per step.
using Sample = std::array<double, kSteps>;

/// Adds the time of each step to a sample as it goes.
class Stopwatch {
 public:
  explicit Stopwatch(Sample* sample) : sample_(sample), last_ns_(ThreadCpuNs()) {}
  void Skip() { last_ns_ = ThreadCpuNs(); }
  void Lap(Step step) {
    const uint64_t now_ns = ThreadCpuNs();
    (*sample_)[step] += static_cast<double>(now_ns - last_ns_) * 1e-9;
    last_ns_ = now_ns;
  }

 private:
  Sample* sample_;
  uint64_t last_ns_;
};

/// The objects of a node with its linked bytes in them; `objects` has all but these.
void LinkAll(std::vector<nic::QueuePairImage> images, const nic::Bindings& bindings,
             nic::QueueObjects* objects) {
  for (size_t i = 0; i < images.size(); ++i) {
    objects->qps[i].sq = *nic::Link(std::move(images[i].sq), bindings);
    objects->qps[i].rq = *nic::Link(std::move(images[i].rq), bindings);
  }
}

/// QPNs of the peers, as ExampleBindings() gives them: positions among a node's QPs.
void ConnectExample(const std::vector<nic::NodeProgram>& shapes, nic::QueueObjects* objects) {
  for (nic::QpObject& qp : objects->qps) {
    if (qp.peer == objects->node) continue;
    const auto back = nic::FindQp(shapes[qp.peer.index()], objects->node, qp.lane);
    qp.peer_qpn = nic::kExampleQpn + back->value;
  }
}

/// Nothing starts, so that one buffer can be every node's.
void MeasureArming(const VerifiedPlan& plan, const nic::LowerOptions& options, Stopwatch* watch) {
  const nic::QueueProgram program = *nic::Lower(plan, options);
  std::vector<std::byte> memory(plan.header().payload.bytes);
  const std::vector<std::span<std::byte>> buffers(plan.header().nodes, memory);
  const std::array messages = {local::MessageBuffers{memory, buffers}};
  emulated::Fabric fabric(plan.header().nodes, {});
  watch->Skip();
  auto group = *local::ArmedGroup::Make(fabric, plan, program, messages, {});
  for (nic::ArmedNode& node : group.nodes()) PREPOST_CHECK(node.Arm().ok());
  watch->Lap(kArm);
  PREPOST_CHECK(group.Validate({}).ok());
  watch->Lap(kCheckArmed);
}

/// All nodes once.
Sample Measure(const VerifiedPlan& plan, const nic::LowerOptions& options,
               const std::vector<nic::NodeProgram>& shapes, uint64_t* wqes) {
  Sample sample = {};
  Stopwatch watch(&sample);
  PREPOST_CHECK(Verify(plan).ok());
  watch.Lap(kVerify);
  nic::Validator validator(plan);
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Program* program = nullptr;
    for (const Program& it : plan.programs()) {
      if (it.node == shapes[i].node) program = &it;
    }
    nic::QueueObjects objects = *nic::MakeQueueObjects(shapes[i], ExampleBindings(shapes[i]));
    ConnectExample(shapes, &objects);
    watch.Skip();
    const nic::NodeProgram lowered = nic::LowerNode(plan, *program, options);
    watch.Lap(kLower);
    std::vector<nic::QueuePairImage> images = nic::Encode(lowered);
    watch.Lap(kEncode);
    const nic::Bindings bindings = ExampleBindings(lowered);
    LinkAll(std::move(images), bindings, &objects);
    watch.Lap(kLink);
    validator.Add(objects);
    watch.Lap(kValidate);
  }
  const nic::ValidationReport report = validator.Finish();
  watch.Lap(kValidate);
  PREPOST_CHECK(report.ok());
  *wqes = report.wqes;
  MeasureArming(plan, options, &watch);
  return sample;
}

/// The nodes' objects without their entries: numbers are known before there are bytes.
std::vector<nic::NodeProgram> Shapes(const VerifiedPlan& plan, const nic::LowerOptions& options) {
  nic::QueueProgram program = *nic::Lower(plan, options);
  for (nic::NodeProgram& node : program.nodes) {
    for (nic::QueuePair& qp : node.qps) qp.sends = {}, qp.receives = {};
  }
  return std::move(program.nodes);
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

Json RunCase(const Spec& spec, const nic::LowerOptions& options, int repeat) {
  const VerifiedPlan plan = *Compile(spec);
  const std::vector<nic::NodeProgram> shapes = Shapes(plan, options);
  uint64_t wqes = 0;
  std::array<std::vector<double>, kSteps> seconds;
  for (int i = 0; i <= repeat; ++i) {
    const Sample sample = Measure(plan, options, shapes, &wqes);
    if (i == 0) continue;  // warm-up
    for (size_t step = 0; step < kSteps; ++step) seconds[step].push_back(sample[step]);
  }
  Json result = {{"algorithm", spec.algorithm},
                 {"nodes", spec.nodes},
                 {"blocks", plan.header().payload.blocks},
                 {"mode", Name(options.mode)},
                 {"ops", plan.ops().size()},
                 {"wqes", wqes},
                 {"aim_wqes_per_s", kAim}};
  for (size_t step = 0; step < kSteps; ++step) {
    result[kStepNames[step]] = {{"wqes_per_s", static_cast<double>(wqes) / Median(seconds[step])},
                                {"s", seconds[step]}};
  }
  return result;
}

int Main(int argc, char** argv) {
  CLI::App app("How fast plans are lowered, encoded, linked and validated, in WQEs per second.");
  std::vector<std::string> sizes = {"8x4096", "64x4096"};
  std::string algorithm = "binomial_pipeline";
  int repeat = 5;
  bool json = false;
  app.add_option("SIZE", sizes, "nodes x blocks, such as 64x256");
  app.add_option("--algorithm", algorithm, "Schedule")->check(CLI::IsMember(ScheduleNames()));
  app.add_option("--repeat", repeat, "Counted runs, after one warm-up")->check(CLI::Range(1, 1000));
  app.add_flag("--json", json, "Print everything, with all samples, as JSON");
  CLI11_PARSE(app, argc, argv);

  Json results = Json::array();
  for (const std::string& size : sizes) {
    uint32_t nodes = 0, blocks = 0;
    if (std::sscanf(size.c_str(), "%ux%u", &nodes, &blocks) != 2 || nodes == 0 || blocks == 0) {
      std::cerr << "lowering_bench: '" << size << "' is no size such as 64x256\n";
      return 2;
    }
    for (const auto mode : {nic::LoweringMode::kInline, nic::LoweringMode::kManaged}) {
      const Spec spec{
          .nodes = nodes, .message_bytes = blocks, .block_bytes = 1, .algorithm = algorithm};
      results.push_back(RunCase(spec, {.mode = mode}, repeat));
    }
  }
  if (json) {
    std::cout << Json{{"provenance", Provenance()}, {"cases", results}}.dump(2) << "\n";
    return 0;
  }
  std::cout << fmt::format(
      "{}\n{}, million WQEs per second of processor time, median of {} runs after a "
      "warm-up; aim {}\n{:>10} {:>8} {:>9}",
      Provenance(), algorithm, repeat, kAim / 1e6, "n x k", "mode", "WQEs");
  for (const char* name : kStepNames) std::cout << fmt::format(" {:>11}", name);
  std::cout << " check/arm\n";
  for (const Json& result : results) {
    std::cout << fmt::format(
        "{:>10} {:>8} {:>9}",
        fmt::format("{}x{}", result["nodes"].get<int>(), result["blocks"].get<int>()),
        result["mode"].get<std::string>(), result["wqes"].get<uint64_t>());
    for (const char* name : kStepNames) {
      std::cout << fmt::format(" {:>11.2f}", result[name]["wqes_per_s"].get<double>() / 1e6);
    }
    const double ratio = result["arm"]["wqes_per_s"].get<double>() /
                         result["check_armed"]["wqes_per_s"].get<double>();
    std::cout << fmt::format(" {:>8.0f}%\n", 100 * ratio);
  }
  return 0;
}

}  // namespace
}  // namespace prepost

int main(int argc, char** argv) { return prepost::Main(argc, argv); }
