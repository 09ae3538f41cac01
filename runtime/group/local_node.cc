// SPDX-License-Identifier: Apache-2.0
#include "runtime/group/local_node.h"

#include <unistd.h>

#include <cstdio>
#include <optional>
#include <utility>

#include "runtime/files/collective_sums.h"
#include "runtime/group/member.h"

namespace prepost {
namespace {

/// Ends the process because the launcher is gone. It may have committed the copies before it died,
/// so nothing is said about those.
[[noreturn]] void Abandon(const LocalNodeTask& task) {
  if (task.outputs != nullptr) task.outputs->Remove();
  char byte;
  if (read(task.last_word_fd, &byte, 1) == 1) {
    dprintf(STDERR_FILENO,
            "prepost: the launching process died before it could report; unfinished files were "
            "removed\n");
  }
  _exit(static_cast<int>(StatusCode::kRejected));
}

}  // namespace

void RunLocalNode(LocalNodeTask task) {
  std::optional<Member> member;
  member.emplace(
      NodePartTask{
          .plan = task.plan,
          .node = task.node,
          .input = &task.input,
          .buffer = &task.buffer,
          .input_offset =
              task.scratch == nullptr ? 0 : InputOffsets(task.plan.header())[task.node.index()],
          .scratch = task.scratch,
          .make_player = [&task](const PlayerContext& context) -> Result<std::unique_ptr<Player>> {
            if (task.make_player) {
              std::unique_ptr<PeerLinks> links = task.transport.TakeLinks(task.node);
              PREPOST_CHECK(links != nullptr);
              return task.make_player(task.node, std::move(links), context);
            }
            auto endpoint =
                task.transport.MakeEndpoint(task.node, context.wake_fd, context.checkpoint);
            if (!endpoint.ok()) return endpoint.status();
            return std::unique_ptr<Player>(
                std::make_unique<CpuPlayer>(task.plan, task.node, std::move(*endpoint), context));
          },
          .in_memory = static_cast<bool>(task.make_player),
          .wait = task.wait,
          .trace = task.trace},
      std::move(task.control), "the launching process");
  const Status status = member->Run();
  if (status.ok()) {
    member.reset();  // what its device has made on this machine goes, too
    _exit(0);
  }
  static_cast<void>(member->ReportFailure(status));  // the launcher says what the cause is
  Abandon(task);
}

}  // namespace prepost
