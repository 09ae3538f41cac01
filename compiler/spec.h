// SPDX-License-Identifier: Apache-2.0
//
// Spec: what a user asks for. It comes from a JSON file (spec_json.h), from flags, or from both,
// flags winning.
#ifndef PREPOST_COMPILER_SPEC_H_
#define PREPOST_COMPILER_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/choice/collective_choice.h"
#include "compiler/topology/topology.h"
#include "ir/plan.h"

namespace prepost {

/// `auto` chooses a value; see fan.h for the rule.
struct SpecReady {
  bool automatic = true;
  Ready ready;               ///< when not automatic
  uint32_t path_blocks = 1;  ///< what a window of auto is at least: BlocksOnPath()

  friend bool operator==(const SpecReady&, const SpecReady&) = default;
};
struct SpecSendWindow {
  bool automatic = true;
  std::optional<uint32_t> window;  ///< when not automatic; none: unlimited
  uint32_t path_blocks = 1;        ///< as in SpecReady

  friend bool operator==(const SpecSendWindow&, const SpecSendWindow&) = default;
};

/// As Spec::algorithm: Choose() finds one (choice.h).
inline constexpr const char* kAutoAlgorithm = "auto";

struct Spec {
  CollectiveKind collective = CollectiveKind::kMulticast;
  Combine combine;     ///< of collectives that combine; sum of float32 unless given
  uint32_t nodes = 0;  ///< >= 1
  NodeId root;
  /// Of a part (PartsOf()). None: not said, which CheckSpec() rejects; of a barrier 0.
  std::optional<uint64_t> message_bytes;
  /// Of each part, in the order of their numbers, if not all have `message_bytes`; that is then the
  /// largest.
  std::vector<uint64_t> part_bytes;
  uint64_t block_bytes = 1u << 20;
  bool choose_block_bytes = false;  ///< `block_bytes` is for Choose() to find
  std::string algorithm = "binomial_pipeline";
  SpecReady ready;
  SpecSendWindow send_window;
  std::optional<Network> topology;  ///< node i is its host i
  /// The file that `topology` is still to be read from, relative to the spec's; empty: none.
  std::string topology_path;
  std::vector<NodeId> order;  ///< the node at each vertex of the schedule; empty: see OrderNodes()
  /// Of collectives that combine: DeterministicAlgorithm() and no other, so that sums do not depend
  /// on the size.
  bool is_deterministic = false;

  friend bool operator==(const Spec&, const Spec&) = default;
};

/// Checks the values against each other and the limits of plan.h; `where` in the Status is a JSON
/// pointer. What is left to Choose() is rejected.
Status CheckSpec(const Spec& spec);

/// What it moves. Needs `message_bytes`, and sizes of parts that CheckSpec() accepts. Errors: as
/// MakePayload().
Result<Payload> PayloadOf(const Spec& spec);
/// Whether `part_bytes` has one for each part of the collective among `nodes`; at /part_bytes.
Status CheckPartCount(const Spec& spec);

/// A flat plan has at most this many transfers, blocks * (nodes - 1): two ops each, in memory.
inline constexpr uint64_t kTransfersMax = uint64_t{1} << 27;

/// At most kTransfersMax. Needs nodes >= 1.
Status CheckTransfers(uint32_t nodes, uint32_t blocks);

/// With what follows from the rest: of sizes of parts how many nodes there are and the largest, and
/// all that a barrier has.
Spec WithImplied(Spec spec);
/// What ChooseCollective() is asked for `spec`, as WithImplied() gives it: of the schedule and the
/// size of blocks that are said, if they are.
CollectiveSize SizeToChooseFor(const Spec& spec);
/// With the schedule of `choice`, and its blocks and send window where the spec leaves them open.
Spec WithChoice(Spec spec, const CollectiveChoice& choice);
/// What a spec of another collective than a multicast leaves to `auto`: ChooseCollective(), of the
/// schedule that is said if there is one, whose send window stays what it is.
Spec WithDefaults(Spec spec, const CollectiveParameters& parameters = {});

/// "allreduce"; "sum:float32". The Status suggests the near word.
Result<CollectiveKind> ParseCollective(const std::string& text);
Result<Combine> ParseCombine(const std::string& text);
/// "auto", "barrier", "channel", "window=W", "retry". The Status suggests the near word.
Result<SpecReady> ParseReady(const std::string& text);
/// "auto", "none", or a number >= 1.
Result<SpecSendWindow> ParseSendWindow(const std::string& text);
std::string ToString(const SpecReady& ready);
std::string ToString(const SpecSendWindow& send_window);

}  // namespace prepost

#endif  // PREPOST_COMPILER_SPEC_H_
