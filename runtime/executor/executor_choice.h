// SPDX-License-Identifier: Apache-2.0
//
// ChooseExecutor: whether a device carries a plan out by itself or CPUs play it. The one place
// where "auto" is decided, for runs, nodes and groups alike.
#ifndef PREPOST_RUNTIME_EXECUTOR_EXECUTOR_CHOICE_H_
#define PREPOST_RUNTIME_EXECUTOR_EXECUTOR_CHOICE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "ir/base/status.h"
#include "ir/plan.h"

namespace prepost {

enum class Executor : uint8_t { kAuto, kCpu, kOffload };
inline constexpr std::array<std::string_view, 3> kExecutorNames = {"auto", "cpu", "offload"};

struct ExecutorWish {
  Executor executor = Executor::kAuto;
  std::string device;       ///< for reasons
  std::string cpu_because;  ///< why auto takes CPUs, whatever fits the device; "": it need not
};

template <typename Program>
struct ExecutorChoice {
  std::optional<Program> program;  ///< none: CPUs play
  std::string why;                 ///< of auto; else ""

  const char* name() const { return program ? "offload" : "cpu"; }
  /// "offload: the plan fits device mlx5_0"; "" unless it was auto's choice.
  std::string note() const { return why.empty() ? "" : std::string(name()) + ": " + why; }
};

/// Why no device carries out `plan` by itself, which it does of multicasts; none: it may.
std::optional<std::string> WhyNotPreposted(const Plan& plan);

/// `lower` makes the program, a Result<Program>. Errors: those of `lower`, and of WhyNotPreposted()
/// (kRejected), where offload is asked for.
template <typename Program, typename Lower>
Result<ExecutorChoice<Program>> ChooseExecutor(const ExecutorWish& wish, const Plan& plan,
                                               Lower lower) {
  ExecutorChoice<Program> choice;
  if (wish.executor == Executor::kCpu) return choice;
  const bool is_auto = wish.executor == Executor::kAuto;
  if (is_auto && !wish.cpu_because.empty()) {
    choice.why = wish.cpu_because;
    return choice;
  }
  Status refused;
  if (const std::optional<std::string> why = WhyNotPreposted(plan)) {
    refused = Rejected(*why);
  } else if (Result<Program> program = lower(); program.ok()) {
    choice.program = *std::move(program);
  } else {
    refused = program.status();
  }
  if (!is_auto) {
    if (!refused.ok()) return refused;
    return choice;
  }
  choice.why = refused.ok() ? "the plan fits device " + wish.device
                            : "not preposted to device " + wish.device + ": " + refused.message();
  return choice;
}

}  // namespace prepost

#endif  // PREPOST_RUNTIME_EXECUTOR_EXECUTOR_CHOICE_H_
