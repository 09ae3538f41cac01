// SPDX-License-Identifier: Apache-2.0
#include "runtime/run/node_group.h"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "runtime/base/file_descriptor.h"
#include "runtime/files/node_buffer.h"
#include "runtime/run/run_member.h"
#include "runtime/run/sum_proof.h"
#include "runtime/transport/tcp/path_notes.h"
#include "runtime/transport/tcp/tcp_endpoint.h"
#include "runtime/transport/tcp/tcp_links.h"
#include "runtime/transport/tcp/tcp_path.h"

namespace prepost {
namespace {

constexpr size_t kNodeFiles = 32;

class NodeRun {
 public:
  NodeRun(Playable plan, const MappedInput* input, OutputSet* outputs, NodeRunOptions options)
      : plan_(plan),
        input_(input),
        outputs_(outputs),
        options_(std::move(options)),
        node_(options_.bootstrap.node),
        leader_(plan_.header().collective.root),
        terms_{.plan = plan_.Hash(),
               .carrier = options_.make_player ? Carrier::kDevice : Carrier::kTcp,
               .message_bytes = plan_.header().payload.bytes,
               .is_sealed = options_.is_sealed},
        prover_(options_.bootstrap.key, terms_),
        member_(Task()) {}

  Result<LocalRun> Run();

 private:
  bool is_leader() const { return node_ == leader_; }
  bool is_multicast() const { return plan_.header().collective.kind == CollectiveKind::kMulticast; }
  RunMemberTask Task();
  KeptGroup Group() const;
  Status OpenBuffers();
  void NotePaths(std::span<const TcpSocket> sockets) const;
  Status Commit();
  LocalRun MakeRun() const;

  const Playable plan_;
  const MappedInput* const input_;
  OutputSet* const outputs_;
  const NodeRunOptions options_;
  const NodeId node_;
  const NodeId leader_;
  const GroupTerms terms_;
  const SumProver prover_;
  NodeBuffer buffer_;   ///< where something is received for keeps
  NodeBuffer scratch_;  ///< of another collective than a multicast
  bool is_committed_ = false;
  RunMember member_;
};

RunMemberTask NodeRun::Task() {
  const BootstrapOptions& given = options_.bootstrap;
  RunMemberTask task = {.part = {.plan = plan_,
                                 .node = node_,
                                 .input = input_,
                                 .buffer = &buffer_,
                                 .scratch = is_multicast() ? nullptr : &scratch_,
                                 .wait = options_.wait,
                                 .trace = options_.trace},
                        .keeper = {.who = fmt::format("node {}", node_.value),
                                   .own = given.peers[node_.index()],
                                   .key = given.key,
                                   .bind = options_.bind,
                                   .bind_option = "--bind",
                                   .ports = options_.ports,
                                   .only_group = terms_,
                                   .failure_max = options_.failure_max,
                                   .connect_max = given.connect_max,
                                   .reads_memory = false},
                        .group = Group(),
                        .prover = &prover_,
                        .interrupt_fd = options_.interrupt_fd,
                        .commit = [this] { return Commit(); }};
  if (is_leader())
    task.leads = RunLeaderOptions{.prover = &prover_, .node = node_, .progress = options_.progress};
  if (options_.make_player) {
    task.make_player = [this](const PlayerContext& context, std::vector<TcpSocket> sockets) {
      NotePaths(sockets);
      return options_.make_player(node_, std::make_unique<TcpLinks>(std::move(sockets)), context);
    };
  } else {
    task.make_endpoint = [this](
                             const PlayerContext& context,
                             std::vector<TcpSocket> sockets) -> Result<std::unique_ptr<Endpoint>> {
      NotePaths(sockets);
      auto endpoint = TcpEndpoint::Make(plan_, node_, std::move(sockets), context.wake_fd);
      if (!endpoint.ok()) return endpoint.status();
      return std::unique_ptr<Endpoint>(*std::move(endpoint));
    };
  }
  return task;
}

KeptGroup NodeRun::Group() const {
  const BootstrapOptions& given = options_.bootstrap;
  KeptGroup group = {.serial = RunControl::kSerial,
                     .addresses = given.peers,
                     .word = "node",
                     .leader_word = HasRoot(plan_.header().collective.kind) ? "root" : "leader",
                     .self = node_,
                     .leader = leader_,
                     .connections = TcpConnections(plan_),
                     .sites = given.sites,
                     .paths = given.paths,
                     .terms = terms_.plan,
                     .is_sealed = terms_.is_sealed,
                     .run = KeptRun{.is_rolled = plan_.is_rolled(),
                                    .no_progress_max = options_.no_progress_max,
                                    .is_over_device = static_cast<bool>(options_.make_player),
                                    .waiting = given.waiting},
                     .created = std::chrono::steady_clock::now()};
  for (uint32_t node = 0; node < plan_.header().nodes; ++node) group.members.push_back(node);
  return group;
}

Result<LocalRun> NodeRun::Run() {
  PREPOST_RETURN_IF_ERROR(
      RaiseFileLimit(2 * plan_.channels().size() + plan_.header().nodes + kNodeFiles));
  PREPOST_RETURN_IF_ERROR(member_.Open());
  // First of all, because once the leader has let this node in, its failure is everyone's.
  PREPOST_RETURN_IF_ERROR(OpenBuffers());
  const Status status = member_.Run();
  if (!status.ok() && is_committed_ && outputs_ != nullptr) outputs_->Withdraw();
  if (!status.ok()) return status;
  return MakeRun();
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

/// Of all nodes at the leader, elsewhere of this one.
LocalRun NodeRun::MakeRun() const {
  LocalRun run;
  if (is_leader()) {
    run = member_.leader()->MakeRun();
  } else {
    const NodeReport& own = member_.part().report();
    run = {.report = {.elapsed_ns = own.elapsed_ns, .nodes = {own}}, .sum = member_.sum()};
    run.report.nodes.front().node = node_;
    if (!is_multicast()) run.outputs.resize(plan_.header().nodes);
    if (!is_multicast() && plan_.header().roles().IsTarget(node_))
      run.outputs[node_.index()] = member_.sum();
  }
  run.report.queue_rearms = member_.part().queue_rearms();
  run.report.executor = options_.executor;
  run.report.detail = options_.detail;
  run.report.wait = Name(options_.wait.mode);
  return run;
}

}  // namespace

Result<LocalRun> RunNode(Playable plan, const MappedInput* input, OutputSet* outputs,
                         NodeRunOptions options) {
  const PlanHeader& header = plan.header();
  const NodeId node = options.bootstrap.node;
  PREPOST_CHECK(!options.is_sealed || !options.make_player);
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
