// SPDX-License-Identifier: Apache-2.0
//
// CostModel: how long a schedule takes on a network, modelled, without its plan. Choose()
// (choice.h) compares schedules and block sizes by it. The essay is in cost_model.cc.
#ifndef PREPOST_COMPILER_CHOICE_COST_MODEL_H_
#define PREPOST_COMPILER_CHOICE_COST_MODEL_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "compiler/schedules/node_order.h"
#include "compiler/schedules/schedule.h"
#include "compiler/spec.h"
#include "ir/analysis/network.h"

namespace prepost {

/// Costs that no topology gives. Rate and latency are those of a network without one.
struct CostParameters {
  /// Bytes/s of each node's port, each way: 100 Gbit/s, that of the cluster Fractus of the RDMC
  /// paper (Behrens et al., DSN 2018, section 5).
  double rate = 100e9 / 8;
  /// Seconds one way: assumed, of the order of what RDMA takes through one switch.
  double latency = 1e-6;
  /// Seconds that a block costs whatever its size: 449 us of waiting in 255 blocks (Table 1 of
  /// "Pushing Bytes", the longer version of the RDMC paper), less the stall of roughly 100 us that
  /// its section 5.2.1 reports of the same run.
  double block_overhead = 1.37e-6;
};

/// What a round's time goes into.
enum class CostShare : uint8_t { kLatency, kNodes, kRackUp, kRackDown, kCore, kLinks };
inline constexpr size_t kCostShares = 6;
/// "latency and overhead", "nodes' ports", "racks' uplinks", ...
const char* Name(CostShare share);

struct ScheduleCost {
  uint32_t rounds = 0;
  double seconds = 0;                        ///< modelled
  std::array<double, kCostShares> shares{};  ///< of `seconds`, by CostShare
  /// Whether the model played all rounds; else it estimated the rounds that repeat.
  bool is_exact = true;

  double latency() const { return shares[static_cast<size_t>(CostShare::kLatency)]; }
  CostShare largest_share() const;
};

/// The network of the model: the topology's, or one rack of equal nodes; overhead is added to
/// latencies, so that MeasureLoad() of a plan on it gives the model's seconds. `spec` holds
/// CheckSpec() apart from sizes and algorithm. Errors: parameters that are not positive.
Result<Network> CostNetwork(const Spec& spec, const CostParameters& parameters);

/// Not thread-safe: it remembers what it has worked out.
class CostModel {
 public:
  /// For schedules that are not rolled the model plays that many steps of nodes, and estimates the
  /// rest from there.
  static constexpr uint64_t kStepsMax = uint64_t{1} << 19;

  /// `network` as CostNetwork() gives it for the spec of `order`.
  CostModel(Network network, NodeOrder order, uint64_t steps_max = kStepsMax);
  ~CostModel();
  CostModel(CostModel&&) noexcept;

  uint32_t nodes() const { return static_cast<uint32_t>(network_.nodes.size()); }
  /// Racks of which the schedules know; 1 if they know of none.
  uint32_t racks() const;
  double fastest_rate() const;    ///< of any port, bytes/s
  double lowest_latency() const;  ///< of any transfer, overhead included, seconds
  /// The arguments of `schedule`.
  Extent ExtentOf(const Algorithm& algorithm, uint32_t blocks) const;

  /// The time of the rounds if all were of full blocks and the fastest ports: O(1) of most.
  /// Rounds that carry nothing are counted, too.
  double RoughSeconds(const Algorithm& algorithm, const Payload& payload) const;
  /// Whether CostOf() would take too long: of scatter_allgather in large groups, nodes^2.
  bool IsTooLarge(const Algorithm& algorithm) const;
  /// The cost that MeasureLoad() finds for the compiled plan, to rounding, if `is_exact`. Needs
  /// CheckTransfers(). Cost: rolled schedules O(n log^2 n), whatever the blocks; others
  /// O(n rounds) up to some rounds per node. Needs !IsTooLarge().
  ScheduleCost CostOf(const Algorithm& algorithm, const Payload& payload);

 private:
  class RoundCost;
  struct Estimate;  // a schedule's cost of full blocks, linear in their number
  struct Stretch;

  ScheduleCost SweepStreams(const Algorithm& algorithm, const Payload& payload);
  ScheduleCost PlayRounds(const Algorithm& algorithm, const Payload& payload);
  ScheduleCost EstimateCost(const Algorithm& algorithm, const Payload& payload);
  uint32_t EstimateStep(const Algorithm& algorithm) const;
  uint32_t EstimatedBlocksMin(const Algorithm& algorithm) const;
  const Estimate& EstimateOf(const Algorithm& algorithm, uint32_t blocks);

  const Network network_;
  const NodeOrder order_;
  const uint64_t steps_max_;
  std::unique_ptr<RoundCost> round_;
  std::map<std::pair<const Schedule*, uint32_t>, Estimate> estimates_;
};

}  // namespace prepost

#endif  // PREPOST_COMPILER_CHOICE_COST_MODEL_H_
