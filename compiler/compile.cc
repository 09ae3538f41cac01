// SPDX-License-Identifier: Apache-2.0
//
// A schedule, played for every node, becomes a plan without credits or windows; the passes add
// those.
#include "compiler/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "compiler/collectives/collective_schedule.h"
#include "compiler/pass_manager.h"
#include "compiler/schedules/fan.h"
#include "compiler/schedules/node_order.h"
#include "compiler/schedules/schedule.h"
#include "compiler/schedules/schedule_player.h"
#include "ir/version.h"

namespace prepost {
namespace {

/// What a schedule does at one of its vertices, with the plan's nodes for peers.
class RenamedNode final : public NodeSchedule {
 public:
  RenamedNode(const NodeOrder& order, std::unique_ptr<NodeSchedule> part)
      : order_(order), part_(std::move(part)) {}

  RoundRange ActiveRounds() const override { return part_->ActiveRounds(); }
  std::optional<Transfer> Outgoing(uint32_t round) const override {
    return Renamed(part_->Outgoing(round));
  }
  std::optional<Transfer> Incoming(uint32_t round) const override {
    return Renamed(part_->Incoming(round));
  }

 private:
  std::optional<Transfer> Renamed(std::optional<Transfer> transfer) const {
    if (transfer) transfer->peer = order_.node_at[transfer->peer].value;
    return transfer;
  }

  const NodeOrder& order_;
  const std::unique_ptr<NodeSchedule> part_;
};

/// Of another collective than a multicast. Receives have no scratch buffers yet.
Result<Plan> PlayCollective(const Spec& spec, PlanHeader header) {
  const Result<CollectiveAlgorithm> algorithm =
      FindCollectiveAlgorithm(spec.collective, spec.algorithm, spec.nodes);
  if (!algorithm.ok()) return algorithm.status();
  const CollectiveExtent extent{.kind = spec.collective,
                                .members = spec.nodes,
                                .blocks_per_part = header.payload.blocks / header.payload.parts,
                                .root = spec.root};
  const std::vector<PlannedTransfer> transfers = [&] {
    if (algorithm->own != nullptr) return algorithm->own->Transfers(extent);
    const bool goes_by_first = spec.collective == CollectiveKind::kReduce &&
                               spec.combine.is_ordered() && spec.root != NodeId(0);
    if (!goes_by_first) return ByMulticast(algorithm->multicast, OrderNodes(spec), extent);
    Spec to_first = spec;
    to_first.root = NodeId(0);
    return ByWayOfFirst(algorithm->multicast, OrderNodes(to_first), extent);
  }();
  header.ports = PortsOf(transfers).ports;
  return PlanInOrder(std::move(header), transfers).plan;
}

Result<Plan> PlayInOrder(const Algorithm& algorithm, const NodeOrder& order, PlanHeader header) {
  const Extent extent{.nodes = header.nodes,
                      .blocks = header.payload.blocks,
                      .racks = order.rack_begin,
                      .fanout = algorithm.fanout};
  std::vector<uint32_t> vertex_of(extent.nodes);
  for (uint32_t vertex = 0; vertex < extent.nodes; ++vertex)
    vertex_of[order.node_at[vertex].index()] = vertex;
  return PlaySchedule(std::move(header), [&](NodeId node) {
    return std::make_unique<RenamedNode>(
        order, algorithm.schedule->ForNode(extent, vertex_of[node.index()]));
  });
}

}  // namespace

Result<VerifiedPlan> Compile(const Spec& spec, const CompileOptions& options) {
  PREPOST_RETURN_IF_ERROR(CheckSpec(spec));
  PlanHeader header{.generator = kGenerator,
                    .collective = {.kind = spec.collective, .root = spec.root},
                    .algorithm = spec.algorithm,
                    .nodes = spec.nodes,
                    .payload = *PayloadOf(spec),
                    .combine = spec.combine};
  SpecReady ready = spec.ready;
  SpecSendWindow send_window = spec.send_window;
  ready.path_blocks = send_window.path_blocks = BlocksOnPath(spec);
  // What a pass refuses has a place in the spec; the rest, schedules are to get right.
  const auto internal = [](const Status& status) {
    if (status.code() != StatusCode::kRejected || !status.where().empty()) return status;
    return Rejected("internal error: " + status.message());
  };
  const bool is_multicast = spec.collective == CollectiveKind::kMulticast;
  Result<Plan> played = is_multicast ? PlayInOrder(*FindAlgorithm(spec.algorithm), OrderNodes(spec),
                                                   std::move(header))
                                     : PlayCollective(spec, std::move(header));
  if (!played.ok()) return internal(played.status());
  Result<VerifiedPlan> plan = CompletePlan(*std::move(played), ready, send_window, options);
  if (!plan.ok()) return internal(plan.status());
  return plan;
}

}  // namespace prepost
