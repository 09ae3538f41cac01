// SPDX-License-Identifier: Apache-2.0
#include "planning/flags/play_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <utility>

#include "compiler/roll.h"
#include "compiler/verify_rolled.h"
#include "ir/base/count.h"
#include "ir/json/rate_text.h"
#include "planning/files/named_file.h"
#include "planning/flags/values.h"
#include "planning/text/messages.h"
#include "runtime/files/collective_sums.h"

namespace prepost {

void WaitFlags::AddTo(CLI::App& command, const std::string& description,
                      const std::string& otherwise) {
  command
      .add_option(
          "--wait", wait_,
          fmt::format("{}: {} [{}]", description, fmt::join(kWaitModeNames, ", "), otherwise))
      ->type_name("MODE");
  command
      .add_option("--idle-ms", idle_ms_,
                  "With --wait hybrid: poll this long after the last progress, then sleep [50]")
      ->type_name("MS")
      ->check(Number(0, 1e6));
}

Status WaitFlags::Check() const {
  if (any()) PREPOST_RETURN_IF_ERROR(CheckWord("--wait", wait_, Words(kWaitModeNames)));
  if (idle_ms_ && wait_ != Name(WaitMode::kHybrid)) {
    return {StatusCode::kUsage, "--idle-ms is for --wait hybrid"};
  }
  return {};
}

WaitPolicy WaitFlags::policy(WaitMode otherwise) const {
  WaitPolicy policy;
  policy.mode = ValueOf(kWaitModeNames, wait_, otherwise);
  if (idle_ms_) policy.idle_max = std::chrono::milliseconds(static_cast<int64_t>(*idle_ms_));
  return policy;
}

namespace {

constexpr double kTimeoutSeconds = 30;

}  // namespace

Result<std::chrono::milliseconds> ParseFailureMax(const std::string& text) {
  constexpr double kLeast = 0.1;
  constexpr double kMost = 3600;
  if (text.empty()) return std::chrono::milliseconds(15000);
  const std::optional<double> number = NumberOf<double>(text);
  const Result<double> seconds = number ? Result(*number) : ParseLatency(text);
  if (!seconds.ok() || !(*seconds >= kLeast && *seconds <= kMost)) {
    return UsageError(
        fmt::format("--failure-max: expected {:g} to {:g} seconds, such as 2 or 500ms, "
                    "got '{}'",
                    kLeast, kMost, text.substr(0, 40)));
  }
  return std::chrono::round<std::chrono::milliseconds>(std::chrono::duration<double>(*seconds));
}

void AddFailureMax(CLI::App& command, std::string* text) {
  command
      .add_option("--failure-max", *text,
                  "Within this time all hear of one that is stopped or cut off, and an outage of a "
                  "quarter of it is borne; of one that is gone they hear at once [15s]")
      ->type_name("TIME");
}

void PlayFlags::AddTo(CLI::App& command) {
  wait.AddTo(command, "How CPUs wait for completions");
  command
      .add_option("--timeout", timeout_s, "Give up when nothing moves for this many seconds [30]")
      ->type_name("SECONDS")
      ->check(Seconds());
  AddFailureMax(command, &failure_max_text);
  command.add_flag("--json", json, "Print the report as JSON");
}

Status PlayFlags::Check() const {
  PREPOST_RETURN_IF_ERROR(wait.Check());
  return ParseFailureMax(failure_max_text).status();
}

std::chrono::milliseconds PlayFlags::failure_max() const {
  return *ParseFailureMax(failure_max_text);
}

std::chrono::milliseconds PlayFlags::no_progress_max() const {
  const std::chrono::duration<double> timeout(timeout_s.value_or(kTimeoutSeconds));
  return std::chrono::ceil<std::chrono::milliseconds>(timeout);
}

Status CheckOperation(const PlanHeader& header, const std::string& path) {
  if (header.combine.op != CombineOp::kUser && header.combine.op != CombineOp::kUserOrdered)
    return {};
  return Rejected(
      fmt::format("a plan of {} {}: the operation is the caller's own, which calls of the library "
                  "have (docs/library.md) and this command does not",
                  Name(header.collective.kind), ToString(header.combine)),
      NameOfInput(path));
}

Status CheckInputSize(const PlanHeader& header, const MappedInput& input, NodeId node) {
  if (header.collective.kind == CollectiveKind::kMulticast) return CheckInputSize(header, input);
  const uint64_t expected = NodeBytesOf(header, node).input;
  if (input.size_bytes() == expected) return {};
  const uint64_t parts = header.roles().Contributed(node).count;
  return Rejected(fmt::format(
      "input {} has {}, expected {} as node {} contributes in the plan{}", input.path(),
      Count(input.size_bytes(), "byte"), expected, node.value,
      parts == 1 ? ""
      : header.payload.is_uneven()
          ? fmt::format(", {} of sizes of their own", Count(parts, "part"))
          : fmt::format(", {} of {}", Count(parts, "part"), Count(header.payload.bytes, "byte"))));
}

Status CheckInputSize(const PlanHeader& header, const MappedInput& input) {
  const uint64_t expected = InputBytesOf(header);
  if (input.size_bytes() == expected) return {};
  if (header.collective.kind != CollectiveKind::kMulticast) {
    return Rejected(fmt::format(
        "input {} has {}, expected {}: the inputs of {}, one after the other", input.path(),
        Count(input.size_bytes(), "byte"), expected, Count(header.nodes, "node")));
  }
  return Rejected(fmt::format("input {} has {}, expected {} as in the plan", input.path(),
                              Count(input.size_bytes(), "byte"), expected));
}

std::function<void(uint64_t)> DeliveryProgress(const PlanHeader& header, bool is_shown) {
  double total = static_cast<double>(header.payload.bytes) * (header.nodes - 1);
  if (header.collective.kind != CollectiveKind::kMulticast)
    return {};  // how much is to come, ops say
  if (!is_shown || total == 0) return {};
  return [total](uint64_t received) {
    std::cerr << fmt::format("\r{:3.0f}% delivered ", 100 * static_cast<double>(received) / total);
  };
}

void ClearProgress(bool is_shown) {
  if (is_shown) std::cerr << "\r\033[K";
}

Status CheckSize(const RolledPlan& rolled, uint64_t bytes, const std::string& what) {
  const Status status = rolled.HeaderFor(bytes).status();
  if (status.ok()) return {};
  const bool needs_larger_blocks = bytes <= kMessageBytesMax;
  const std::string hint = needs_larger_blocks
                               ? fmt::format("; compile the plan with --block-bytes {} or more",
                                             (bytes - 1) / kBlocksMax + 1)
                               : "";
  return Rejected(status.message() + hint, what);
}

Result<PlayedPlan> PlayedPlan::Rolled(RolledPlan rolled, uint64_t bytes, const std::string& path) {
  const Result<PlanHeader> header = rolled.HeaderFor(bytes);
  if (!header.ok()) return Rejected(header.status().ToString(), path);
  const Status verified = [&] {
    const Ticker ticker("verifying " + path);
    return VerifyRolledFor(rolled, header->payload.blocks);
  }();
  if (!verified.ok()) {
    return Rejected("the plan fails verification: " + verified.ToString(), path);
  }
  PlayedPlan plan;
  plan.rolled_ = std::make_unique<RolledPlan>(std::move(rolled));
  Result<RolledPlay> play = RolledPlay::Make(*plan.rolled_, bytes);
  if (!play.ok()) return Rejected(play.status().ToString(), path);
  plan.play_ = std::make_unique<RolledPlay>(std::move(*play));
  return plan;
}

Result<PlayedPlan> PlayedPlan::Unrolled(const RolledPlan& rolled, uint64_t bytes,
                                        const std::string& path, const std::string& what) {
  Result<VerifiedPlan> plan = [&] {
    const Ticker ticker("unrolling");
    return Unroll(rolled, bytes);
  }();
  if (!plan.ok()) return Rejected(plan.status().ToString(), path);
  PrintNote(fmt::format("{} has all ops of a plan: the rolled plan is unrolled", what));
  PlayedPlan played(std::move(*plan));
  played.whole_ = HashRolledPlan(rolled);
  return played;
}

}  // namespace prepost
