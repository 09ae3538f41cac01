// SPDX-License-Identifier: Apache-2.0
#include "library/group_plan_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <istream>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/roll.h"
#include "compiler/spec.h"
#include "compiler/verify_rolled.h"
#include "ir/base/count.h"
#include "ir/base/input_buffer.h"
#include "ir/json/file_format.h"
#include "ir/json/plan_json.h"
#include "ir/json/rolled_plan_json.h"
#include "ir/rolled/rolled_play.h"
#include "ir/verify/verify.h"
#include "runtime/files/plan_folder.h"

namespace prepost {
namespace {

class RolledFile final : public GroupPlans {
 public:
  RolledFile(RolledPlan plan, std::string path, bool is_flat)
      : plan_(std::move(plan)),
        path_(std::move(path)),
        is_flat_(is_flat),
        connections_(RolledConnections(plan_)) {}

  const std::vector<TcpConnection>& connections() const override { return connections_; }
  PlanHash Hash() const override { return HashRolledPlan(plan_); }
  Status CheckSize(uint64_t bytes) const override {
    const auto header = plan_.HeaderFor(bytes);
    Status status = header.status();
    if (status.ok() && is_flat_) status = CheckTransfers(header->nodes, header->payload.blocks);
    return status.ok() ? status : UsageError(fmt::format("{}: {}", path_, status.message()));
  }
  Result<Playable> For(uint64_t bytes, uint16_t /*variant*/) override {
    if (play_ && play_->outline().header().payload.bytes == bytes) return Playable(*play_);
    Result<RolledPlay> play = RolledPlay::Make(plan_, bytes);
    if (!play.ok()) return Rejected(play.status().ToString(), path_);
    play_.emplace(*std::move(play));
    return Playable(*play_);
  }
  Result<std::shared_ptr<const VerifiedPlan>> FlatFor(uint64_t bytes) override {
    Result<VerifiedPlan> plan = Unroll(plan_, bytes);
    if (!plan.ok()) return Rejected(plan.status().ToString(), path_);
    return std::make_shared<const VerifiedPlan>(*std::move(plan));
  }

 private:
  const RolledPlan plan_;
  const std::string path_;
  const bool is_flat_;  ///< FlatFor() is called
  const std::vector<TcpConnection> connections_;
  std::optional<RolledPlay> play_;  ///< of the last message
};

class FlatFile final : public GroupPlans {
 public:
  FlatFile(VerifiedPlan plan, std::string path)
      : plan_(std::make_shared<const VerifiedPlan>(std::move(plan))),
        path_(std::move(path)),
        connections_(TcpConnections(*plan_)) {}

  const std::vector<TcpConnection>& connections() const override { return connections_; }
  PlanHash Hash() const override { return HashPlan(*plan_); }
  Status CheckSize(uint64_t bytes) const override {
    const uint64_t planned = plan_->header().payload.bytes;
    if (bytes == planned) return {};
    return UsageError(fmt::format(
        "{} is a plan for messages of {}, and this one has {}; a rolled plan carries any size",
        path_, Count(planned, "byte"), bytes));
  }
  Result<Playable> For(uint64_t bytes, uint16_t /*variant*/) override {
    const Status status = CheckSize(bytes);
    if (!status.ok()) return Rejected(status.message());
    return Playable(*plan_);
  }
  Result<std::shared_ptr<const VerifiedPlan>> FlatFor(uint64_t bytes) override {
    const Status status = CheckSize(bytes);
    if (!status.ok()) return Rejected(status.message());
    return plan_;
  }

 private:
  const std::shared_ptr<const VerifiedPlan> plan_;
  const std::string path_;
  const std::vector<TcpConnection> connections_;
};

Status CheckFits(const PlanHeader& plan, const GroupPlanSpec& spec) {
  if (plan.nodes != spec.nodes) {
    return Rejected(fmt::format("it is a plan for {}, and the group has {}",
                                Count(plan.nodes, "node"), Count(spec.nodes, "member")));
  }
  if (plan.collective.root == spec.root) return {};
  return Rejected(
      fmt::format("its root is node {}, and the group's root is the member at place {} of its list",
                  plan.collective.root.value, spec.root.value));
}

Result<std::unique_ptr<GroupPlans>> OfRolled(RolledPlan plan, const GroupPlanSpec& spec) {
  PREPOST_RETURN_IF_ERROR(CheckFits(plan.header, spec));
  if (std::ranges::find(plan.programs, spec.self, &RolledProgram::node) == plan.programs.end()) {
    return Rejected(fmt::format("it has no program for node {}, which is this member's place",
                                spec.self.value));
  }
  const bool is_whole = plan.programs.size() == plan.header.nodes;
  if (spec.is_flat && !is_whole)
    return Rejected("a device needs a plan with the programs of all nodes, and it has only some");
  const Status verified =
      is_whole ? VerifyRolled(plan).status() : VerifyRolledPrograms(plan).status();
  if (!verified.ok()) return Rejected("the plan fails verification: " + verified.ToString());
  return std::unique_ptr<GroupPlans>(
      std::make_unique<RolledFile>(std::move(plan), spec.plan_path, spec.is_flat));
}

Result<std::unique_ptr<GroupPlans>> OfFlat(Plan plan, const GroupPlanSpec& spec) {
  PREPOST_RETURN_IF_ERROR(CheckFits(plan.header(), spec));
  Verdict verdict;
  Result<VerifiedPlan> verified = Verified(std::move(plan), {}, &verdict);
  if (!verified.ok()) {
    const Diagnostic& first = verdict.diagnostics.front();
    return Rejected(fmt::format("the plan fails verification: {}: {}: {}", first.where,
                                Name(first.rule), first.message));
  }
  PREPOST_RETURN_IF_ERROR(ExpectPlainMulticast(*verified));
  return std::unique_ptr<GroupPlans>(
      std::make_unique<FlatFile>(*std::move(verified), spec.plan_path));
}

Result<std::unique_ptr<GroupPlans>> Read(const GroupPlanSpec& spec) {
  if (IsPlanFolder(spec.plan_path)) {
    std::vector<std::string> warnings;
    Result<Plan> plan = ReadPlanFolder(spec.plan_path, &warnings);
    if (!plan.ok()) return plan.status();
    return OfFlat(*std::move(plan), spec);
  }
  InputBuffer file(spec.plan_path);
  PREPOST_RETURN_IF_ERROR(file.status(spec.plan_path));
  std::istream in(&file);
  const bool is_rolled = FormatOf(in) == kRolledPlanFormat;
  in.clear();
  in.seekg(0);
  if (!in.good()) return Rejected("it is no file that can be read twice");
  if (is_rolled) {
    Result<RolledPlan> plan = ReadRolledPlan(in, spec.plan_path);
    PREPOST_RETURN_IF_ERROR(file.status(spec.plan_path));
    if (!plan.ok()) return plan.status();
    return OfRolled(*std::move(plan), spec);
  }
  Result<Plan> plan = ReadPlan(in, spec.plan_path);
  PREPOST_RETURN_IF_ERROR(file.status(spec.plan_path));
  if (!plan.ok()) return plan.status();
  return OfFlat(*std::move(plan), spec);
}

}  // namespace

Result<std::unique_ptr<GroupPlans>> ReadGroupPlans(const GroupPlanSpec& spec) {
  if (spec.algorithm != "auto" || spec.block_bytes != 0)
    return UsageError("a plan file has an algorithm and a block size of its own");
  Result<std::unique_ptr<GroupPlans>> plans = Read(spec);
  if (plans.ok()) return plans;
  std::string why = plans.status().ToString();
  if (!why.starts_with(spec.plan_path)) why = spec.plan_path + ": " + why;
  return UsageError(why);
}

}  // namespace prepost
