// SPDX-License-Identifier: Apache-2.0
//
// The launcher: starts a process per node, leads them as a member of their group that plays no part
// (run_leader.h), and ends them.
//
// A node that dies shows on a pipe that it alone holds open: the launcher kills the others, removes
// the files and reports the cause. A launcher that dies or is stopped is lost to every node's
// keeper: each node removes the files and exits, and the one that gets the byte out of the
// last-word pipe says so.
#include "runtime/run/local_group.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/interrupt.h"
#include "runtime/files/collective_sums.h"
#include "runtime/group/control_socket.h"
#include "runtime/group/gate_tree.h"
#include "runtime/run/local_node.h"
#include "runtime/run/run_control.h"

namespace prepost {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTick{1000};    ///< events of all kinds end waiting
constexpr milliseconds kEndMax{1000};  ///< for the cause of a failure, and to go when all is done

/// A node's process, as the launcher sees it.
struct NodeProcess {
  NodeId node;
  pid_t pid = -1;          ///< -1: reaped; until then nobody else can get the pid
  FileDescriptor life;     ///< a pipe that ends with it
  FileDescriptor control;  ///< until the keeper has it
};

class LocalGroup {
 public:
  LocalGroup(Playable plan, const MappedInput& input, OutputSet* outputs,
             const LocalGroupOptions& options)
      : plan_(plan),
        input_(input),
        outputs_(outputs),
        options_(options),
        leader_(plan_.header(), control_, {.expected = Expected(), .progress = options.progress}) {}
  /// Kills and reaps what still lives.
  ~LocalGroup();

  Result<LocalRun> Run();

 private:
  bool is_multicast() const { return plan_.header().collective.kind == CollectiveKind::kMulticast; }
  decltype(RunLeaderOptions::expected) Expected();
  Status Spawn();
  Status OpenBuffers();
  Status OpenGates();
  Status SpawnNode(NodeId node, LocalTransport& transport, int last_word_fd);
  Status Lead();
  Status Take(const KeeperEvent& event);
  Status CheckProcesses();
  Status Commit();
  void Release();
  LocalRun MakeRun() const;

  const Playable plan_;
  const MappedInput& input_;
  OutputSet* const outputs_;
  const LocalGroupOptions& options_;
  std::vector<NodeBuffer> buffers_;             ///< by node, the root's not used
  std::vector<NodeBuffer> scratch_;             ///< the same, of other collectives than multicasts
  std::vector<NodeProcess> processes_;          ///< by node
  std::vector<std::vector<GateSocket>> gates_;  ///< by node, until it is started
  std::atomic<uint64_t> computed_ = 0;          ///< rises while this process computes expected sums
  RunLeader leader_;
  RunControl control_;  ///< goes first: its keeper's thread calls back
};

/// A node has a buffer, scratch buffers, a control socket, the pipe of its life and, while it is
/// being started, the other ends of both, and both ends of a connection to its parent in the
/// GateTree.
size_t FilesNeeded(TransportKind transport, Playable plan) {
  constexpr size_t kOwnFiles = 32;
  return LocalTransport::FilesNeeded(transport, plan) + 6 * size_t{plan.header().nodes} + kOwnFiles;
}

/// The files that this process has open, as /proc says; where there is none, all that may be.
std::vector<unsigned> OpenFiles() {
  std::vector<unsigned> files;
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc/self/fd", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    files.push_back(static_cast<unsigned>(std::stoul(entry->path().filename())));
  if (!error) return files;
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  files.resize(std::min<rlim_t>(limit.rlim_cur, 1u << 20));
  std::iota(files.begin(), files.end(), 0u);
  return files;
}

/// Closes all but standard streams and `keep`: other nodes' sockets, and whatever this process has
/// inherited.
void CloseAllBut(std::vector<int> keep) {
  std::ranges::sort(keep);
  unsigned first = STDERR_FILENO + 1;
  bool is_refused = false;
  for (const int fd : keep) {
    const unsigned kept = static_cast<unsigned>(fd);
    if (kept > first) is_refused |= close_range(first, kept - 1, 0) != 0;
    first = std::max(first, kept + 1);
  }
  is_refused |= close_range(first, ~0u, 0) != 0;
  if (!is_refused) return;
  for (const unsigned fd : OpenFiles()) {
    const int open = static_cast<int>(fd);
    if (open > STDERR_FILENO && !std::ranges::binary_search(keep, open)) close(open);
  }
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

/// Waits for its end, and returns its status.
int Reap(NodeProcess& process) {
  int wait_status = 0;
  while (waitpid(process.pid, &wait_status, 0) < 0 && errno == EINTR) continue;
  process.pid = -1;
  process.life.Close();
  return wait_status;
}

std::string DeathOf(NodeId node, pid_t pid, int wait_status) {
  const std::string who = fmt::format("node {} (process {})", node.value, pid);
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    return fmt::format("{} was killed by signal {} ({})", who, signal, strsignal(signal));
  }
  return fmt::format("{} exited unexpectedly with code {}", who, WEXITSTATUS(wait_status));
}

Result<LocalRun> LocalGroup::Run() {
  PREPOST_RETURN_IF_ERROR(Spawn());
  const Status status = Lead();
  if (!status.ok()) {
    // Ctrl-C and `timeout` signal all processes at once.
    const bool is_interrupted = IsInterrupted(options_.interrupt_fd);
    const Status cause =
        control_.EndFailed(is_interrupted ? Interrupted() : status, std::nullopt, kEndMax);
    // A process that has ended has perhaps said why, which the keeper heard.
    return is_interrupted ? Interrupted() : control_.ended().value_or(cause);
  }
  Release();
  return MakeRun();
}

/// To the point where all copies have their names.
Status LocalGroup::Lead() {
  PREPOST_RETURN_IF_ERROR(
      control_.Open({.who = "the launching process",
                     .listens = false,
                     .failure_max = options_.failure_max,
                     .attention = [] { return milliseconds(0); },
                     .describe = [this] { return control::Progress{.steps = computed_.load()}; }},
                    options_.interrupt_fd, [this](KeeperEvent& event) { return Take(event); }));
  const NodeId self(plan_.header().nodes);
  KeptGroup group = LocalRunGroup(plan_.header(), self);
  group.run->no_progress_max = options_.no_progress_max;
  group.run->is_over_device = static_cast<bool>(options_.make_player);
  for (NodeProcess& process : processes_) {
    group.names.push_back(fmt::format("node {} (process {})", process.node.value, process.pid));
    group.controls.push_back(std::move(process.control));
    PREPOST_RETURN_IF_ERROR(control_.Watch(process.life.get()));
  }
  group.names.emplace_back("the launching process");
  group.controls.emplace_back();
  Keeper& keeper = control_.keeper();
  keeper.Add(std::move(group));
  // It has no part that the others could wait for.
  for (const Gate gate : {Gate::kArmed, Gate::kMoved}) keeper.Arrive(RunControl::kSerial, gate, 0);
  while (!leader_.may_commit()) {
    PREPOST_RETURN_IF_ERROR(control_.Wait(kTick));
    PREPOST_RETURN_IF_ERROR(CheckProcesses());
  }
  return Commit();
}

/// All copies have their names: whatever happens now is too late. Processes that have nothing left
/// to do have a bounded time to go by themselves, and what they have made on this machine with
/// them.
void LocalGroup::Release() {
  leader_.LetCommit();
  control_.keeper().Close(RunControl::kSerial, 1);
  const auto end = std::chrono::steady_clock::now() + kEndMax;
  for (NodeProcess& process : processes_) {
    pollfd ended = {.fd = process.life.get(), .events = POLLIN, .revents = 0};
    const auto left = std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now());
    if (poll(&ended, 1, static_cast<int>(std::max(left, milliseconds(0)).count())) <= 0) continue;
    Reap(process);
  }
}

Status LocalGroup::Take(const KeeperEvent& event) {
  const bool is_start = event.kind == KeeperEvent::Kind::kPassed && event.gate == Gate::kArmed;
  if (is_start && options_.trace != nullptr) options_.trace->start_ns = event.start_ns;
  return leader_.Take(event);
}

/// Errors: one has ended before the run has.
Status LocalGroup::CheckProcesses() {
  std::vector<pollfd> polls;
  for (const NodeProcess& process : processes_)
    polls.push_back({.fd = process.life.get(), .events = POLLIN, .revents = 0});
  if (poll(polls.data(), polls.size(), /*timeout=*/0) <= 0) return {};
  for (size_t i = 0; i < polls.size(); ++i) {
    if (polls[i].revents == 0) continue;
    const pid_t pid = processes_[i].pid;
    return Rejected(DeathOf(processes_[i].node, pid, Reap(processes_[i])));
  }
  return {};
}

/// All have what they must.
Status LocalGroup::Commit() {
  for (NodeBuffer& buffer : buffers_) PREPOST_RETURN_IF_ERROR(buffer.GiveName());
  return outputs_ != nullptr ? outputs_->Commit() : Status();
}

Status LocalGroup::Spawn() {
  PREPOST_RETURN_IF_ERROR(RaiseFileLimit(FilesNeeded(options_.transport, plan_)));
  PREPOST_RETURN_IF_ERROR(OpenBuffers());
  PREPOST_RETURN_IF_ERROR(OpenGates());
  LocalTcpOptions tcp;
  if (options_.is_sealed) {
    PREPOST_CHECK(options_.transport == TransportKind::kTcp && !options_.make_player);
    Result<GroupKey> key = GroupKey::Random();
    if (!key.ok()) return key.status();
    tcp.key = *std::move(key);
  }
  const Result<std::unique_ptr<LocalTransport>> transport = LocalTransport::Make(
      options_.transport, plan_, {.input = input_, .buffers = buffers_, .scratch = scratch_}, tcp);
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
  gates_.clear();
  return {};
}

Status LocalGroup::OpenGates() {
  const uint32_t nodes = plan_.header().nodes;
  const GateTree tree(nodes + 1, /*leader=*/NodeId(nodes));
  gates_.resize(nodes);
  for (uint32_t i = 0; i < nodes; ++i) {
    const NodeId node(i), parent = *tree.ParentOf(node);
    if (parent == NodeId(nodes)) continue;
    auto ends = ControlSocket::MakePair();
    if (!ends.ok()) return ends.status();
    gates_[i].push_back({.peer = parent, .control = std::move(ends->first)});
    gates_[parent.index()].push_back({.peer = node, .control = std::move(ends->second)});
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
decltype(RunLeaderOptions::expected) LocalGroup::Expected() {
  if (is_multicast()) return {};
  return [this] {
    const auto read = [this](uint64_t offset, std::span<std::byte> out) -> Status {
      const Result<Mapping> bytes = input_.Read(offset, out.size());
      if (!bytes.ok()) return bytes.status();
      std::ranges::copy(bytes->bytes(), out.begin());
      return {};
    };
    return ExpectedSums(*plan_.flat(), read, [this] {
      ++computed_;
      return IsInterrupted(options_.interrupt_fd) ? Interrupted() : Status();
    });
  };
}

Status LocalGroup::SpawnNode(NodeId node, LocalTransport& transport, int last_word_fd) {
  auto control = ControlSocket::MakePair();
  if (!control.ok()) return control.status();
  int life[2];
  if (pipe(life) != 0) return SystemError(StatusCode::kEnvironment, "cannot make a pipe", errno);
  FileDescriptor life_read(life[0]);
  const FileDescriptor life_write(life[1]);
  const pid_t pid = fork();
  if (pid < 0) {
    return SystemError(StatusCode::kEnvironment,
                       fmt::format("cannot start a process for node {} (fork)", node.value), errno);
  }
  if (pid == 0) {
    std::vector<int> keep = transport.FilesOf(node);
    for (int fd : {control->second.fd(), last_word_fd, input_.fd(), life_write.get()})
      keep.push_back(fd);
    if (plan_.header().roles().IsTarget(node)) keep.push_back(buffers_[node.index()].fd());
    if (!is_multicast()) keep.push_back(scratch_[node.index()].fd());
    for (const GateSocket& gate : gates_[node.index()]) keep.push_back(gate.control.fd());
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
                  .failure_max = options_.failure_max,
                  .control = control->second.TakeFile(),
                  .gates = std::move(gates_[node.index()]),
                  .last_word_fd = last_word_fd});
  }
  NodeProcess& process = processes_[node.index()];
  process.node = node;
  process.pid = pid;
  process.life = std::move(life_read);
  process.control = control->first.TakeFile();
  return {};
}

LocalRun LocalGroup::MakeRun() const {
  LocalRun run = leader_.MakeRun();
  run.report.executor = options_.make_player ? options_.executor : "cpu";
  run.report.detail = options_.make_player ? options_.detail
                                           : fmt::format("{}{}", Name(options_.transport),
                                                         options_.is_sealed ? ", sealed" : "");
  run.report.wait = Name(options_.wait.mode);
  return run;
}

LocalGroup::~LocalGroup() {
  for (const NodeProcess& process : processes_) {
    if (process.pid > 0) kill(process.pid, SIGKILL);
  }
  for (NodeProcess& process : processes_) {
    if (process.pid > 0) Reap(process);
  }
}

}  // namespace

Result<LocalRun> RunLocalGroup(Playable plan, const MappedInput& input, OutputSet* outputs,
                               const LocalGroupOptions& options) {
  PREPOST_CHECK(input.size_bytes() == InputBytesOf(plan.header()));
  return LocalGroup(plan, input, outputs, options).Run();
}

}  // namespace prepost
