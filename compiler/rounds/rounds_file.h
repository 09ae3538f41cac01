// SPDX-License-Identifier: Apache-2.0
//
// RoundsFile: the transfers of a schedule that somebody wrote down round by round, as they stand in
// the file, right or wrong; or that a program made. Internal to compiler/rounds/.
//
// Text: a line is a round, its transfers are FROM>TO:BLOCK between blanks, "-" is a round without
// any, "#" begins a comment, and empty lines count for nothing. With + for the colon the receiver
// combines what comes with what it has, instead of taking it. FROM>TO:FIRST-LAST are several blocks
// in one message. A first line such as "allreduce sum:float32" says what the rounds are of, without
// it a multicast. JSON: rounds.schema.json. A file whose first character but for blanks is "{" is
// JSON.
#ifndef PREPOST_COMPILER_ROUNDS_ROUNDS_FILE_H_
#define PREPOST_COMPILER_ROUNDS_ROUNDS_FILE_H_

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "ir/collective.h"
#include "ir/combine.h"
#include "ir/planned_transfers.h"

namespace prepost {

struct RoundsFile {
  struct Position {
    uint32_t line = 0;
    uint32_t column = 0;  ///< of the transfer's first character, from 1
  };

  std::string name;  ///< in messages
  std::optional<CollectiveKind> collective;
  std::optional<Combine> combine;
  std::optional<uint32_t> nodes;  ///< as the file says them, which a text never does
  std::optional<uint32_t> root;
  std::optional<uint32_t> blocks;
  std::vector<PlannedTransfer> transfers;  ///< in the order of the file, and so of rounds
  std::vector<Position> positions;         ///< of each transfer; empty: they come from no file

  /// kRejected, at a transfer: "round R: `message`".
  Status At(size_t transfer, const std::string& message) const;
  /// "name:line:col: round R", for messages of others; "name: round R" without a file.
  std::string PlaceOf(size_t transfer) const;
  /// "round R (line L)", or without the line where there is none.
  std::string RoundOf(size_t transfer) const;
};

/// "0>1:3", "0>1+0-3": as it stands in a file.
std::string ToString(const PlannedTransfer& transfer);

/// Reads either form. Nodes are below kNodesMax, blocks below kBlocksMax, transfers at most
/// kTransfersMax, rounds fewer than 2^32; ranges have at most kRangeBlocksMax blocks in all, beside
/// the first of each. Errors: kRejected, with all that is not of the form, a line each:
/// "name:line:col: round R: ...". Memory: 32 bytes per transfer.
Result<RoundsFile> ReadRoundsFile(std::istream& in, const std::string& name,
                                  std::vector<std::string>* warnings);

/// The same of transfers that a program made, sorted by round. Errors: the limits', "name: round R:
/// ...".
Result<RoundsFile> RoundsOfProgram(std::span<const PlannedTransfer> transfers,
                                   const std::string& name);

}  // namespace prepost

#endif  // PREPOST_COMPILER_ROUNDS_ROUNDS_FILE_H_
