// SPDX-License-Identifier: Apache-2.0
#include "tools/spec_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>

#include "prepost/compiler/schedule.h"
#include "prepost/compiler/spec_json.h"
#include "tools/command.h"
#include "tools/number_check.h"

namespace prepost::tools {
namespace {

/// The flag for a key of the spec: "--block-bytes" for "/block_bytes".
std::string FlagOf(const std::string& pointer) {
  std::string flag = "--" + pointer.substr(1);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

/// A flag's value error, with the flag's name.
Status Usage(const char* flag, const Status& status) {
  return {StatusCode::kUsage, fmt::format("{}: {}", flag, status.message())};
}

}  // namespace

void SpecFlags::AddTo(CLI::App& command) {
  const std::string group = "The multicast";
  command.add_option("--nodes", nodes_, "Nodes, the root included")
      ->type_name("N")
      ->check(WholeNumber(0, UINT32_MAX))
      ->group(group);
  command.add_option("--root", root_, "The node that has the message [0]")
      ->type_name("R")
      ->check(WholeNumber(0, UINT32_MAX))
      ->group(group);
  command.add_option("--block-bytes", block_bytes_, "Size of a block, such as 64KiB [1MiB]")
      ->type_name("B")
      ->group(group);
  command
      .add_option("--algorithm", algorithm_,
                  fmt::format("One of {} [binomial_pipeline]", fmt::join(ScheduleNames(), ", ")))
      ->type_name("A")
      ->group(group);
  command
      .add_option("--ready", ready_,
                  "How senders know that receives are posted: auto, barrier, channel, window=W, "
                  "retry [auto]")
      ->type_name("MODE")
      ->group(group);
  command
      .add_option("--send-window", send_window_,
                  "Block sends of a node in flight: auto, W or none [auto]")
      ->type_name("W")
      ->group(group);
}

bool SpecFlags::any() const {
  return nodes_ || root_ || block_bytes_ || algorithm_ || ready_ || send_window_;
}

Result<Spec> SpecFlags::ToSpec(const std::string& spec_path,
                               std::optional<uint64_t> message_bytes) const {
  Spec spec;
  if (!spec_path.empty()) {
    PREPOST_RETURN_IF_ERROR(
        WithInput(spec_path, [&](std::istream& in, const std::string& name) -> Status {
          std::vector<std::string> warnings;
          Result<Spec> read = ReadSpec(in, name, spec, &warnings);
          for (const std::string& warning : warnings)
            std::cerr << "prepost: warning: " << name << ": " << warning << "\n";
          if (!read.ok()) return read.status();
          spec = *read;
          return {};
        }));
  }
  if (nodes_) spec.nodes = *nodes_;
  if (root_) spec.root = NodeId(*root_);
  if (message_bytes) spec.message_bytes = *message_bytes;
  if (algorithm_) spec.algorithm = *algorithm_;
  if (block_bytes_) {
    const Result<uint64_t> bytes = ParseSize(*block_bytes_);
    if (!bytes.ok()) return Usage("--block-bytes", bytes.status());
    spec.block_bytes = *bytes;
  }
  if (ready_) {
    const Result<SpecReady> ready = ParseReady(*ready_);
    if (!ready.ok()) return Usage("--ready", ready.status());
    spec.ready = *ready;
  }
  if (send_window_) {
    const Result<SpecSendWindow> send_window = ParseSendWindow(*send_window_);
    if (!send_window.ok()) return Usage("--send-window", send_window.status());
    spec.send_window = *send_window;
  }
  if (const Status status = CheckSpec(spec); !status.ok()) {
    const std::string where =
        spec_path.empty() ? FlagOf(status.where()) : spec_path + ": " + status.where();
    return Rejected(status.message(), where);
  }
  return spec;
}

}  // namespace prepost::tools
