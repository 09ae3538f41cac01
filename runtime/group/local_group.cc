// SPDX-License-Identifier: Apache-2.0
//
// The launcher: starts a process per node, leads them (coordinator.h), and ends them.
//
// A node that dies shows on its pidfd: the launcher kills the others, removes the files and reports
// the cause. A launcher that dies ends every node's control socket: each node removes the files and
// exits, and the one that gets the byte out of the last-word pipe says so.
#include "runtime/group/local_group.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
extern "C" {
#include <sys/pidfd.h>  // glibc 2.36 declares its functions without C linkage
}

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/clock.h"
#include "runtime/files/collective_sums.h"
#include "runtime/group/control_socket.h"
#include "runtime/group/coordinator.h"
#include "runtime/group/local_node.h"
#include "runtime/interrupt.h"

namespace prepost {
namespace {

/// A node's process, as the launcher sees it.
struct NodeProcess {
  NodeId node;
  pid_t pid = -1;
  FileDescriptor pidfd;  ///< empty: reaped; until then nobody else can get the pid
};

class LocalGroup {
 public:
  LocalGroup(Playable plan, const MappedInput& input, OutputSet* outputs,
             const LocalGroupOptions& options)
      : plan_(plan),
        input_(input),
        outputs_(outputs),
        options_(options),
        coordinator_(plan.header().nodes, plan.header().collective.root,
                     {.no_progress_max = options.no_progress_max,
                      .interrupt_fd = options.interrupt_fd,
                      .progress = options.progress,
                      .expected = Expected()}) {}
  /// Kills and reaps what still lives.
  ~LocalGroup();

  Result<LocalRun> Run();

 private:
  bool is_multicast() const { return plan_.header().collective.kind == CollectiveKind::kMulticast; }
  decltype(Coordinator::Options::expected) Expected();
  Status Spawn();
  Status OpenBuffers();
  Status SpawnNode(NodeId node, LocalTransport& transport, int last_word_fd);
  uint64_t Start();
  Status Reap(NodeProcess& process);
  LocalRun MakeRun() const;

  const Playable plan_;
  const MappedInput& input_;
  OutputSet* const outputs_;
  const LocalGroupOptions& options_;
  std::vector<NodeBuffer> buffers_;     ///< by node, the root's not used
  std::vector<NodeBuffer> scratch_;     ///< the same, of other collectives than multicasts
  std::vector<NodeProcess> processes_;  ///< by node
  Coordinator coordinator_;
};

/// A node has a buffer, scratch buffers, a control socket, a pidfd and, while it is being started, the other control
/// end.
size_t FilesNeeded(TransportKind transport, Playable plan) {
  constexpr size_t kOwnFiles = 32;
  return LocalTransport::FilesNeeded(transport, plan) + 4 * size_t{plan.header().nodes} + kOwnFiles;
}

/// Closes all but standard streams and `keep`: other nodes' sockets, and whatever this process has
/// inherited.
void CloseAllBut(std::vector<int> keep) {
  std::ranges::sort(keep);
  unsigned first = STDERR_FILENO + 1;
  for (const int fd : keep) {
    const unsigned kept = static_cast<unsigned>(fd);
    if (kept > first) close_range(first, kept - 1, 0);
    first = std::max(first, kept + 1);
  }
  close_range(first, ~0u, 0);
}

/// Ctrl-C at a terminal reaches all processes: ending the run is the launcher's business. Nodes
/// still end on SIGTERM.
void SetUpNodeProcess(NodeId node) {
  sigset_t blocked;
  sigemptyset(&blocked);
  for (int signal : {SIGINT, SIGHUP, SIGQUIT}) sigaddset(&blocked, signal);
  sigprocmask(SIG_SETMASK, &blocked, nullptr);
  signal(SIGTERM, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_NAME, fmt::format("prepost:{}", node.value).c_str());
}

std::string DeathOf(const NodeProcess& process, int wait_status) {
  const std::string who = fmt::format("node {} (process {})", process.node.value, process.pid);
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    return fmt::format("{} was killed by signal {} ({})", who, signal, strsignal(signal));
  }
  return fmt::format("{} exited unexpectedly with code {}", who, WEXITSTATUS(wait_status));
}

Result<LocalRun> LocalGroup::Run() {
  PREPOST_RETURN_IF_ERROR(Spawn());
  PREPOST_RETURN_IF_ERROR(coordinator_.Lead([this] { return Start(); }));
  for (NodeBuffer& buffer : buffers_) PREPOST_RETURN_IF_ERROR(buffer.GiveName());
  if (outputs_ != nullptr) PREPOST_RETURN_IF_ERROR(outputs_->Commit());
  coordinator_.Release();
  return MakeRun();
}

uint64_t LocalGroup::Start() {
  const uint64_t start_ns = MonotonicNs();
  if (options_.trace != nullptr) options_.trace->start_ns = start_ns;
  return start_ns;
}

Status LocalGroup::Spawn() {
  PREPOST_RETURN_IF_ERROR(RaiseFileLimit(FilesNeeded(options_.transport, plan_)));
  PREPOST_RETURN_IF_ERROR(OpenBuffers());
  const Result<std::unique_ptr<LocalTransport>> transport = LocalTransport::Make(
      options_.transport, plan_, {.input = input_, .buffers = buffers_, .scratch = scratch_});
  if (!transport.ok()) return transport.status();
  int last_word[2];
  if (pipe(last_word) != 0) {
    return SystemError(StatusCode::kEnvironment, "cannot make a pipe", errno);
  }
  const FileDescriptor last_word_read(last_word[0]);
  const FileDescriptor last_word_write(last_word[1]);
  if (write(last_word_write.get(), "!", 1) != 1) {
    return SystemError(StatusCode::kEnvironment, "cannot write to a pipe", errno);
  }
  processes_.resize(plan_.header().nodes);
  std::fflush(nullptr);  // or each node would inherit what is buffered
  for (uint32_t node = 0; node < plan_.header().nodes; ++node) {
    PREPOST_RETURN_IF_ERROR(SpawnNode(NodeId(node), **transport, last_word_read.get()));
  }
  return {};
}

Status LocalGroup::OpenBuffers() {
  buffers_.resize(plan_.header().nodes);
  for (uint32_t node = 0; node < plan_.header().nodes; ++node) {
    if (!plan_.header().roles().IsTarget(NodeId(node))) continue;
    const uint64_t bytes = is_multicast() ? plan_.header().payload.bytes
                                          : NodeBytesOf(plan_.header(), NodeId(node)).output;
    Result<NodeBuffer> buffer = NodeBuffer::Open(NodeId(node), bytes, outputs_);
    if (!buffer.ok()) return buffer.status();
    buffers_[node] = std::move(*buffer);
  }
  for (uint32_t node = 0; !is_multicast() && node < plan_.header().nodes; ++node) {
    Result<NodeBuffer> buffer = NodeBuffer::Open(
        NodeId(node), NodeBytesOf(plan_.header(), NodeId(node)).scratch, /*outputs=*/nullptr);
    if (!buffer.ok()) return buffer.status();
    scratch_.push_back(std::move(*buffer));
  }
  return {};
}

/// Empty of a multicast.
decltype(Coordinator::Options::expected) LocalGroup::Expected() {
  if (is_multicast()) return {};
  return [this] {
    const auto read = [this](uint64_t offset, std::span<std::byte> out) -> Status {
      const Result<Mapping> bytes = input_.Read(offset, out.size());
      if (!bytes.ok()) return bytes.status();
      std::ranges::copy(bytes->bytes(), out.begin());
      return {};
    };
    return ExpectedSums(*plan_.flat(), read, [this] {
      return IsInterrupted(options_.interrupt_fd) ? Interrupted() : Status();
    });
  };
}

Status LocalGroup::SpawnNode(NodeId node, LocalTransport& transport, int last_word_fd) {
  auto control = ControlSocket::MakePair();
  if (!control.ok()) return control.status();
  const pid_t pid = fork();
  if (pid < 0) {
    return SystemError(StatusCode::kEnvironment,
                       fmt::format("cannot start a process for node {}", node.value), errno);
  }
  if (pid == 0) {
    std::vector<int> keep = transport.FilesOf(node);
    for (int fd : {control->second.fd(), last_word_fd, input_.fd()}) keep.push_back(fd);
    if (plan_.header().roles().IsTarget(node)) keep.push_back(buffers_[node.index()].fd());
    if (!is_multicast()) keep.push_back(scratch_[node.index()].fd());
    CloseAllBut(std::move(keep));
    SetUpNodeProcess(node);
    RunLocalNode({.plan = plan_,
                  .node = node,
                  .input = input_,
                  .buffer = buffers_[node.index()],
                  .scratch = is_multicast() ? nullptr : &scratch_[node.index()],
                  .outputs = outputs_,
                  .transport = transport,
                  .make_player = options_.make_player,
                  .wait = options_.wait,
                  .trace = options_.trace,
                  .control = std::move(control->second),
                  .last_word_fd = last_word_fd});
  }
  NodeProcess& process = processes_[node.index()];
  process.node = node;
  process.pid = pid;
  process.pidfd = FileDescriptor(pidfd_open(pid, 0));
  if (!process.pidfd.valid()) {
    return SystemError(StatusCode::kEnvironment,
                       fmt::format("cannot watch the process of node {}", node.value), errno);
  }
  coordinator_.Join(
      node, std::move(control->first),
      {.fd = process.pidfd.get(), .cause = [this, &process] { return Reap(process); }});
  return {};
}

Status LocalGroup::Reap(NodeProcess& process) {
  int wait_status = 0;
  waitpid(process.pid, &wait_status, 0);
  process.pidfd.Close();
  return Rejected(DeathOf(process, wait_status));
}

LocalRun LocalGroup::MakeRun() const {
  LocalRun run = {.report = coordinator_.report(), .sum = coordinator_.sum()};
  run.report.executor = options_.make_player ? options_.executor : "cpu";
  run.report.detail =
      options_.make_player ? options_.detail : std::string(Name(options_.transport));
  run.report.wait = Name(options_.wait.mode);
  for (uint32_t node = 0; !is_multicast() && node < plan_.header().nodes; ++node) {
    run.outputs.push_back(plan_.header().roles().IsTarget(NodeId(node))
                              ? std::optional(coordinator_.sum(NodeId(node)))
                              : std::nullopt);
  }
  return run;
}

LocalGroup::~LocalGroup() {
  for (const NodeProcess& process : processes_) {
    if (process.pidfd.valid()) kill(process.pid, SIGKILL);
  }
  for (const NodeProcess& process : processes_) {
    if (process.pidfd.valid()) waitpid(process.pid, nullptr, 0);
  }
}

}  // namespace

Result<LocalRun> RunLocalGroup(Playable plan, const MappedInput& input, OutputSet* outputs,
                               const LocalGroupOptions& options) {
  PREPOST_CHECK(input.size_bytes() == InputBytesOf(plan.header()));
  return LocalGroup(plan, input, outputs, options).Run();
}

}  // namespace prepost
