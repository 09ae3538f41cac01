// SPDX-License-Identifier: Apache-2.0
//
// PlayFlags: what `run` and `node` both let a user choose about playing a plan on CPUs.
#ifndef PREPOST_TOOLS_PLAY_FLAGS_H_
#define PREPOST_TOOLS_PLAY_FLAGS_H_

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prepost/ir/plan.h"
#include "prepost/ir/status.h"
#include "prepost/runtime/message_file.h"
#include "prepost/runtime/wait_policy.h"

namespace prepost::tools {

/// Names of an enum as CheckWord() takes them.
template <size_t kCount>
std::vector<std::string> Words(const std::array<std::string_view, kCount>& names) {
  return {names.begin(), names.end()};
}

/// The value of an enum whose names stand in `names` in order; `otherwise` for "". The name must
/// have been checked.
template <typename Enum, size_t kCount>
Enum ValueOf(const std::array<std::string_view, kCount>& names, const std::string& name,
             Enum otherwise) {
  if (name.empty()) return otherwise;
  const auto found = std::ranges::find(names, name);
  PREPOST_CHECK(found != names.end());
  return static_cast<Enum>(found - names.begin());
}

struct PlayFlags {
  std::string wait;  // empty: not given
  std::optional<double> idle_ms;
  std::optional<double> timeout_s;
  bool json = false;

  void AddTo(CLI::App& command);
  /// Errors: kUsage.
  Status Check() const;
  /// After Check().
  WaitPolicy wait_policy() const;
  std::chrono::milliseconds no_progress_max() const;
};

/// An error (kRejected) unless `input` has the size of the plan's message.
Status CheckInputSize(const Plan& plan, const MappedInput& input);

/// Shows, if `is_shown`, how much of all copies has been delivered, over itself on stderr. Empty if
/// there is nothing to show; the line is cleared by ClearProgress().
std::function<void(uint64_t bytes_received)> DeliveryProgress(const Plan& plan, bool is_shown);
void ClearProgress(bool is_shown);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_PLAY_FLAGS_H_
