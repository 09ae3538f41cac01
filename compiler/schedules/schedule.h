// SPDX-License-Identifier: Apache-2.0
//
// Schedule: an algorithm as a pure function of (nodes, blocks, node, round). One file each, listed
// in schedule.cc. A schedule knows nothing of credits, windows, bytes or queues; schedule_player.h
// plays it for every node and passes do the rest. A node's part is found from its number alone,
// without any other node's: Schedule::ForNode() works out what does not change from round to round.
//
// Inside a schedule the root is node 0; which node of the plan plays which of the schedule's is
// settled elsewhere (node_order.h). Per round a node makes at most one transfer out and one in (the
// one-port model), and what it sends it has received in an earlier round.
#ifndef PREPOST_COMPILER_SCHEDULES_SCHEDULE_H_
#define PREPOST_COMPILER_SCHEDULES_SCHEDULE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/base/status.h"

namespace prepost {

/// The other end of a transfer, and the block that it carries.
struct Transfer {
  uint32_t peer = 0;
  uint32_t block = 0;

  friend bool operator==(const Transfer&, const Transfer&) = default;
};

/// Rounds [begin, end).
struct RoundRange {
  uint32_t begin = 0;
  uint32_t end = 0;
};

/// Size of a multicast: nodes >= 1, blocks >= 1, and blocks * (nodes - 1) < 2^32, so that every
/// round fits 32 bits.
struct Extent {
  uint32_t nodes = 1;
  uint32_t blocks = 1;
  /// Where each rack's nodes begin, rising from 0 (the rack of the root, node 0); a rack's nodes
  /// are neighbours. Empty: all in one rack. Not owned; outlives what is made for the extent.
  std::span<const uint32_t> racks = {};
  /// Nodes that a node feeds, for schedules that ask; 0: their default.
  uint32_t fanout = 0;
};

/// What one node does in each round.
class NodeSchedule {
 public:
  virtual ~NodeSchedule() = default;
  /// Rounds outside of which the node does nothing; the others are asked only inside. May be
  /// generous.
  virtual RoundRange ActiveRounds() const = 0;
  virtual std::optional<Transfer> Outgoing(uint32_t round) const = 0;
  virtual std::optional<Transfer> Incoming(uint32_t round) const = 0;
};

class RolledSchedule;

/// Immutable; may be used by any number of threads.
class Schedule {
 public:
  virtual ~Schedule() = default;
  virtual std::string_view name() const = 0;
  /// One line for people, with the round count.
  virtual std::string_view summary() const = 0;
  /// Whether it makes sense of Extent::racks, so that a rack's nodes have to be neighbours.
  virtual bool NeedsWholeRacks() const { return false; }
  /// Rounds from the first transfer to the last; 0 for one node.
  virtual uint32_t Rounds(Extent extent) const = 0;
  /// The part of `node` < extent.nodes.
  virtual std::unique_ptr<NodeSchedule> ForNode(Extent extent, uint32_t node) const = 0;
  /// The default of Extent::fanout; 0: it takes none.
  virtual uint32_t default_fanout() const { return 0; }
  /// The form for every number of blocks (rolled_schedule.h), or null.
  virtual const RolledSchedule* rolled() const { return nullptr; }
};

/// All schedules, in the order in which help lists them. Immutable, for the life of the program.
std::span<const Schedule* const> Schedules();
std::vector<std::string> ScheduleNames();

/// A schedule and its arguments.
struct Algorithm {
  const Schedule* schedule = nullptr;
  uint32_t fanout = 0;  ///< as in Extent
};
/// Finds a name such as "chain", or "kary_chain=4" for schedules with a fan-out. Errors: kRejected,
/// with the near name.
Result<Algorithm> FindAlgorithm(std::string_view text);

// Defined in the file of the same name.
const Schedule& SequentialSchedule();
const Schedule& ChainSchedule();
const Schedule& BinomialTreeSchedule();
const Schedule& KaryChainSchedule();
const Schedule& KaryTreeSchedule();
const Schedule& BinomialPipelineSchedule();
const Schedule& CirculantSchedule();
const Schedule& TwoTreeSchedule();
const Schedule& ScatterAllgatherSchedule();
const Schedule& RackChainSchedule();
const Schedule& RackHybridSchedule();
const Schedule& RackCirculantSchedule();

}  // namespace prepost

#endif  // PREPOST_COMPILER_SCHEDULES_SCHEDULE_H_
