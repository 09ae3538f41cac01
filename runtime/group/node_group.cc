// SPDX-License-Identifier: Apache-2.0
//
// Every node is a Member whose Endpoint is made of the connections that Bootstrap makes. The root
// is one too, and leads the group on a thread of its own, which takes control connections over as
// they come: so a node that fails while others are still awaited ends the group at once, with its
// cause.
#include "runtime/group/node_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/files/collective_sums.h"
#include "runtime/group/coordinator.h"
#include "runtime/group/member.h"
#include "runtime/transport/path_notes.h"
#include "runtime/transport/tcp_endpoint.h"
#include "runtime/transport/tcp_path.h"

namespace prepost {
namespace {

using std::chrono::milliseconds;

/// The leader asks every second at the latest; the rest is for a machine that is slow to begin.
constexpr milliseconds kFirstWordMax{10000};
/// For the leader to say what the cause of a failure is, beyond the time it gives causes to show
/// up.
constexpr milliseconds kCauseMax{2000};

class NodeRun {
 public:
  NodeRun(Playable plan, const MappedInput* input, OutputSet* outputs, NodeRunOptions options)
      : plan_(plan),
        input_(input),
        outputs_(outputs),
        options_(std::move(options)),
        node_(options_.bootstrap.node),
        leader_(plan_.header().collective.root) {
    if (options_.make_player) options_.bootstrap.carrier = Carrier::kDevice;
  }

  Result<LocalRun> Run();

 private:
  bool is_leader() const { return node_ == leader_; }
  Result<LocalRun> RunLeader();
  Result<LocalRun> RunOther();
  Status Lead();
  bool is_multicast() const { return plan_.header().collective.kind == CollectiveKind::kMulticast; }
  Status OpenBuffers();
  MemberTask TaskWith(ControlSocket control);
  Result<std::unique_ptr<Player>> MakePlayer(const PlayerContext& context);
  SumProver Prover() const { return {options_.bootstrap.key, bootstrap_->terms()}; }
  void NotePaths(std::span<const TcpSocket> sockets) const;
  Status Commit();
  LocalRun Describe(RunReport report, const MessageSum& own_sum) const;

  const Playable plan_;
  const MappedInput* const input_;
  OutputSet* const outputs_;
  NodeRunOptions options_;
  const NodeId node_;
  const NodeId leader_;
  NodeBuffer buffer_;   ///< where something is received for keeps
  NodeBuffer scratch_;  ///< of another collective than a multicast
  std::unique_ptr<Bootstrap> bootstrap_;
  std::optional<Coordinator> coordinator_;  ///< at the leader
  bool is_committed_ = false;
};

Result<LocalRun> NodeRun::Run() {
  Result<std::unique_ptr<Bootstrap>> bootstrap = Bootstrap::Open(plan_, options_.bootstrap);
  if (!bootstrap.ok()) return bootstrap.status();
  bootstrap_ = std::move(*bootstrap);
  // First of all, because once the leader has let this node in, its failure is everyone's.
  PREPOST_RETURN_IF_ERROR(OpenBuffers());
  Result<LocalRun> run = is_leader() ? RunLeader() : RunOther();
  if (!run.ok() && is_committed_ && outputs_ != nullptr) outputs_->Withdraw();
  return run;
}

Status NodeRun::OpenBuffers() {
  const PlanHeader& header = plan_.header();
  const NodeBytes bytes =
      is_multicast() ? NodeBytes{.output = header.payload.bytes} : NodeBytesOf(header, node_);
  if (header.roles().IsTarget(node_)) {
    Result<NodeBuffer> buffer = NodeBuffer::Open(node_, bytes.output, outputs_);
    if (!buffer.ok()) return buffer.status();
    buffer_ = std::move(*buffer);
  }
  if (is_multicast()) return {};
  Result<NodeBuffer> scratch = NodeBuffer::Open(node_, bytes.scratch, /*outputs=*/nullptr);
  if (!scratch.ok()) return scratch.status();
  scratch_ = std::move(*scratch);
  return {};
}

Result<LocalRun> NodeRun::RunLeader() {
  auto control = ControlSocket::MakePair();
  if (!control.ok()) return control.status();
  coordinator_.emplace(
      plan_.header().nodes, node_,
      Coordinator::Options{.no_progress_max = options_.no_progress_max,
                           .interrupt_fd = options_.bootstrap.interrupt_fd,
                           .progress = options_.progress,
                           .prover = Prover(),
                           .equal_outputs = is_multicast() ? std::vector<NodeId>()
                                                           : FirstsOfEqualOutputs(plan_.header())});
  coordinator_->Join(node_, std::move(control->first));
  Status led;
  std::thread leader;
  try {
    leader = std::thread([this, &led] { led = Lead(); });
  } catch (const std::system_error&) {
    return EnvironmentError("cannot start the thread that leads the group");
  }
  std::vector<QueueRearms> own_rearms;
  {
    Member member(TaskWith(std::move(control->second)));
    const Status own = member.Run();
    own_rearms = member.queue_rearms();
    if (!own.ok()) static_cast<void>(member.ReportFailure(own, kForever));
  }
  leader.join();
  if (!led.ok()) return led;
  RunReport report = coordinator_->report();
  report.queue_rearms = std::move(own_rearms);
  return Describe(std::move(report), coordinator_->sum());
}

/// The leading thread.
Status NodeRun::Lead() {
  Status status = coordinator_->Lead([] { return uint64_t{0}; });
  if (status.ok()) status = coordinator_->Commit();
  if (status.ok()) {
    coordinator_->Release();
  } else if (status.code() == StatusCode::kInterrupted) {
    coordinator_->Abort(fmt::format("node {} was interrupted", node_.value));
  } else {
    coordinator_->Abort(status.ToString());
  }
  return status;
}

Result<LocalRun> NodeRun::RunOther() {
  Result<FileDescriptor> control = bootstrap_->ConnectToLeader();
  if (!control.ok()) return control.status();
  Member member(TaskWith(ControlSocket(std::move(*control))));
  const Status status = member.Run();
  if (!status.ok()) return member.ReportFailure(status, kCauseMax);
  RunReport report = {.elapsed_ns = member.report().elapsed_ns,
                      .nodes = {member.report()},
                      .queue_rearms = member.queue_rearms()};
  return Describe(std::move(report), member.sum());
}

MemberTask NodeRun::TaskWith(ControlSocket control) {
  return {.plan = plan_,
          .node = node_,
          .input = input_,
          .buffer = &buffer_,
          .scratch = is_multicast() ? nullptr : &scratch_,
          .make_player = [this](const PlayerContext& context) { return MakePlayer(context); },
          .in_memory = static_cast<bool>(options_.make_player),
          .commit = [this] { return Commit(); },
          .prover = Prover(),
          .wait = options_.wait,
          .trace = options_.trace,
          .control = std::move(control),
          .leader = is_leader()
                        ? "the leading thread"
                        : fmt::format("node {}, the {},", leader_.value,
                                      HasRoot(plan_.header().collective.kind) ? "root" : "leader"),
          .interrupt_fd = is_leader() ? -1 : options_.bootstrap.interrupt_fd,
          .first_word_max =
              is_leader() ? milliseconds(0) : std::max(options_.no_progress_max, kFirstWordMax),
          .silence_max = is_leader() ? milliseconds(0) : options_.no_progress_max};
}

Result<std::unique_ptr<Player>> NodeRun::MakePlayer(const PlayerContext& context) {
  const auto arrival = [this](NodeId node, FileDescriptor control) {
    coordinator_->Join(node, ControlSocket(std::move(control)));
  };
  Result<std::vector<TcpSocket>> sockets =
      bootstrap_->ConnectPeers(context.wake_fd, context.checkpoint, arrival);
  if (!sockets.ok()) return sockets.status();
  NotePaths(*sockets);
  if (options_.make_player) return options_.make_player(node_, std::move(*sockets), context);
  auto endpoint = TcpEndpoint::Make(plan_, node_, std::move(*sockets), context.wake_fd);
  if (!endpoint.ok()) return endpoint.status();
  return std::unique_ptr<Player>(
      std::make_unique<CpuPlayer>(plan_, node_, std::move(*endpoint), context));
}

/// Over connections of its own; where sites are named, also whether its peers are where they say.
void NodeRun::NotePaths(std::span<const TcpSocket> sockets) const {
  if (!options_.note) return;
  const std::vector<PeerAddress>& peers = options_.bootstrap.peers;
  GroupPaths group = {.members = {},
                      .self = node_,
                      .sites = {},
                      .round_trips = {},
                      .options = options_.bootstrap.paths,
                      .word = "node"};
  std::map<std::string, uint32_t> sites;
  for (uint32_t node = 0; node < peers.size(); ++node) {
    group.members.push_back(node);
    const auto next = static_cast<uint32_t>(sites.size());
    if (!peers[node].site.empty())
      group.sites.push_back(sites.try_emplace(peers[node].site, next).first->second);
  }
  if (!group.sites.empty()) {
    group.round_trips.resize(peers.size());
    for (const TcpSocket& socket : sockets)
      group.round_trips[socket.peer.index()] = RoundTripOf(socket.fd.get());
  }
  for (const std::string& note : PathNotes(group, sockets)) options_.note(note);
}

Status NodeRun::Commit() {
  if (outputs_ == nullptr) return {};
  PREPOST_RETURN_IF_ERROR(buffer_.GiveName());
  PREPOST_RETURN_IF_ERROR(outputs_->Commit());
  is_committed_ = true;
  return {};
}

LocalRun NodeRun::Describe(RunReport report, const MessageSum& own_sum) const {
  report.executor = options_.executor;
  report.detail = options_.detail;
  report.wait = Name(options_.wait.mode);
  LocalRun run = {.report = std::move(report), .sum = own_sum};
  for (const NodeReport& it : run.report.nodes) {
    if (is_multicast()) break;
    run.outputs.resize(plan_.header().nodes);
    if (plan_.header().roles().IsTarget(it.node))
      run.outputs[it.node.index()] = is_leader() ? coordinator_->sum(it.node) : own_sum;
  }
  return run;
}

}  // namespace

Result<LocalRun> RunNode(Playable plan, const MappedInput* input, OutputSet* outputs,
                         NodeRunOptions options) {
  const PlanHeader& header = plan.header();
  const NodeId node = options.bootstrap.node;
  if (header.collective.kind == CollectiveKind::kMulticast) {
    PREPOST_CHECK(header.roles().IsSource(node) == (input != nullptr));
    PREPOST_CHECK(input == nullptr || input->size_bytes() == header.payload.bytes);
  } else {
    PREPOST_CHECK((input != nullptr ? input->size_bytes() : 0) == NodeBytesOf(header, node).input);
    PREPOST_CHECK(outputs == nullptr || header.roles().IsTarget(node));
  }
  return NodeRun(plan, input, outputs, std::move(options)).Run();
}

}  // namespace prepost
