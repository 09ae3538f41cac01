// SPDX-License-Identifier: Apache-2.0
#include "planning/files/plan_file.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "compiler/topology/topology_json.h"
#include "ir/json/file_format.h"
#include "ir/json/plan_json.h"
#include "ir/json/plan_shard.h"
#include "ir/json/rolled_plan_json.h"
#include "ir/verify/verify.h"
#include "planning/files/named_file.h"
#include "planning/flags/values.h"
#include "planning/text/messages.h"
#include "runtime/base/interrupt.h"
#include "runtime/executor/executor_choice.h"
#include "runtime/files/plan_folder.h"

namespace prepost {
namespace {

/// A GOAL text says the number of its ranks first, behind comments. No JSON begins so.
bool BeginsAsGoal(std::istream& in) {
  std::string beginning(4096, '\0');
  in.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  beginning.resize(static_cast<size_t>(in.gcount()));
  const size_t first = beginning.find_first_not_of(" \t\r\n");
  return first != std::string::npos && (beginning[first] == '/' || beginning[first] == 'n') &&
         beginning.find("num_ranks") != std::string::npos;
}

}  // namespace

Result<FileKind> KindOf(const std::string& path) {
  if (IsPlanFolder(path)) return FileKind::kPlan;
  bool is_goal = false;
  PREPOST_RETURN_IF_ERROR(WithPreview(path, [&](std::istream& in, const std::string&) -> Status {
    is_goal = BeginsAsGoal(in);
    return {};
  }));
  if (is_goal) return FileKind::kGoal;
  std::string format;
  PREPOST_RETURN_IF_ERROR(WithPreview(path, [&](std::istream& in, const std::string&) -> Status {
    format = FormatOf(in);
    return {};
  }));
  if (format == kRolledPlanFormat) return FileKind::kRolledPlan;
  if (format == kShardFormat || format == kPlanIndexFormat) return FileKind::kPlanPart;
  if (format == "prepost.trace") return FileKind::kTrace;
  return format == "prepost.spec" ? FileKind::kSpec : FileKind::kPlan;
}

namespace {

/// ReadWith() of a plan, which may take long.
template <typename ReadPlanFunction>
auto ReadPlanWith(ReadPlanFunction read, const std::string& path) {
  const Ticker ticker("reading " + path);
  return ReadWith(read, path);
}

}  // namespace

Result<Plan> ReadPlanFile(const std::string& path) {
  const Result<FileKind> kind = KindOf(path);
  if (!kind.ok()) return kind.status();
  if (*kind == FileKind::kRolledPlan) {
    return Rejected(
        fmt::format("a rolled plan, for every message size: prepost unroll {} --message-bytes N "
                    "makes the plan for one",
                    path),
        NameOfInput(path));
  }
  if (*kind == FileKind::kSpec) {
    return Rejected(fmt::format("a spec, of which prepost compile {} makes a plan", path),
                    NameOfInput(path));
  }
  if (*kind == FileKind::kTrace) {
    return Rejected(fmt::format("the trace of a run, expected a plan: prepost draw PLAN --trace {} "
                                "draws it",
                                path),
                    NameOfInput(path));
  }
  if (*kind == FileKind::kGoal) {
    return Rejected(fmt::format("a GOAL text, of which prepost import {} makes a plan", path),
                    NameOfInput(path));
  }
  if (*kind == FileKind::kPlanPart) {
    const std::string folder = std::filesystem::path(path).parent_path();
    return Rejected(fmt::format("one file of a plan in shards: name the folder that it is in, {}",
                                folder.empty() ? "." : folder),
                    NameOfInput(path));
  }
  if (!IsPlanFolder(path)) return ReadPlanWith(ReadPlan, path);
  const Ticker ticker("reading " + path);
  std::vector<std::string> warnings;
  Result<Plan> plan = ReadPlanFolder(path, &warnings);
  PrintWarnings(path, warnings);
  return plan;
}

Result<RolledPlan> ReadRolledPlanFile(const std::string& path) {
  return ReadPlanWith(ReadRolledPlan, path);
}

Result<VerifiedPlan> LoadAnyPlan(const std::string& path) {
  Result<Plan> plan = ReadPlanFile(path);
  if (!plan.ok()) return plan.status();
  Verdict verdict;
  Result<VerifiedPlan> verified = [&] {
    const Ticker ticker("verifying " + path);
    return Verified(*std::move(plan), {}, &verdict);
  }();
  if (verified.ok()) return verified;
  const Diagnostic& first = verdict.diagnostics.front();
  const std::string more = verdict.findings == 1
                               ? ""
                               : fmt::format("; {} more, see prepost verify", verdict.findings - 1);
  return Rejected(fmt::format("the plan fails verification: {}: {}: {}{}", first.where,
                              Name(first.rule), first.message, more),
                  path);
}

Status ExpectPlayed(const Plan& plan) {
  if (plan.header().collective.kind != CollectiveKind::kMulticast) return {};
  return ExpectPlainMulticast(plan);
}

Status ExpectDrawn(const Plan& plan, bool has_queues) {
  if (!has_queues) return {};
  const Status status = ExpectPlainMulticast(plan);
  if (status.ok()) return status;
  return Rejected(status.message() +
                  "; spacetime, graph and tree, and pages with them, are drawn of all");
}

Result<VerifiedPlan> LoadPlayedPlan(const std::string& path) {
  Result<VerifiedPlan> plan = LoadAnyPlan(path);
  if (!plan.ok()) return plan;
  if (const Status status = ExpectPlayed(*plan); !status.ok())
    return Rejected(status.message(), NameOfInput(path));
  return plan;
}

Result<VerifiedPlan> LoadPrepostedPlan(const std::string& path) {
  Result<VerifiedPlan> plan = LoadPlayedPlan(path);
  if (!plan.ok()) return plan;
  if (const std::optional<std::string> why = WhyNotPreposted(*plan))
    return Rejected(*why + "; run and simulate take it, driven by CPUs", NameOfInput(path));
  return plan;
}

Result<VerifiedPlan> LoadPlan(const std::string& path) {
  Result<VerifiedPlan> plan = LoadAnyPlan(path);
  if (!plan.ok()) return plan;
  if (const Status status = ExpectPlainMulticast(*plan); !status.ok())
    return Rejected(status.message(), NameOfInput(path));
  return plan;
}

namespace {

/// People read no plan of more ops than this line by line, so these are written in columns.
constexpr size_t kRowsOpsMax = 100'000;

constexpr const char* kAuto = "auto";
constexpr const char* kRows = "rows";
constexpr const char* kColumns = "columns";
constexpr const char* kShards = "shards";

Status WriteShards(const Plan& plan, const std::string& path) {
  const Result<InterruptSignals> signals = InterruptSignals::Hold();
  if (!signals.ok()) return signals.status();
  const Ticker ticker("writing " + path);
  return WritePlanFolder(plan, path, signals->fd());
}

}  // namespace

void PlanOutput::AddTo(CLI::App& command) {
  command
      .add_option("-o,--output", path,
                  "Plan file to write, - for stdout; with --encoding shards a folder [-]")
      ->type_name("PLAN")
      ->check(NameOf("a file"));
  command
      .add_option("--encoding", encoding,
                  "rows: an op a line; columns: an array per field, a quarter of the size and read "
                  "many times as fast; shards: a folder with a file per node; auto: rows up to "
                  "100000 ops, else columns [auto]")
      ->type_name("E");
  command.add_flag("--dump", dump, "Write one line per op for people instead of JSON");
}

Status PlanOutput::Check() const {
  PREPOST_RETURN_IF_ERROR(CheckWord("--encoding", encoding, {kAuto, kRows, kColumns, kShards}));
  if (dump && encoding != kAuto)
    return {StatusCode::kUsage, "--encoding is for JSON, --dump writes none"};
  if (encoding != kShards) return {};
  if (path == "-") {
    return {StatusCode::kUsage, "--encoding shards writes a folder: name it with -o"};
  }
  return CheckPlanFolder(path);
}

Status PlanOutput::CheckRolled() const {
  if (encoding == kAuto) return {};
  return {StatusCode::kUsage,
          fmt::format("--encoding {} is for plans of one message size", encoding)};
}

Status PlanOutput::Write(const Plan& plan) const {
  if (encoding == kShards) return WriteShards(plan, path);
  const bool is_columns =
      encoding == kColumns || (encoding == kAuto && plan.ops().size() > kRowsOpsMax);
  return WriteFile(path, [&](std::ostream& out) {
    if (dump) {
      out << Dump(plan);
    } else {
      WritePlan(plan, out, is_columns ? PlanEncoding::kColumns : PlanEncoding::kRows);
    }
  });
}

Status PlanOutput::Write(const RolledPlan& plan) const {
  return WriteFile(path, [&](std::ostream& out) {
    if (dump) {
      out << Dump(plan);
    } else {
      WriteRolledPlan(plan, out);
    }
  });
}

Result<Network> LoadTopology(const std::string& path) { return ReadWith(ReadTopology, path); }

Result<Network> NetworkOfFile(const Network& topology, const std::string& path, uint32_t nodes) {
  Result<Network> network = topology.First(nodes);
  if (!network.ok()) return Rejected(network.status().message(), path);
  return network;
}

}  // namespace prepost
