// SPDX-License-Identifier: Apache-2.0
//
// ChooseCollective: which schedule and which blocks a collective other than a multicast takes, by a
// model of hosts and connections that buffer, as StreamCost has it (stream_cost.h): what must
// follow one another costs a latency each, ports carry so many bytes, and a host adds so many.
#ifndef PREPOST_COMPILER_CHOICE_COLLECTIVE_CHOICE_H_
#define PREPOST_COMPILER_CHOICE_COLLECTIVE_CHOICE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/collective.h"
#include "ir/combine.h"

namespace prepost {

/// Assumed, as StreamParameters' rate is.
struct CollectiveParameters {
  double rate = 10e9 / 8;         ///< bytes/s of a node's port, each way
  double hop = 30e-6;             ///< seconds of a message that waits for another
  double block_overhead = 10e-6;  ///< seconds of hosts for a message that does not
  double combine_rate = 4e9;      ///< bytes of results/s
  /// How much longer bytes take that go to another member each time, over connections that were
  /// idle, instead of always to the same one. Fitted to bench/network/calls.py, 8 members at 400
  /// Mbit/s.
  double turn = 1.3;
};

/// What is asked for.
struct CollectiveSize {
  CollectiveKind kind = CollectiveKind::kAllreduce;
  uint32_t members = 1;
  uint64_t bytes = 0;             ///< of a part, of the largest
  Combine combine;                ///< none where nothing is combined
  bool is_deterministic = false;  ///< sums do not depend on the size
  bool is_uneven = false;         ///< parts have sizes of their own
  std::string algorithm = {};     ///< this one; empty: the best
  uint64_t block_bytes = 0;       ///< blocks of this size; 0: those that suit each schedule best
};

struct CollectiveChoice {
  std::string algorithm;
  uint64_t block_bytes = 1;  ///< whole elements
  double seconds = 0;        ///< modelled
  /// Of messages that nothing orders, as an alltoall's: so many at a time, none: all at once.
  /// Several large ones to one member overflow the queue at its port, and TCP waits 200 ms then.
  std::optional<uint32_t> send_window = {};
};

/// The schedule of `kind` in which an element is the same expression whatever the size; of
/// collectives that combine nothing null.
const char* DeterministicAlgorithm(CollectiveKind kind);

/// The best by the model, of equals the first of the table in collective_choice.cc. Decided by its
/// arguments alone, so that all members choose the same. If deterministic,
/// DeterministicAlgorithm(); of a reduce and an allreduce whose operands must be in the order of
/// ranks, `chain`. Of an `algorithm` that the model does not know, nothing: it is empty.
CollectiveChoice ChooseCollective(const CollectiveSize& size,
                                  const CollectiveParameters& parameters = {});

/// All that it chooses among, each with the blocks that suit it best or those that are given: the
/// choice first, then by time.
/// Empty where it chooses nothing.
std::vector<CollectiveChoice> CollectiveCandidates(const CollectiveSize& size,
                                                   const CollectiveParameters& parameters = {});

}  // namespace prepost

#endif  // PREPOST_COMPILER_CHOICE_COLLECTIVE_CHOICE_H_
