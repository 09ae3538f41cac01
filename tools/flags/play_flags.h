// SPDX-License-Identifier: Apache-2.0
//
// PlayFlags: what `run` and `node` both let a user choose about playing a plan on CPUs.
#ifndef PREPOST_TOOLS_FLAGS_PLAY_FLAGS_H_
#define PREPOST_TOOLS_FLAGS_PLAY_FLAGS_H_

#include <chrono>
#include <functional>
#include <optional>

#include "ir/plan.h"
#include "ir/status.h"
#include "runtime/files/message_file.h"
#include "tools/flags/cli_forward.h"
#include "tools/flags/wait_flags.h"

namespace prepost::tools {

struct PlayFlags {
  WaitFlags wait;
  std::optional<double> timeout_s;
  bool json = false;

  void AddTo(CLI::App& command);
  /// Errors: kUsage.
  Status Check() const;
  /// After Check().
  std::chrono::milliseconds no_progress_max() const;
};

/// An error (kRejected) unless `input` has the size of the plan's message.
Status CheckInputSize(const PlanHeader& header, const MappedInput& input);

/// Shows, if `is_shown`, how much of all copies has been delivered, over itself on stderr. Empty if
/// there is nothing to show; the line is cleared by ClearProgress().
std::function<void(uint64_t bytes_received)> DeliveryProgress(const PlanHeader& header,
                                                              bool is_shown);
void ClearProgress(bool is_shown);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_FLAGS_PLAY_FLAGS_H_
