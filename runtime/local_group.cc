// SPDX-License-Identifier: Apache-2.0
//
// The launcher. All nodes go through the same steps together (control_socket.h): ready, start,
// delivered, sum, release. "Ready" before "start" is the barrier that `ready: barrier` asks for.
// Sums are computed after everyone has delivered, so that they cost no node's transfer any time,
// and copies are committed only when all sums are equal.
//
// Who notices what:
//
// A node that dies shows on its pidfd: the launcher kills the others, removes the files and reports
// the cause.
//
// A node that fails says so (kFailed) and waits to be killed.
//
// A node that loses a peer sees its connection end. That has a cause elsewhere, so the launcher
// gives the cause kCauseWait to show up and reports the lost connection only if it does not.
//
// A launcher that dies ends every node's control socket: each node removes the files and exits, and
// the one that gets the byte out of the last-word pipe says so.
//
// A node that hangs keeps everything from moving although nodes are asked once a second: the report
// says who waits for what.
#include "prepost/runtime/local_group.h"

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

#include "prepost/runtime/clock.h"
#include "prepost/runtime/control_socket.h"
#include "prepost/runtime/interrupt.h"
#include "prepost/runtime/local_node.h"

namespace prepost {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = ControlMessage::Kind;
using std::chrono::milliseconds;

constexpr milliseconds kTickMax{1000};   ///< between questions to nodes
constexpr milliseconds kCauseWait{500};  ///< for the cause of a lost connection to show up
/// For released nodes to exit; they have nothing left to do.
constexpr milliseconds kReleaseMax{1000};
constexpr size_t kStalledNodesMax = 4;  ///< named when nothing moves

/// A node's process, as the launcher sees it.
struct Member {
  NodeId node;
  pid_t pid = -1;
  FileDescriptor pidfd;  ///< empty: reaped; until then nobody else can get the pid
  std::optional<ControlSocket> control;
  bool reached = false;  ///< the step that is awaited
  bool asked = false;    ///< kQuery, not answered yet
  uint64_t progress = 0;
  std::string waiting;
  NodeReport report;
  MessageSum sum;
};

class LocalGroup {
 public:
  LocalGroup(const Plan& plan, const MappedInput& input, OutputSet* outputs,
             const LocalGroupOptions& options)
      : plan_(plan), input_(input), outputs_(outputs), options_(options) {}
  /// Kills and reaps what still lives.
  ~LocalGroup();

  Result<LocalRun> Run();

 private:
  Status Spawn();
  Status OpenBuffers();
  Status SpawnNode(NodeId node, LocalTransport& transport, int last_word_fd);
  Status Await(Kind kind);
  Status WaitForEvents(milliseconds timeout);
  Status Drain(Member& member);
  Status Reap(Member& member);
  Status NoteLoss(Status loss);
  Status AfterTick(milliseconds tick);
  Status Stalled() const;
  Status CompareSums() const;
  void Broadcast(const ControlMessage& message);
  void Release();
  LocalRun MakeRun() const;

  const Plan& plan_;
  const MappedInput& input_;
  OutputSet* const outputs_;
  const LocalGroupOptions& options_;
  std::vector<NodeBuffer> buffers_;  ///< by node, the root's not used
  std::vector<Member> members_;      ///< by node
  std::optional<Kind> awaited_;
  milliseconds idle_{0};
  uint64_t progress_ = 0;       ///< of all, at the last tick
  std::optional<Status> loss_;  ///< a lost connection whose cause has not shown up
  Clock::time_point loss_due_;  ///< when it is reported without
};

/// A node has a buffer, a control socket, a pidfd and, while it is being started, the other control
/// end.
size_t FilesNeeded(TransportKind transport, const Plan& plan) {
  constexpr size_t kOwnFiles = 32;
  return LocalTransport::FilesNeeded(transport, plan) + 3 * size_t{plan.header().nodes} + kOwnFiles;
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

std::string DeathOf(const Member& member, int wait_status) {
  const std::string who = fmt::format("node {} (process {})", member.node.value, member.pid);
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    return fmt::format("{} was killed by signal {} ({})", who, signal, strsignal(signal));
  }
  return fmt::format("{} exited unexpectedly with code {}", who, WEXITSTATUS(wait_status));
}

Result<LocalRun> LocalGroup::Run() {
  PREPOST_RETURN_IF_ERROR(Spawn());
  PREPOST_RETURN_IF_ERROR(Await(Kind::kReady));
  const uint64_t start_ns = MonotonicNs();
  if (options_.trace != nullptr) options_.trace->start_ns = start_ns;
  Broadcast({.kind = Kind::kStart, .start_ns = start_ns});
  PREPOST_RETURN_IF_ERROR(Await(Kind::kDelivered));
  Broadcast({.kind = Kind::kSum});
  PREPOST_RETURN_IF_ERROR(Await(Kind::kSummed));
  PREPOST_RETURN_IF_ERROR(CompareSums());
  if (outputs_ != nullptr) PREPOST_RETURN_IF_ERROR(outputs_->Commit());
  Release();
  return MakeRun();
}

Status LocalGroup::Spawn() {
  PREPOST_RETURN_IF_ERROR(RaiseFileLimit(FilesNeeded(options_.transport, plan_)));
  PREPOST_RETURN_IF_ERROR(OpenBuffers());
  const Result<std::unique_ptr<LocalTransport>> transport =
      LocalTransport::Make(options_.transport, plan_, {.input = input_, .buffers = buffers_});
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
  members_.resize(plan_.header().nodes);
  std::fflush(nullptr);  // or each node would inherit what is buffered
  for (uint32_t node = 0; node < plan_.header().nodes; ++node) {
    PREPOST_RETURN_IF_ERROR(SpawnNode(NodeId(node), **transport, last_word_read.get()));
  }
  return {};
}

Status LocalGroup::OpenBuffers() {
  buffers_.resize(plan_.header().nodes);
  for (uint32_t node = 0; node < plan_.header().nodes; ++node) {
    if (NodeId(node) == plan_.header().root) continue;
    Result<NodeBuffer> buffer = NodeBuffer::Open(NodeId(node), outputs_);
    if (!buffer.ok()) return buffer.status();
    buffers_[node] = std::move(*buffer);
  }
  return {};
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
    if (node != plan_.header().root) keep.push_back(buffers_[node.index()].fd());
    CloseAllBut(std::move(keep));
    SetUpNodeProcess(node);
    RunLocalNode({.plan = plan_,
                  .node = node,
                  .input = input_,
                  .buffer = buffers_[node.index()],
                  .outputs = outputs_,
                  .transport = transport,
                  .wait = options_.wait,
                  .trace = options_.trace,
                  .control = std::move(control->second),
                  .last_word_fd = last_word_fd});
  }
  Member& member = members_[node.index()];
  member.node = node;
  member.pid = pid;
  member.pidfd = FileDescriptor(pidfd_open(pid, 0));
  member.control = std::move(control->first);
  if (member.pidfd.valid()) return {};
  return SystemError(StatusCode::kEnvironment,
                     fmt::format("cannot watch the process of node {}", node.value), errno);
}

Status LocalGroup::Await(Kind kind) {
  awaited_ = kind;
  idle_ = milliseconds(0);
  for (Member& member : members_) member.reached = false;
  const milliseconds tick = std::clamp(options_.no_progress_max / 4, milliseconds(1), kTickMax);
  Clock::time_point next_tick = Clock::now() + tick;
  while (loss_ || !std::ranges::all_of(members_, &Member::reached)) {
    const Clock::time_point wake = loss_ ? std::min(next_tick, loss_due_) : next_tick;
    const auto left = std::chrono::ceil<milliseconds>(wake - Clock::now());
    PREPOST_RETURN_IF_ERROR(WaitForEvents(std::max(left, milliseconds(0))));
    if (loss_ && Clock::now() >= loss_due_) return *loss_;
    if (Clock::now() >= next_tick) {
      PREPOST_RETURN_IF_ERROR(AfterTick(tick));
      next_tick = Clock::now() + tick;
    }
  }
  return {};
}

/// An interrupt counts before deaths: Ctrl-C and `timeout` signal all processes at once.
Status LocalGroup::WaitForEvents(milliseconds timeout) {
  std::vector<pollfd> polls;
  polls.push_back({.fd = options_.interrupt_fd, .events = POLLIN, .revents = 0});
  for (const Member& member : members_) {
    const int control_fd = member.control->closed() ? -1 : member.control->fd();
    polls.push_back({.fd = control_fd, .events = POLLIN, .revents = 0});
    polls.push_back({.fd = member.pidfd.get(), .events = POLLIN, .revents = 0});
  }
  if (poll(polls.data(), polls.size(), static_cast<int>(timeout.count())) <= 0) return {};
  for (size_t i = 0; i < members_.size(); ++i) {
    const bool died = polls[2 * i + 2].revents != 0;
    Status status;
    if (died || polls[2 * i + 1].revents != 0) status = Drain(members_[i]);
    if (status.ok() && died) status = Reap(members_[i]);
    if (!status.ok()) return IsInterrupted(options_.interrupt_fd) ? Interrupted() : status;
  }
  return IsInterrupted(options_.interrupt_fd) ? Interrupted() : Status();
}

/// Takes what a node has said.
Status LocalGroup::Drain(Member& member) {
  while (const std::optional<ControlMessage> message = member.control->Receive(/*wait=*/false)) {
    if (message->kind == Kind::kFailed) {
      const std::string text = message->Text();
      if (message->lost_peer) return NoteLoss(Rejected(text));
      return {message->code, fmt::format("node {}: {}", member.node.value, text)};
    }
    if (message->kind == Kind::kProgress) {
      member.asked = false;
      member.progress = message->progress;
      member.waiting = message->Text();
    }
    if (message->kind == Kind::kProgress || message->kind == Kind::kDelivered) {
      member.report = message->report;
    }
    if (message->kind == Kind::kSummed) member.sum = message->sum;
    if (message->kind == awaited_) member.reached = true;
  }
  if (!member.control->closed()) return {};
  return NoteLoss(
      Rejected(fmt::format("node {} closed its control connection", member.node.value)));
}

Status LocalGroup::Reap(Member& member) {
  int wait_status = 0;
  waitpid(member.pid, &wait_status, 0);
  member.pidfd.Close();
  return Rejected(DeathOf(member, wait_status));
}

Status LocalGroup::NoteLoss(Status loss) {
  if (!loss_) {
    loss_ = std::move(loss);
    loss_due_ = Clock::now() + kCauseWait;
  }
  return {};
}

/// Counts time without progress in ticks, so that time during which the launcher itself was stopped
/// does not count.
Status LocalGroup::AfterTick(milliseconds tick) {
  uint64_t progress = 0;
  uint64_t bytes_received = 0;
  for (Member& member : members_) {
    progress += member.progress + (member.reached ? 1 : 0);
    bytes_received += member.report.bytes_received;
  }
  idle_ = progress == std::exchange(progress_, progress) ? idle_ + tick : milliseconds(0);
  if (idle_ >= options_.no_progress_max) return Stalled();
  if (options_.progress && awaited_ == Kind::kDelivered) options_.progress(bytes_received);
  for (Member& member : members_) {
    if (member.reached || member.asked) continue;
    member.asked = true;
    member.control->Send({.kind = Kind::kQuery});
  }
  return {};
}

/// Nodes that do not answer come first: they are the likely cause.
Status LocalGroup::Stalled() const {
  std::vector<std::string> reasons;
  for (const Member& member : members_) {
    if (!member.reached && member.asked) {
      reasons.push_back(fmt::format("node {} does not answer", member.node.value));
    }
  }
  for (const Member& member : members_) {
    if (!member.reached && !member.asked && !member.waiting.empty())
      reasons.push_back(member.waiting);
  }
  if (reasons.empty()) reasons.push_back("no node has said yet what it waits for");
  if (reasons.size() > kStalledNodesMax) {
    const size_t more = reasons.size() - kStalledNodesMax;
    reasons.resize(kStalledNodesMax);
    reasons.push_back(fmt::format("and {} nodes more", more));
  }
  return Rejected(fmt::format("no progress for {} ms: {}", options_.no_progress_max.count(),
                              fmt::join(reasons, "; ")));
}

Status LocalGroup::CompareSums() const {
  const Member& root = members_[plan_.header().root.index()];
  for (const Member& member : members_) {
    PREPOST_RETURN_IF_ERROR(CheckCopy(member.node, member.sum, root.sum));
  }
  return {};
}

void LocalGroup::Broadcast(const ControlMessage& message) {
  for (Member& member : members_) member.control->Send(message);
}

/// All is done and committed; what happens to the nodes now changes nothing.
void LocalGroup::Release() {
  Broadcast({.kind = Kind::kRelease});
  const Clock::time_point due = Clock::now() + kReleaseMax;
  for (Member& member : members_) {
    pollfd exited = {.fd = member.pidfd.get(), .events = POLLIN, .revents = 0};
    const auto left = std::chrono::ceil<milliseconds>(due - Clock::now());
    poll(&exited, 1, static_cast<int>(std::max(left, milliseconds(0)).count()));
  }
}

LocalRun LocalGroup::MakeRun() const {
  LocalRun run;
  run.report.executor = "cpu";
  run.report.detail = Name(options_.transport);
  run.report.wait = Name(options_.wait.mode);
  run.sum = members_.front().sum;
  for (const Member& member : members_) {
    run.report.nodes.push_back(member.report);
    run.report.elapsed_ns = std::max(run.report.elapsed_ns, member.report.elapsed_ns);
  }
  return run;
}

LocalGroup::~LocalGroup() {
  for (const Member& member : members_) {
    if (member.pidfd.valid()) kill(member.pid, SIGKILL);
  }
  for (const Member& member : members_) {
    if (member.pidfd.valid()) waitpid(member.pid, nullptr, 0);
  }
}

}  // namespace

Result<LocalRun> RunLocalGroup(const Plan& plan, const MappedInput& input, OutputSet* outputs,
                               const LocalGroupOptions& options) {
  PREPOST_CHECK(input.size_bytes() == plan.header().message.bytes);
  return LocalGroup(plan, input, outputs, options).Run();
}

}  // namespace prepost
