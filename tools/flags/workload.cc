// SPDX-License-Identifier: Apache-2.0
#include "tools/flags/workload.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "compiler/spec_json.h"
#include "sim/simulation.h"
#include "sim/time.h"
#include "sim/workload_json.h"
#include "tools/commands/compile_for_device.h"
#include "tools/flags/named_file.h"
#include "tools/flags/plan_file.h"
#include "tools/flags/read_with.h"
#include "tools/report/ticker.h"

namespace prepost::tools {
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
      Result<VerifiedPlan> plan = CompileForDevice(group.spec, lower_, is_quiet_);
      if (plan.ok()) return plan;
      return Rejected(plan.status().message(), "/spec" + plan.status().where());
    }
    Result<VerifiedPlan> plan = LoadPlan((folder_ / group.plan_path).string());
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

}  // namespace prepost::tools
