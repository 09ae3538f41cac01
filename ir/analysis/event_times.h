// SPDX-License-Identifier: Apache-2.0
//
// EventTimes: when each event of a plan can happen at the earliest and must at the latest, in a
// model in which nothing but the plan's own order costs: longest paths in the plan graph.
#ifndef PREPOST_IR_ANALYSIS_EVENT_TIMES_H_
#define PREPOST_IR_ANALYSIS_EVENT_TIMES_H_

#include <cstdint>
#include <vector>

#include "ir/plan_tables.h"

namespace prepost {

/// What a message takes from its start to its delivery, and until the next one on its channel may
/// start. Nothing else takes time.
struct EventCosts {
  uint64_t block = 1;
  uint64_t credit = 0;
};

/// Linear in the graph; immutable. Keeps a reference to the tables.
class EventTimes {
 public:
  explicit EventTimes(const PlanTables& tables, EventCosts costs = {});

  uint64_t Earliest(PlanGraph::Vertex v) const { return earliest_[v]; }
  /// The latest time that does not make the whole later.
  uint64_t Latest(PlanGraph::Vertex v) const { return latest_[v]; }
  /// When the last event happens.
  uint64_t length() const { return length_; }
  /// From `v` to what waits for it.
  uint64_t CostOf(PlanGraph::Vertex v) const;

  uint64_t StartOf(uint32_t message) const {
    return earliest_[tables_.graph().At(message, PlanGraph::Event::kStart)];
  }
  uint64_t DeliveryOf(uint32_t message) const {
    return earliest_[tables_.graph().At(message, PlanGraph::Event::kDeliver)];
  }
  /// By how much the message may start later; 0: it is critical.
  uint64_t SlackOf(uint32_t message) const {
    const PlanGraph::Vertex start = tables_.graph().At(message, PlanGraph::Event::kStart);
    return latest_[start] - earliest_[start];
  }

 private:
  const PlanTables& tables_;
  const EventCosts costs_;
  std::vector<uint64_t> earliest_;
  std::vector<uint64_t> latest_;
  uint64_t length_ = 0;
};

/// The longest chain of messages that wait for each other: its blocks, and the credits between
/// them (the most of any chain with that many blocks).
struct Depth {
  uint64_t blocks = 0;
  uint64_t credits = 0;

  friend bool operator==(const Depth&, const Depth&) = default;
};
Depth DepthOf(const PlanTables& tables);

}  // namespace prepost

#endif  // PREPOST_IR_ANALYSIS_EVENT_TIMES_H_
