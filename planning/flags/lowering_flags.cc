// SPDX-License-Identifier: Apache-2.0
#include "planning/flags/lowering_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "backends/nic/program/fit.h"
#include "compiler/compile.h"
#include "planning/files/named_file.h"
#include "planning/files/shipped_files.h"
#include "planning/flags/play_flags.h"
#include "planning/flags/values.h"
#include "planning/text/messages.h"

namespace prepost {

void AddDeviceProfileFlag(CLI::App& command, std::string* path, const std::string& otherwise) {
  command
      .add_option("--device-profile", *path,
                  fmt::format("What the NIC holds: a file, or {} [{}]", NamesOf(kShippedDevices),
                              otherwise))
      ->type_name("P");
}

void LoweringFlags::AddTo(CLI::App& command) {
  command
      .add_option("--mode", mode_,
                  fmt::format("How the NIC's queues are driven: {} [inline]",
                              fmt::join(nic::kLoweringModeNames, ", ")))
      ->type_name("MODE");
  command
      .add_option("--masters", masters_,
                  fmt::format("With --mode managed: one master queue per {} [node]",
                              fmt::join(nic::kMastersNames, ", ")))
      ->type_name("PER");
  AddDeviceProfileFlag(command, &profile_path_, "common mlx5 limits");
}

const char* LoweringFlags::given() const {
  if (!mode_.empty()) return "--mode";
  if (!masters_.empty()) return "--masters";
  return profile_path_.empty() ? nullptr : "--device-profile";
}

Status LoweringFlags::Check() const {
  if (!mode_.empty())
    PREPOST_RETURN_IF_ERROR(CheckWord("--mode", mode_, Words(nic::kLoweringModeNames)));
  if (masters_.empty()) return {};
  PREPOST_RETURN_IF_ERROR(CheckWord("--masters", masters_, Words(nic::kMastersNames)));
  if (mode_ == Name(nic::LoweringMode::kManaged)) return {};
  return {StatusCode::kUsage, "--masters is for --mode managed"};
}

Result<nic::LowerOptions> LoweringFlags::ToOptions() const {
  nic::LowerOptions options;
  options.mode = ValueOf(nic::kLoweringModeNames, mode_, options.mode);
  options.masters = ValueOf(nic::kMastersNames, masters_, options.masters);
  if (profile_path_.empty()) return options;
  Result<nic::DeviceProfile> profile = LoadDeviceProfile(profile_path_);
  if (!profile.ok()) return profile.status();
  options.profile = *std::move(profile);
  return options;
}

Result<nic::DeviceProfile> LoadDeviceProfile(const std::string& path) {
  const Result<std::optional<std::string_view>> shipped =
      ShippedText(kShippedDevices, path, "--device-profile", "shipped profile of a device");
  if (!shipped.ok()) return shipped.status();
  if (!*shipped) return ReadWith(nic::ReadDeviceProfile, path);
  std::istringstream in{std::string(**shipped)};
  return nic::ReadDeviceProfile(in, path);
}

Result<VerifiedPlan> CompileForDevice(const Spec& spec, const nic::LowerOptions* lower,
                                      bool is_quiet) {
  Result<VerifiedPlan> plan = Compile(spec);
  if (!plan.ok() || lower == nullptr || !spec.ready.automatic) return plan;
  const PlanHeader& header = plan->header();
  if (header.ready.mode != ReadyMode::kBarrier && header.ready.mode != ReadyMode::kChannel) {
    return plan;
  }
  const uint32_t at_once = lower->profile.rq_at_once();
  if (header.payload.blocks <= at_once || nic::CheckFit(*plan, *lower).ok()) return plan;
  Spec windowed = spec;
  windowed.ready = {.automatic = false, .ready = {.mode = ReadyMode::kWindow, .window = 1}};
  Result<VerifiedPlan> other = Compile(windowed);
  if (!other.ok() || !nic::CheckFit(*other, *lower).ok()) return plan;
  if (is_quiet) return other;
  PrintNote(
      fmt::format("compiled with --ready window=1: with {}, as auto has it here, more than the "
                  "{} "
                  "receives that device profile {} holds must be posted at once",
                  ToString(header.ready), at_once, lower->profile.name));
  return other;
}

}  // namespace prepost
