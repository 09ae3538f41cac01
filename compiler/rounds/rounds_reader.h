// SPDX-License-Identifier: Apache-2.0
//
// ReadRounds: a schedule that somebody wrote down round by round, as a plan. `prepost compile
// --rounds` uses it; docs/compiler.md describes the file. PlanRounds: the same of a schedule that a
// program made, for the Python package.
#ifndef PREPOST_COMPILER_ROUNDS_ROUNDS_READER_H_
#define PREPOST_COMPILER_ROUNDS_ROUNDS_READER_H_

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "ir/diagnostic.h"
#include "ir/plan.h"
#include "ir/planned_transfers.h"

namespace prepost {

/// What is not said here is what the file says; what neither says is found from the transfers.
struct RoundsOptions {
  std::optional<CollectiveKind> collective;  ///< none: a multicast
  std::optional<Combine> combine;            ///< none: there is none; of a barrier `and`
  std::optional<uint32_t> nodes;             ///< none: 1 + the largest that a transfer names
  /// None: the node that sends in the first round; of a reduce or gather, the one that sends
  /// nothing.
  std::optional<uint32_t> root;
  /// Of the message, or of a part of it, and of a block, which make as many blocks as the file has.
  /// Without the first the last block is full. Without the second blocks are as small as they can
  /// be. Without both they have the size of a spec's.
  std::optional<uint64_t> message_bytes;
  std::optional<uint64_t> block_bytes;
};

struct RoundsPlan {
  /// Not yet verified; ready barrier, no credits, no send window, no scratch buffers yet. It is
  /// valid but where blocks are combined: CompletePlan() (pass_manager.h) then says what is wrong.
  Plan plan;
  /// Where in the file stands what such a finding is about: "name:line:col: round R".
  std::function<std::string(const Plan& plan, const Diagnostic& finding)> where_of;
  std::vector<std::string>
      notes;  ///< what the user may not have meant, a line each, with its place
};

/// Reads text or JSON, which the first character tells apart; `name` is the file's in messages.
/// Ops stand in the order that schedules of ours have; the header's algorithm is "rounds", its
/// ports are as many as the rounds need. Errors, kRejected: all findings, "name:line:col: round R:
/// ...", a line each; what of `options` does not fit, at its key: "/combine", "/nodes",
/// "/root", "/block_bytes", "/message_bytes". Cost: sorting the transfers' blocks.
Result<RoundsPlan> ReadRounds(std::istream& in, const std::string& name,
                              const RoundsOptions& options = {},
                              std::vector<std::string>* warnings = nullptr);

/// The same of `transfers`, which are sorted by round. `name` stands in messages where that of a
/// file would; a transfer's place is its round.
Result<RoundsPlan> PlanRounds(std::span<const PlannedTransfer> transfers, const std::string& name,
                              const RoundsOptions& options = {});

}  // namespace prepost

#endif  // PREPOST_COMPILER_ROUNDS_ROUNDS_READER_H_
