// SPDX-License-Identifier: Apache-2.0
#include "tools/flags/wait_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <chrono>

#include "tools/flags/command.h"
#include "tools/flags/number_check.h"

namespace prepost::tools {

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

}  // namespace prepost::tools
