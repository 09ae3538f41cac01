// SPDX-License-Identifier: Apache-2.0
//
// A schedule's segments are about its vertices; a plan's are about its nodes. Nothing else is done
// to them: the ready mode and the send window stand in the header, since what they add to a flat
// plan follows from each node's own rounds.
//
// auto, as the passes have it, depends on the plan: credits are for plans in which some node
// receives from several. With one block no node does, with more the schedule knows (FanOf()).
#include "compiler/roll.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/pass_manager.h"
#include "compiler/schedules/fan.h"
#include "compiler/schedules/node_order.h"
#include "compiler/schedules/rolled_compose.h"
#include "compiler/schedules/rolled_schedule.h"
#include "compiler/schedules/schedule_player.h"
#include "ir/base/count.h"
#include "ir/version.h"

namespace prepost {
namespace {

/// What auto means for `schedule`, and from how many blocks on.
void ChooseReady(const Spec& spec, const RolledSchedule& schedule, RolledExtent extent,
                 RolledPlan& plan) {
  const Fan fan = extent.nodes > 1 ? schedule.FanOf(extent) : Fan();
  SpecReady ready = spec.ready;
  SpecSendWindow send_window = spec.send_window;
  ready.path_blocks = send_window.path_blocks = BlocksOnPath(spec);
  plan.header.ready = ReadyFor(ready, fan);
  const uint32_t in_min = schedule.BlocksForFanIn(extent);
  if (spec.ready.automatic && fan.in) plan.ready_blocks_min = in_min;
  plan.header.send_window = SendWindowFor(send_window, fan);
  if (!spec.send_window.automatic || !plan.header.send_window) return;
  const uint32_t out_min = schedule.BlocksForFanOut(extent);
  plan.send_window_blocks_min = !fan.in ? out_min : !fan.out ? in_min : std::min(in_min, out_min);
}

/// Against windows that no verification could settle.
Status CheckWindows(const Spec& spec) {
  const auto check = [](const char* what, uint32_t window, const char* where) -> Status {
    if (window <= kRolledWindowMax) return {};
    return Rejected(fmt::format("a {} window of {} is too large for a plan of every message size, "
                                "the limit is {}: what has to be verified grows with it",
                                what, window, kRolledWindowMax),
                    where);
  };
  PREPOST_RETURN_IF_ERROR(check("receive", spec.ready.ready.window, "/ready"));
  return check("send", spec.send_window.window.value_or(0), "/send_window");
}

/// All nodes' programs must be there, and their rounds few enough to go through.
Status CheckUnrollable(const RolledPlan& plan, uint32_t blocks) {
  if (plan.programs.size() != plan.header.nodes) {
    return Rejected(fmt::format("programs of {} of {} nodes are there; a flat plan needs all",
                                plan.programs.size(), plan.header.nodes),
                    "/programs");
  }
  uint64_t rounds = 0;
  uint32_t end = 0;
  for (const RolledProgram& program : plan.programs) {
    const RolledRounds active(program, blocks);
    if (active.overlaps()) {
      return Rejected(fmt::format("unrolled to k = {}: node {} has segments that overlap",
                                  Count(blocks, "block"), program.node.value),
                      fmt::format("/programs/{}", &program - plan.programs.data()));
    }
    rounds += active.end() - active.begin();
    end = std::max(end, active.end());
  }
  if (end > plan.RoundsFor(blocks)) {
    return Rejected(fmt::format("{} blocks take {} rounds, the header says at most {}", blocks, end,
                                plan.RoundsFor(blocks)),
                    "/rounds");
  }
  if (rounds > kActiveRoundsMax) {
    return Rejected(fmt::format("{} blocks take {} rounds of all nodes together, the limit is {}",
                                blocks, rounds, kActiveRoundsMax),
                    "/programs");
  }
  return {};
}

/// Where in the rolled plan stands what a finding in its `flat` one is about: an op comes from a
/// transfer of its node in its round, a credit from the transfer that it grants.
std::string WhereInRolled(const RolledPlan& rolled, const Plan& flat, const Diagnostic& finding) {
  const Place& found = finding.place;
  if (found.section != Place::Section::kPrograms) return finding.where;  // keys of the same names
  const Program& program = flat.programs()[found.index];
  const auto own = std::ranges::find(rolled.programs, program.node, &RolledProgram::node);
  const std::string where = fmt::format("/programs/{}", own - rolled.programs.begin());
  if (found.op == Place::kWhole) return where;
  const Op& op = flat.ops(program)[found.op];
  const RolledRounds rounds(*own, flat.header().payload.blocks);
  return where + rounds.PlaceOf(op.round, op.is_send() != op.is_credit());
}

}  // namespace

Status CheckRolledKind(CollectiveKind kind) {
  if (kind == CollectiveKind::kMulticast) return {};
  return Rejected(
      fmt::format("only a multicast has a plan for any size: {} is compiled for one", Name(kind)),
      "/collective");
}

Result<RolledPlan> Roll(const Spec& spec, std::optional<NodeId> only) {
  PREPOST_RETURN_IF_ERROR(CheckRolledKind(spec.collective));
  Spec sized = spec;  // a size that is always right: it does not matter
  sized.message_bytes = 0;
  PREPOST_RETURN_IF_ERROR(CheckSpec(sized));
  PREPOST_RETURN_IF_ERROR(CheckWindows(spec));
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
        "/node");
  }
  const NodeOrder order = OrderNodes(spec);
  const RolledExtent extent(
      {.nodes = spec.nodes, .racks = order.rack_begin, .fanout = algorithm.fanout});
  if (const Status status = schedule->CheckExtent(extent); !status.ok())
    return Rejected(status.message(), "/algorithm");
  RolledPlan plan{.header = {.generator = kGenerator,
                             .collective = {.root = spec.root},
                             .algorithm = spec.algorithm,
                             .nodes = spec.nodes,
                             .payload = {.block_bytes = spec.block_bytes}}};
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

Result<VerifiedPlan> Unroll(const RolledPlan& plan, uint64_t bytes, const CompileOptions& options) {
  PREPOST_RETURN_IF_ERROR(CheckRolled(plan));
  const Result<PlanHeader> header = plan.HeaderFor(bytes);
  if (!header.ok()) return header.status();
  const uint32_t blocks = header->payload.blocks;
  if (const Status status = CheckTransfers(plan.header.nodes, blocks); !status.ok())
    return Rejected(status.message(), "/message" + status.where());
  PREPOST_RETURN_IF_ERROR(CheckUnrollable(plan, blocks));
  std::vector<const RolledProgram*> program_of(plan.header.nodes);
  for (const RolledProgram& program : plan.programs) program_of[program.node.index()] = &program;
  Result<Plan> played = PlaySchedule(
      *header, [&](NodeId node) { return PlayRolled(*program_of[node.index()], blocks); });
  if (!played.ok()) return played.status();
  PassManager passes(options, [&plan](const Plan& wrong, const Diagnostic& finding) {
    return WhereInRolled(plan, wrong, finding);
  });
  passes.AddAll({.automatic = false, .ready = header->ready},
                {.automatic = false, .window = header->send_window});
  Result<VerifiedPlan> flat = passes.Run(*std::move(played));
  if (flat.ok() || flat.status().code() != StatusCode::kRejected) return flat;
  return Rejected(
      fmt::format("unrolled to k = {}: {}", Count(blocks, "block"), flat.status().message()),
      flat.status().where());
}

}  // namespace prepost
