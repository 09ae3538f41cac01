// SPDX-License-Identifier: Apache-2.0
//
// WaitFlags: --wait and --idle-ms, for every subcommand whose hosts wait for completions; and words
// of flags that stand for an enum's values.
#ifndef PREPOST_TOOLS_FLAGS_WAIT_FLAGS_H_
#define PREPOST_TOOLS_FLAGS_WAIT_FLAGS_H_

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/status.h"
#include "runtime/wait_policy.h"
#include "tools/flags/cli_forward.h"

namespace prepost::tools {

template <size_t kCount>
std::vector<std::string> Words(const std::array<std::string_view, kCount>& names) {
  return {names.begin(), names.end()};
}

/// The value of an enum whose names stand in `names` in order; `name` is one of them, or "".
template <typename Enum, size_t kCount>
Enum ValueOf(const std::array<std::string_view, kCount>& names, const std::string& name,
             Enum otherwise) {
  if (name.empty()) return otherwise;
  const auto found = std::ranges::find(names, name);
  PREPOST_CHECK(found != names.end());
  return static_cast<Enum>(found - names.begin());
}

/// How modelled hosts wait where nothing is said, in every command: RDMC's way.
inline constexpr WaitMode kModelledWait = WaitMode::kHybrid;

class WaitFlags {
 public:
  /// Must outlive the parsing. `otherwise`: what --help calls the default.
  void AddTo(CLI::App& command, const std::string& description,
             const std::string& otherwise = "interrupt");

  /// True when --wait was given.
  bool any() const { return !wait_.empty(); }
  /// True when --idle-ms was given.
  bool has_idle() const { return idle_ms_.has_value(); }
  /// Errors: kUsage.
  Status Check() const;
  /// After Check(). `otherwise`: where --wait was not given.
  WaitPolicy policy(WaitMode otherwise = WaitMode::kInterrupt) const;

 private:
  std::string wait_;  // empty: not given
  std::optional<double> idle_ms_;
};

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_FLAGS_WAIT_FLAGS_H_
