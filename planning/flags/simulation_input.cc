// SPDX-License-Identifier: Apache-2.0
#include "planning/flags/simulation_input.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "compiler/roll.h"
#include "compiler/spec_json.h"
#include "planning/files/named_file.h"
#include "planning/files/plan_file.h"
#include "planning/flags/lowering_flags.h"
#include "planning/flags/play_flags.h"
#include "planning/text/messages.h"
#include "sim/cluster/workload_json.h"
#include "sim/nics/time.h"
#include "sim/simulation.h"

namespace prepost {
Result<Network> SimulatedPlan::NetworkIn(const sim::Profile& profile) const {
  const uint32_t nodes = plan.header().nodes;
  if (!topology) return profile.NetworkOf(nodes);
  return NetworkOfFile(*topology, topology_path, nodes);
}

void SimulationInput::AddTo(CLI::App& command) {
  command.add_option("PLAN", path, "Plan, rolled plan or spec file, - for stdin");
  spec.AddTo(command, AutoFlags::kNone);
  spec.AddCollectivesTo(command);
  size.AddTo(command, /*takes_any=*/false);
}

Result<SimulatedPlan> SimulationInput::Load(const AutoTarget& target, bool is_quiet) const {
  if (path.empty() && !spec.any()) {
    return Status(StatusCode::kUsage,
                  "simulate needs a PLAN, a SPEC or flags such as --nodes (see --help)");
  }
  const Result<FileKind> kind = path.empty() ? Result(FileKind::kSpec) : KindOf(path);
  if (!kind.ok()) return kind.status();
  if (*kind == FileKind::kSpec) {
    const Result<std::optional<uint64_t>> bytes = size.Bytes();
    if (!bytes.ok()) return bytes.status();
    return CompileFor(target, spec, path, *bytes, is_quiet);
  }
  if (const std::string flag = spec.FirstGiven(/*has_topology=*/false); !flag.empty()) {
    return Status(StatusCode::kUsage,
                  fmt::format("{}: it is for a SPEC, and this is a plan", flag));
  }
  Result<VerifiedPlan> plan = *kind == FileKind::kRolledPlan ? Unrolled() : LoadPlayedPlan(path);
  if (!plan.ok()) return plan.status();
  if (*kind != FileKind::kRolledPlan) {
    const Result<std::optional<uint64_t>> bytes = size.Bytes();
    if (!bytes.ok()) return bytes.status();
    if (bytes->has_value()) {
      return Status(StatusCode::kUsage, fmt::format("{}: it is for a SPEC or a rolled plan: a "
                                                    "plan's is in its file",
                                                    size.flag()));
    }
  }
  SimulatedPlan loaded = {.plan = *std::move(plan)};
  if (!spec.topology()) return loaded;
  Result<Network> topology = LoadTopology(*spec.topology());
  if (!topology.ok()) return topology.status();
  loaded.topology = *std::move(topology);
  loaded.topology_path = *spec.topology();
  return loaded;
}

Result<SimulatedPlan> CompileFor(const AutoTarget& target, const SpecFlags& spec,
                                 const std::string& path, std::optional<uint64_t> bytes,
                                 bool is_quiet) {
  Result<Spec> read = spec.Read(path, bytes);
  if (!read.ok()) return read.status();
  std::optional<Network> topology = read->topology;
  // What is chosen, and what racks are, goes by the network that the plan will run on.
  if (!topology && read->nodes >= 1 && read->nodes <= kNodesMax)
    read->topology = target.profile->NetworkOf(read->nodes);
  const Result<Spec> settled = spec.Settle(*std::move(read), path, target, is_quiet);
  if (!settled.ok()) return settled.status();
  std::optional<Ticker> ticker;
  if (!is_quiet) ticker.emplace("compiling");
  Result<VerifiedPlan> plan =
      CompileForDevice(*settled, target.is_offload ? &target.lower : nullptr, is_quiet);
  if (!plan.ok()) return plan.status();
  return SimulatedPlan{.plan = *std::move(plan),
                       .topology = std::move(topology),
                       .topology_path = spec.topology().value_or(path)};
}

std::string OrderText(const std::string& order) {
  constexpr size_t kOrderMax = 60;  // of what may be a million nodes
  return "--order " + (order.size() <= kOrderMax ? order : order.substr(0, kOrderMax) + "...");
}

Result<VerifiedPlan> UnrollFor(const RolledPlan& rolled, const std::string& path, uint64_t bytes,
                               const std::string& flag) {
  PREPOST_RETURN_IF_ERROR(CheckSize(rolled, bytes, flag));
  Result<VerifiedPlan> plan = Unroll(rolled, bytes);
  if (!plan.ok()) return Rejected(plan.status().ToString(), path);
  return plan;
}

Result<VerifiedPlan> SimulationInput::Unrolled() const {
  const Result<RolledPlan> rolled = ReadRolledPlanFile(path);
  if (!rolled.ok()) return rolled.status();
  const Result<std::optional<uint64_t>> bytes = size.Bytes();
  if (!bytes.ok()) return bytes.status();
  if (!bytes->has_value()) {
    return Status(StatusCode::kUsage,
                  "--message-bytes: a rolled plan is for every size, say which (see --help)");
  }
  return UnrollFor(*rolled, path, **bytes, size.flag());
}

std::shared_ptr<const SimulatedPlan> PlanCache::Find(const PlanKey& key) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(entries_, key, &Entry::key);
  if (found == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found);
  return entries_.front().plan;
}

Result<std::shared_ptr<const SimulatedPlan>> PlanCache::Get(const PlanKey& key, const Make& make) {
  if (std::shared_ptr<const SimulatedPlan> plan = Find(key)) return plan;
  // Others may make the same meanwhile, and need not wait.
  Result<SimulatedPlan> made = make();
  if (!made.ok()) return made.status();
  auto plan = std::make_shared<const SimulatedPlan>(*std::move(made));
  size_t ops = 0;
  for (const Program& program : plan->plan.programs()) ops += plan->plan.ops(program).size();
  const std::lock_guard lock(mutex_);
  entries_.push_front({key, plan, ops});
  size_t sum = 0;
  const auto too_many = std::ranges::find_if(
      entries_, [&](const Entry& entry) { return (sum += entry.ops) > kOpsMax; });
  // The last one may be in use, and stays.
  if (too_many != entries_.end())
    entries_.erase(too_many == entries_.begin() ? std::next(too_many) : too_many, entries_.end());
  return plan;
}

namespace {

/// Plans by what they come from, each made once.
class PlanStore {
 public:
  PlanStore(std::filesystem::path folder, const nic::LowerOptions* lower, bool is_quiet)
      : folder_(std::move(folder)), lower_(lower), is_quiet_(is_quiet) {}

  /// `plans` is where they are. Errors: a `where` is within the group.
  Result<const VerifiedPlan*> Get(const sim::WorkloadFile::Group& group,
                                  std::deque<VerifiedPlan>* plans) {
    std::ostringstream key;
    if (group.plan_path.empty()) {
      WriteSpec(group.spec, key);
    } else {
      key << group.plan_path;  // a spec begins with a brace and a line break
    }
    const VerifiedPlan*& known = plan_of_[key.str()];
    if (known != nullptr) return known;
    Result<VerifiedPlan> plan = Make(group);
    if (!plan.ok()) return plan.status();
    plans->push_back(*std::move(plan));
    return known = &plans->back();
  }

 private:
  Result<VerifiedPlan> Make(const sim::WorkloadFile::Group& group) const {
    if (group.plan_path.empty()) {
      Result<VerifiedPlan> plan = CompileForDevice(WithImplied(group.spec), lower_, is_quiet_);
      if (plan.ok()) return plan;
      return Rejected(plan.status().message(), "/spec" + plan.status().where());
    }
    Result<VerifiedPlan> plan = LoadPlayedPlan((folder_ / group.plan_path).string());
    if (plan.ok()) return plan;
    return Rejected(plan.status().ToString(), "/plan");
  }

  const std::filesystem::path folder_;
  const nic::LowerOptions* lower_;
  const bool is_quiet_;
  std::map<std::string, const VerifiedPlan*> plan_of_;
};

}  // namespace

Result<Workload> LoadWorkload(const std::string& path, const nic::LowerOptions* lower,
                              bool is_quiet) {
  Result<sim::WorkloadFile> file = ReadWith(sim::ReadWorkload, path);
  if (!file.ok()) return file.status();
  std::optional<Ticker> ticker;
  if (!is_quiet) ticker.emplace("compiling");
  Workload workload;
  workload.name = file->name.empty() ? NameOfInput(path) : file->name;
  workload.hosts = file->hosts;
  PlanStore store(path == "-" ? "" : std::filesystem::path(path).parent_path(), lower, is_quiet);
  uint64_t transfers = 0;
  for (size_t i = 0; i < file->groups.size(); ++i) {
    sim::WorkloadFile::Group& group = file->groups[i];
    const auto at = [&](const Status& status) {
      return Rejected(status.message(),
                      fmt::format("{}: /groups/{}{}", NameOfInput(path), i, status.where()));
    };
    const Result<const VerifiedPlan*> plan = store.Get(group, &workload.plans);
    if (!plan.ok()) return at(plan.status());
    transfers += (*plan)->ops().size() / 2;
    if (transfers > sim::kGroupTransfersMax) {
      return at(
          Rejected(fmt::format("more than {} transfers up to here", sim::kGroupTransfersMax)));
    }
    const double picoseconds = group.start * static_cast<double>(sim::kPicosecondsPerSecond);
    workload.groups.push_back({.plan = *plan,
                               .hosts = std::move(group.hosts),
                               .start = std::llround(picoseconds),
                               .after = group.after});
  }
  const Status status = sim::CheckGroups(workload.groups, workload.hosts);
  if (!status.ok()) return Rejected(status.message(), NameOfInput(path));
  return workload;
}

}  // namespace prepost
