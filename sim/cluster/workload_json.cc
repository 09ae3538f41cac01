// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/workload_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <istream>
#include <utility>

#include "compiler/collectives/collective_schedule.h"
#include "compiler/spec_json.h"
#include "ir/base/count.h"
#include "ir/json/json_reader.h"
#include "ir/json/rate_json.h"
#include "ir/json/rate_text.h"

namespace prepost::sim {
namespace {

using Need = JsonForm::Need;

constexpr const char* kWorkloadFormat = "prepost.workload";
constexpr uint32_t kWorkloadMajor = 1;
constexpr uint32_t kWorkloadMinor = 0;
constexpr size_t kPathBytesMax = 4096;

/// A choice goes by the network that a multicast has for itself, which these have not.
Status CheckNothingToChoose(const Spec& spec) {
  const auto bad = [](const char* key, const char* instead) {
    return Rejected(
        fmt::format("{}: nothing is chosen for groups that share a network; expected "
                    "{}, found \"auto\" (prepost choose tells one for a group that is "
                    "alone)",
                    key, instead));
  };
  if (spec.choose_block_bytes) return bad("block_bytes", "a number of bytes such as 1048576");
  if (spec.algorithm == kAutoAlgorithm) return bad("algorithm", "a name such as \"chain\"");
  return {};
}

/// All of the file. Neither copied nor moved: the forms point into it.
class WorkloadForm {
 public:
  explicit WorkloadForm(std::vector<std::string>* warnings) {
    AddGroup();
    defaults_.algorithm.clear();
    default_keys_.AddTo(&defaults_, &defaults_form_);
    form_.Scalar("format", ExpectString(kWorkloadFormat))
        .Scalar("version", ExpectVersion(kWorkloadMajor, kWorkloadMinor, warnings))
        .Scalar("name", ReadString(&file_.name), Need::kOptional)
        .Scalar("hosts", ReadUint32(&file_.hosts, kNodesMax, 1))
        .Object("spec", &defaults_form_, Need::kOptional)
        .Objects("groups", &group_form_);
    defaults_form_.OnBegin([this] { has_defaults_ = true; }).OnEnd([this]() -> Status {
      if (!file_.groups.empty())
        return Rejected("what all groups have in common stands before them");
      PREPOST_RETURN_IF_ERROR(default_keys_.End());
      return CheckNothingToChoose(defaults_);
    });
  }
  WorkloadForm(const WorkloadForm&) = delete;
  WorkloadForm& operator=(const WorkloadForm&) = delete;

  JsonForm* form() { return &form_; }

  /// What can only be said of all of it.
  Result<WorkloadFile> Finish(const std::string& name) {
    if (file_.groups.empty()) return Rejected("a workload without groups", name + ": /groups");
    for (size_t i = 0; i < file_.groups.size(); ++i) {
      Spec& spec = file_.groups[i].spec;
      if (spec.nodes == 0) spec.nodes = file_.hosts;
      const Status status = CheckHosts(file_.groups[i]);
      if (!status.ok()) {
        return Rejected(status.message(), fmt::format("{}: /groups/{}/hosts", name, i));
      }
    }
    return std::move(file_);
  }

 private:
  void AddGroup() {
    spec_keys_.AddTo(&group_.spec, &spec_form_);
    spec_form_.OnBegin([this] { has_spec_ = true; }).OnEnd([this]() -> Status {
      PREPOST_RETURN_IF_ERROR(spec_keys_.End());
      return CheckNothingToChoose(group_.spec);
    });
    group_form_
        .OnBegin([this] {
          group_ = {};
          group_.spec = defaults_;
          group_.spec.algorithm.clear();
          has_spec_ = false;
        })
        .Scalar("plan", ReadString(&group_.plan_path, kPathBytesMax), Need::kOptional)
        .Object("spec", &spec_form_, Need::kOptional)
        .Scalars(
            "hosts",
            [this](const JsonScalar& scalar) {
              return ReadUint32(&group_.hosts.emplace_back().value, kNodesMax - 1)(scalar);
            },
            Need::kOptional, /*least=*/1)
        .Scalar("start", ReadLatency([this](double seconds) -> Status {
                  if (seconds > kWorkloadSecondsMax) {
                    return Rejected(fmt::format("{} is too late, the limit is {}",
                                                WriteLatency(seconds),
                                                WriteLatency(kWorkloadSecondsMax)));
                  }
                  group_.start = seconds;
                  return {};
                }),
                Need::kOptional)
        .Scalar(
            "after",
            [this](const JsonScalar& scalar) -> Status {
              PREPOST_RETURN_IF_ERROR(ReadUint32(&group_.after.emplace())(scalar));
              if (*group_.after < file_.groups.size()) return {};
              return Rejected(fmt::format("group {} is no earlier one, this is group {}",
                                          *group_.after, file_.groups.size()));
            },
            Need::kOptional)
        .OnEnd([this] { return EndGroup(); });
  }

  /// What the group's spec says, or all of them, or else the default; of a collective with one
  /// schedule, that one, even if all others have another.
  std::string AlgorithmOf(const Spec& spec) const {
    if (!spec.algorithm.empty()) return spec.algorithm;
    const bool is_said = !defaults_.algorithm.empty();
    if (spec.collective != CollectiveKind::kMulticast &&
        !(is_said && defaults_.collective == spec.collective)) {
      const std::vector<std::string> names = ScheduleNames(spec.collective);
      if (names.size() == 1) return names.front();
    }
    return is_said ? defaults_.algorithm : Spec().algorithm;
  }

  /// A group of another collective than all of them, which has nothing to combine, is not asked to.
  void DropWhatOthersCombine(Spec* spec) const {
    const bool combines =
        Combines(spec->collective) && spec->collective != CollectiveKind::kBarrier;
    if (combines || spec->collective == defaults_.collective) return;
    if (spec->combine == defaults_.combine) spec->combine = {};
    if (defaults_.is_deterministic) spec->is_deterministic = false;
  }

  Status EndGroup() {
    group_.spec.algorithm = AlgorithmOf(group_.spec);
    DropWhatOthersCombine(&group_.spec);
    if (file_.groups.size() == kWorkloadGroupsMax)
      return Rejected(fmt::format("the limit is {} groups", kWorkloadGroupsMax));
    if (has_spec_ && !group_.plan_path.empty())
      return Rejected("expected a plan or a spec, found both");
    if (!has_spec_ && group_.plan_path.empty() && !has_defaults_)
      return Rejected("expected a plan or a spec, found none");
    const size_t nodes = group_.hosts.size();
    if (group_.plan_path.empty() && nodes != 0 && group_.spec.nodes == 0)
      group_.spec.nodes = static_cast<uint32_t>(nodes);
    if (group_.plan_path.empty() && nodes != 0 && group_.spec.nodes != nodes) {
      return Rejected(fmt::format("a spec of {} for {}", Count(group_.spec.nodes, "node"),
                                  Count(nodes, "host")));
    }
    file_.groups.push_back(group_);
    return {};
  }

  Status CheckHosts(const WorkloadFile::Group& group) const {
    std::vector<NodeId> hosts = group.hosts;
    std::ranges::sort(hosts);
    if (!hosts.empty() && hosts.back().value >= file_.hosts) {
      return Rejected(
          fmt::format("host {}, and the hosts are 0 to {}", hosts.back().value, file_.hosts - 1));
    }
    const auto twice = std::ranges::adjacent_find(hosts);
    if (twice == hosts.end()) return {};
    return Rejected(fmt::format("host {} is there twice", twice->value));
  }

  WorkloadFile file_;
  Spec defaults_;
  bool has_defaults_ = false;
  WorkloadFile::Group group_;  // that is being read
  bool has_spec_ = false;      // the same
  JsonForm form_, defaults_form_, group_form_, spec_form_;
  SpecKeys default_keys_, spec_keys_;
};

}  // namespace

Result<WorkloadFile> ReadWorkload(std::istream& in, const std::string& name,
                                  std::vector<std::string>* warnings) {
  WorkloadForm form(warnings);
  PREPOST_RETURN_IF_ERROR(ReadJson(in, name, form.form()));
  return form.Finish(name);
}

}  // namespace prepost::sim
