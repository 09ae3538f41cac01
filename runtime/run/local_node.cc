// SPDX-License-Identifier: Apache-2.0
#include "runtime/run/local_node.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "runtime/files/collective_sums.h"
#include "runtime/run/run_member.h"

namespace prepost {
namespace {

/// Ends the process because the launcher is gone. It may have committed the copies before it died,
/// so nothing is said about those.
[[noreturn]] void Abandon(const LocalNodeTask& task) {
  if (task.outputs != nullptr) task.outputs->Remove();
  char byte;
  if (read(task.last_word_fd, &byte, 1) == 1) {
    dprintf(STDERR_FILENO,
            "prepost: the launching process died or was stopped before it could report; unfinished "
            "files were removed\n");
  }
  _exit(static_cast<int>(StatusCode::kRejected));
}

RunMemberTask TaskOf(LocalNodeTask& task) {
  const PlanHeader& header = task.plan.header();
  RunMemberTask member = {
      .part = {.plan = task.plan,
               .node = task.node,
               .input = &task.input,
               .buffer = &task.buffer,
               .input_offset =
                   task.scratch == nullptr ? 0 : InputOffsets(header)[task.node.index()],
               .scratch = task.scratch,
               .wait = task.wait,
               .trace = task.trace},
      .keeper = {.who = fmt::format("node {}", task.node.value),
                 .listens = false,
                 .failure_max = task.failure_max},
      .group = LocalRunGroup(header, task.node)};
  member.group.controls.push_back(std::move(task.control));
  member.group.gates = std::move(task.gates);
  for (uint32_t node = 0; node < header.nodes; ++node)
    member.group.names.push_back(fmt::format("node {}", node));
  member.group.names.emplace_back("the launching process");
  if (task.make_player) {
    member.make_player = [&task](const PlayerContext& context, std::vector<TcpSocket> /*sockets*/) {
      std::unique_ptr<PeerLinks> links = task.transport.TakeLinks(task.node);
      PREPOST_CHECK(links != nullptr);
      return task.make_player(task.node, std::move(links), context);
    };
  } else {
    member.make_endpoint = [&task](const PlayerContext& context,
                                   std::vector<TcpSocket> /*sockets*/) {
      return task.transport.MakeEndpoint(task.node, context.wake_fd, context.checkpoint);
    };
  }
  return member;
}

}  // namespace

KeptGroup LocalRunGroup(const PlanHeader& header, NodeId self) {
  KeptGroup group = {.serial = RunControl::kSerial,
                     .addresses = std::vector<PeerAddress>(header.nodes + 1),
                     .leader_word = "",
                     .self = self,
                     .leader = NodeId(header.nodes),
                     .run = KeptRun{.is_one_machine = true},
                     .created = std::chrono::steady_clock::now()};
  for (uint32_t node = 0; node <= header.nodes; ++node) group.members.push_back(node);
  return group;
}

void RunLocalNode(LocalNodeTask task) {
  std::optional<RunMember> member(std::in_place, TaskOf(task));
  Status status = member->Open();
  if (status.ok()) status = member->Run();
  const bool is_abandoned = member->has_lost_leader();
  member.reset();  // what was said last arrives, and what its device has made goes
  if (is_abandoned) Abandon(task);
  _exit(status.ok() ? 0 : static_cast<int>(status.code()));  // the launcher says what the cause is
}

}  // namespace prepost
