// SPDX-License-Identifier: Apache-2.0
//
// A schedule's segments are about its vertices; a plan's are about its nodes. Nothing else is done
// to them: the ready mode and the send window stand in the header, since what they add to a flat
// plan follows from each node's own rounds.
//
// auto, as the passes have it, looks at the plan: credits are for plans in which some node receives
// from several. With one block no node does, with more the schedule knows (FanOf()).
#include "prepost/compiler/roll.h"

#include <fmt/format.h>

#include <algorithm>

#include "prepost/compiler/node_order.h"
#include "prepost/compiler/pass_manager.h"
#include "prepost/compiler/rolled_compose.h"
#include "prepost/compiler/rolled_schedule.h"
#include "prepost/compiler/schedule_player.h"
#include "prepost/version.h"

namespace prepost {
namespace {

/// Rounds of all nodes together that Unroll() goes through at most, so that a file cannot ask for
/// unbounded work.
constexpr uint64_t kActiveRoundsMax = uint64_t{1} << 33;

/// What auto means for `schedule`, and from how many blocks on.
void ChooseReady(const Spec& spec, const RolledSchedule& schedule, RolledExtent extent,
                 RolledPlan& plan) {
  const Fan fan = extent.nodes > 1 ? schedule.FanOf(extent) : Fan();
  plan.ready = ReadyFor(spec.ready, fan);
  const uint32_t in_min = schedule.BlocksForFanIn(extent);
  if (spec.ready.automatic && fan.in) plan.ready_blocks_min = in_min;
  plan.send_window = SendWindowFor(spec.send_window, fan);
  if (!spec.send_window.automatic || !plan.send_window) return;
  const uint32_t out_min = schedule.BlocksForFanOut(extent);
  plan.send_window_blocks_min = !fan.in ? out_min : !fan.out ? in_min : std::min(in_min, out_min);
}

/// All nodes' programs must be there, and their rounds few enough to go through.
Status CheckUnrollable(const RolledPlan& plan, uint32_t blocks) {
  if (plan.programs.size() != plan.nodes) {
    return Rejected(fmt::format("programs of {} of {} nodes are there; a flat plan needs all",
                                plan.programs.size(), plan.nodes),
                    "/programs");
  }
  uint64_t rounds = 0;
  for (const RolledProgram& program : plan.programs) {
    const RolledRounds active(program, blocks);
    if (active.overlaps()) {
      return Rejected(fmt::format("node {} has segments that overlap", program.node.value),
                      "/programs");
    }
    rounds += active.end() - active.begin();
  }
  if (rounds > kActiveRoundsMax) {
    return Rejected(fmt::format("{} blocks take {} rounds of all nodes together, the limit is {}",
                                blocks, rounds, kActiveRoundsMax),
                    "/programs");
  }
  return {};
}

}  // namespace

Result<RolledPlan> Roll(const Spec& spec, std::optional<NodeId> only) {
  Spec sized = spec;  // a size that is always right: it does not matter
  sized.message_bytes = 0;
  PREPOST_RETURN_IF_ERROR(CheckSpec(sized));
  const Algorithm algorithm = *FindAlgorithm(spec.algorithm);
  const RolledSchedule* const schedule = algorithm.schedule->rolled();
  if (schedule == nullptr) {
    return Rejected(
        fmt::format("'{}' has no rolled form, its parts depend on the number of blocks: it is "
                    "compiled for one message size",
                    spec.algorithm),
        "/algorithm");
  }
  if (only && only->value >= spec.nodes) {
    return Rejected(
        fmt::format("node {} is out of range, the nodes are 0 to {}", only->value, spec.nodes - 1),
        "/nodes");
  }
  const NodeOrder order = OrderNodes(spec);
  const RolledExtent extent(
      {.nodes = spec.nodes, .racks = order.rack_begin, .fanout = algorithm.fanout});
  if (const Status status = schedule->CheckExtent(extent); !status.ok())
    return Rejected(status.message(), "/algorithm");
  RolledPlan plan{.generator = kGenerator,
                  .algorithm = spec.algorithm,
                  .nodes = spec.nodes,
                  .root = spec.root,
                  .block_bytes = spec.block_bytes};
  if (spec.nodes > 1) plan.rounds = schedule->RoundsOf(extent);
  ChooseReady(spec, *schedule, extent, plan);
  const auto add = [&](uint32_t vertex) {
    RolledProgram& program = plan.programs.emplace_back();
    program.node = order.node_at[vertex];
    if (spec.nodes == 1) return;
    program.segments = schedule->SegmentsOf(extent, vertex);
    ForEachTransfer(program.segments, [&](RolledTransfer& transfer) {
      transfer.peer = order.node_at[transfer.peer.index()];
    });
  };
  if (only) {
    const auto at = std::ranges::find(order.node_at, *only);
    add(static_cast<uint32_t>(at - order.node_at.begin()));
    return plan;
  }
  plan.programs.reserve(spec.nodes);
  for (uint32_t vertex = 0; vertex < spec.nodes; ++vertex) add(vertex);
  std::ranges::sort(plan.programs, {}, &RolledProgram::node);
  return plan;
}

Result<Plan> Unroll(const RolledPlan& plan, uint64_t bytes, const CompileOptions& options) {
  PREPOST_RETURN_IF_ERROR(CheckRolled(plan));
  const Result<PlanHeader> header = plan.HeaderFor(bytes);
  if (!header.ok()) return header.status();
  const uint32_t blocks = header->message.blocks;
  PREPOST_RETURN_IF_ERROR(CheckTransfers(plan.nodes, blocks));
  PREPOST_RETURN_IF_ERROR(CheckUnrollable(plan, blocks));
  std::vector<const RolledProgram*> program_of(plan.nodes);
  for (const RolledProgram& program : plan.programs) program_of[program.node.index()] = &program;
  Result<Plan> flat = PlaySchedule(
      *header, [&](NodeId node) { return PlayRolled(*program_of[node.index()], blocks); });
  if (!flat.ok()) return flat;
  if (flat->header().rounds > header->rounds) {
    return Rejected(fmt::format("{} blocks take {} rounds, the header says at most {}", blocks,
                                flat->header().rounds, header->rounds),
                    "/rounds");
  }
  PassManager passes(options);
  passes.Add(ReadyPass({.automatic = false, .ready = header->ready}));
  passes.Add(SendWindowPass({.automatic = false, .window = header->send_window}));
  passes.Add(ReducePass());
  return passes.Run(*std::move(flat));
}

}  // namespace prepost
