// SPDX-License-Identifier: Apache-2.0
//
// Selection: which part of a plan a picture shows, and the lines of text above every picture that
// say what it is of.
#ifndef PREPOST_VIZ_SELECTION_H_
#define PREPOST_VIZ_SELECTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/plan.h"

namespace prepost::viz {

/// Rounds first, first + 1, ..., last.
struct Rounds {
  uint32_t first = 0;
  uint32_t last = 0;

  bool Contains(uint32_t round) const { return first <= round && round <= last; }
};

/// Empty means all.
struct Selection {
  std::vector<NodeId> nodes;
  std::vector<uint32_t> blocks;
  std::optional<Rounds> rounds;

  bool HasNode(NodeId node) const;
  bool HasBlock(uint32_t block) const;
  /// Whether one of the blocks of `op`, which is no credit, is selected.
  bool HasSome(const Op& op) const;
  bool HasRound(uint32_t round) const { return !rounds || rounds->Contains(round); }
  bool all() const { return nodes.empty() && blocks.empty() && !rounds; }
};

/// "a:b", both included. Errors: kUsage.
Result<Rounds> ParseRounds(const std::string& text);

/// Sorts `selection` and checks that the plan has all that it names. Errors: kRejected, with what
/// the plan has.
Result<Selection> CheckSelection(const Plan& plan, Selection selection);

/// A name for a picture: cut when long. It may hold any bytes, before and after.
std::string Shortened(const std::string& name);
/// "binomial_pipeline: 8 nodes, 4 blocks, 6 rounds". The name is
/// Shortened().
std::string Headline(const PlanHeader& header);
/// "message of 4 MiB in blocks of 1 MiB, root 0, ready window=1, send window 1".
std::string Subline(const PlanHeader& header);
/// "only node 3", "no trace of nodes 1, 2, 3, ... (12 in all)" of `noun` "only node" and so on.
std::string NamesOf(std::string_view noun, const std::vector<uint32_t>& values);
/// "only nodes 1, 2; only block 3; only rounds 2 to 5", or "" for all.
std::string Describe(const Selection& selection);

}  // namespace prepost::viz

#endif  // PREPOST_VIZ_SELECTION_H_
