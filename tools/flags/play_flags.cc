// SPDX-License-Identifier: Apache-2.0
#include "tools/flags/play_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "ir/count.h"
#include "tools/flags/number_check.h"

namespace prepost::tools {
namespace {

constexpr double kTimeoutSeconds = 30;

}  // namespace

void PlayFlags::AddTo(CLI::App& command) {
  wait.AddTo(command, "How CPUs wait for completions");
  command
      .add_option("--timeout", timeout_s, "Give up when nothing moves for this many seconds [30]")
      ->type_name("SECONDS")
      ->check(Seconds());
  command.add_flag("--json", json, "Print the report as JSON");
}

Status PlayFlags::Check() const { return wait.Check(); }

std::chrono::milliseconds PlayFlags::no_progress_max() const {
  const std::chrono::duration<double> timeout(timeout_s.value_or(kTimeoutSeconds));
  return std::chrono::ceil<std::chrono::milliseconds>(timeout);
}

Status CheckInputSize(const PlanHeader& header, const MappedInput& input) {
  const uint64_t expected = header.message.bytes;
  if (input.size_bytes() == expected) return {};
  return Rejected(fmt::format("input {} has {}, expected {} as in the plan", input.path(),
                              Count(input.size_bytes(), "byte"), expected));
}

std::function<void(uint64_t)> DeliveryProgress(const PlanHeader& header, bool is_shown) {
  const double total = static_cast<double>(header.message.bytes) * (header.nodes - 1);
  if (!is_shown || total == 0) return {};
  return [total](uint64_t received) {
    std::cerr << fmt::format("\r{:3.0f}% delivered ", 100 * static_cast<double>(received) / total);
  };
}

void ClearProgress(bool is_shown) {
  if (is_shown) std::cerr << "\r\033[K";
}

}  // namespace prepost::tools
