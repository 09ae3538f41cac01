// SPDX-License-Identifier: Apache-2.0
//
// prepost node: runs one node of a plan whose nodes are on several machines.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>

#include "backends/node_device.h"
#include "backends/registry.h"
#include "compiler/choice/stream_advice.h"
#include "ir/analysis/site_entries.h"
#include "ir/base/count.h"
#include "planning/files/named_file.h"
#include "planning/files/plan_file.h"
#include "planning/flags/lowering_flags.h"
#include "planning/flags/play_flags.h"
#include "planning/flags/spec_flags.h"
#include "planning/flags/values.h"
#include "planning/text/messages.h"
#include "runtime/base/interrupt.h"
#include "runtime/files/message_file.h"
#include "runtime/files/output_set.h"
#include "runtime/files/plan_folder.h"
#include "runtime/group/peers_file.h"
#include "runtime/run/node_group.h"
#include "tools/commands/commands.h"
#include "tools/flags/path_flags.h"
#include "tools/report/report_print.h"
#include "tools/report/trace_output.h"

namespace prepost::tools {
namespace {

constexpr const char* kSecretVariable = "PREPOST_SECRET";

struct NodeFlags {
  std::string plan_path;
  std::string message_bytes;  // empty: not given
  uint32_t node = 0;
  std::string peers_path;
  std::string input_path;   // empty: not given
  std::string output_path;  // empty: not given
  std::string bind;
  std::string ports;
  std::string secret_path;
  double connect_timeout_s = 30;
  std::string executor = "auto";
  std::string device;  // empty: not given
  bool is_sealed = false;
  PathFlags paths;
  LoweringFlags lowering;
  TraceOutput trace;
  PlayFlags play;
};

Result<GroupKey> ReadKey(const std::string& path) {
  if (!path.empty()) return GroupKey::FromFile(path);
  if (char* const secret = std::getenv(kSecretVariable); secret != nullptr) {
    Result<GroupKey> key = GroupKey::FromSecret(secret, kSecretVariable);
    Wipe({secret, std::strlen(secret)});
    return key;
  }
  return Status(StatusCode::kUsage,
                fmt::format("a secret is needed, the same on all machines: --secret-file FILE, or "
                            "{} in the environment",
                            kSecretVariable));
}

Result<std::vector<PeerAddress>> ReadPeersFile(const std::string& path, const PlanHeader& header) {
  std::vector<PeerAddress> peers;
  PREPOST_RETURN_IF_ERROR(WithInput(path, [&](std::istream& in, const std::string& name) -> Status {
    Result<std::vector<PeerAddress>> read = ReadPeers(in, name, header.nodes);
    if (read.ok()) peers = std::move(*read);
    return read.status();
  }));
  return peers;
}

/// Of another collective than a multicast: what contributes takes an input, what wants something
/// may have it written. A barrier moves nothing.
Status CheckFiles(const NodeFlags& flags, const PlanHeader& header) {
  const CollectiveKind kind = header.collective.kind;
  const bool is_barrier = kind == CollectiveKind::kBarrier;
  const bool has_input = !is_barrier && header.roles().IsSource(NodeId(flags.node));
  const bool has_output = !is_barrier && header.roles().IsTarget(NodeId(flags.node));
  if (has_input && flags.input_path.empty()) {
    return {
        StatusCode::kUsage,
        fmt::format("node {} contributes to the plan of {} and needs --input, of {}", flags.node,
                    Name(kind), Count(NodeBytesOf(header, NodeId(flags.node)).input, "byte"))};
  }
  const bool is_helper = flags.node >= header.roles().members();
  const std::string why =
      is_barrier  ? "a barrier moves nothing"
      : is_helper ? fmt::format("node {} is a helper, which passes on what others need", flags.node)
                  : fmt::format("in a plan of {} it is for node {}, not for node {}", Name(kind),
                                header.collective.root.value, flags.node);
  if (!has_input && !flags.input_path.empty()) return {StatusCode::kUsage, "--input: " + why};
  if (!has_output && !flags.output_path.empty()) return {StatusCode::kUsage, "--output: " + why};
  return {};
}

/// --node, and what only the root or only others take.
Status CheckRole(const NodeFlags& flags, const PlayedPlan& plan) {
  const PlanHeader& header = plan.header();
  if (flags.node >= header.nodes) {
    return Rejected(
        fmt::format("no node {}: the plan has nodes 0 to {}", flags.node, header.nodes - 1));
  }
  if (!plan.Has(NodeId(flags.node))) {
    return Rejected(fmt::format("the program of node {} is not in this file", flags.node),
                    flags.plan_path);
  }
  if (header.collective.kind != CollectiveKind::kMulticast) return CheckFiles(flags, header);
  const bool is_root = header.roles().IsSource(NodeId(flags.node));
  if (is_root && flags.input_path.empty()) {
    return {StatusCode::kUsage,
            fmt::format("node {} is the root of the plan and needs --input", flags.node)};
  }
  if (is_root && !flags.output_path.empty()) {
    return {StatusCode::kUsage, fmt::format("--output: node {} is the root of the plan and has the "
                                            "message already",
                                            flags.node)};
  }
  if (!is_root && !flags.input_path.empty()) {
    return {StatusCode::kUsage, fmt::format("--input is for the root of the plan, node {}, not "
                                            "for node {}",
                                            header.collective.root.value, flags.node)};
  }
  return {};
}

Executor ExecutorOf(const NodeFlags& flags) {
  return ValueOf(kExecutorNames, flags.executor, Executor::kAuto);
}

/// What does not go together, before anything is opened.
Status CheckExecutor(const NodeFlags& flags) {
  PREPOST_RETURN_IF_ERROR(CheckWord("--executor", flags.executor, Words(kExecutorNames)));
  PREPOST_RETURN_IF_ERROR(flags.lowering.Check());
  if (flags.lowering.given() != nullptr &&
      (ExecutorOf(flags) == Executor::kCpu || flags.device.empty())) {
    return {StatusCode::kUsage,
            fmt::format("{} is for offload to a --device", flags.lowering.given())};
  }
  if (std::ranges::count(SoftwareDeviceNames(), flags.device) != 0) {
    return {StatusCode::kUsage,
            fmt::format("--device {}: emulated NICs live in one process, no other machine reaches "
                        "them; prepost run has them",
                        flags.device)};
  }
  if (flags.is_sealed && !flags.device.empty()) {
    return {StatusCode::kUsage,
            fmt::format("--seal: what goes over --device {} the NIC itself moves, which seals "
                        "nothing; leave one of the two out",
                        flags.device)};
  }
  if (ExecutorOf(flags) != Executor::kOffload) return {};
  if (flags.device.empty()) {
    return {StatusCode::kUsage, "--executor offload needs a --device (see prepost devices)"};
  }
  PREPOST_RETURN_IF_ERROR(flags.play.wait.CheckOffload());
  if (flags.trace.is_wanted()) {
    return {StatusCode::kUsage,
            "--trace is for --executor cpu: a NIC tells nobody when it does what"};
  }
  return {};
}

/// `plan`: null for a rolled one or the node's part, which CPUs play.
Result<NodeDevice> ChooseDevice(const NodeFlags& flags, const VerifiedPlan* plan) {
  if (plan == nullptr) return NodeDevice();
  Result<nic::LowerOptions> lower = flags.lowering.ToOptions();
  if (!lower.ok()) return lower.status();
  Result<NodeDevice> device = NodeDevice::Choose({.executor = ExecutorOf(flags),
                                                  .device = flags.device,
                                                  .lower = *lower,
                                                  .is_traced = flags.trace.is_wanted()},
                                                 *plan, NodeId(flags.node));
  if (device.ok() && !device->note().empty()) {
    PrintNote("executor " + device->note());
  }
  return device;
}

Result<BootstrapOptions> BootstrapOf(const NodeFlags& flags, const PlanHeader& header) {
  const Result<GroupKey> key = ReadKey(flags.secret_path);
  if (!key.ok()) return key.status();
  Result<std::vector<PeerAddress>> peers = ReadPeersFile(flags.peers_path, header);
  if (!peers.ok()) return peers.status();
  const std::chrono::duration<double> connect_max(flags.connect_timeout_s);
  BootstrapOptions options = {
      .node = NodeId(flags.node),
      .peers = std::move(*peers),
      .key = *key,
      .connect_max = std::chrono::ceil<std::chrono::milliseconds>(connect_max)};
  const Result<PathOptions> paths = flags.paths.Options();
  if (!paths.ok()) return paths.status();
  options.paths = *paths;
  return options;
}

Result<std::optional<PortRange>> PortsOf(const NodeFlags& flags) {
  if (flags.ports.empty()) return std::optional<PortRange>();
  const Result<PortRange> ports = ParsePorts(flags.ports);
  if (!ports.ok()) return UsageError("--port: " + ports.status().message());
  return std::optional(*ports);
}

/// How often blocks cross between the sites of the peers file, if it names some: at the root, of a
/// plan that is there in full.
void NoteCrossings(const std::vector<PeerAddress>& peers, const VerifiedPlan* plan) {
  std::vector<std::string> names;
  std::vector<uint32_t> site_of;
  for (const PeerAddress& peer : peers) {
    const auto place = std::ranges::find(names, peer.site) - names.begin();
    if (static_cast<size_t>(place) == names.size()) names.push_back(peer.site);
    site_of.push_back(static_cast<uint32_t>(place));
  }
  if (names.size() < 2 || plan == nullptr) return;
  const std::vector<double> entries = SiteEntries(*plan, site_of);
  const bool is_least = std::ranges::all_of(entries, [](double it) { return it <= 1 + 1e-6; });
  PrintNote(DescribeEntries(entries, names) +
            (is_least ? ""
                      : "; a plan whose nodes of a site are neighbours, as compile makes with "
                        "--topology, crosses once"));
}

/// At the root, of a plan that TCP carries within one site.
void NoteForStreams(const NodeFlags& flags, const std::vector<PeerAddress>& peers,
                    const PlanHeader& header) {
  const bool has_sites = std::ranges::any_of(
      peers, [&](const PeerAddress& peer) { return peer.site != peers.front().site; });
  if (has_sites || !flags.device.empty()) return;
  if (const std::optional<std::string> advice = AdviceForStreams(header)) PrintNote(*advice);
}

/// What --message-bytes or, at the root, the input says.
Result<uint64_t> MessageBytes(const NodeFlags& flags, const std::optional<MappedInput>& input) {
  if (flags.message_bytes.empty()) {
    if (input) return input->size_bytes();
    return Status(StatusCode::kUsage,
                  "a rolled plan is for any size: --message-bytes is needed, that of the root's "
                  "input");
  }
  return ParseMessageBytes("--message-bytes", flags.message_bytes);
}

/// Whether this command plays such a plan, and with these flags.
Status CheckKind(const NodeFlags& flags, const Plan& plan) {
  const CollectiveKind kind = plan.header().collective.kind;
  if (kind == CollectiveKind::kMulticast) {
    const Status status = ExpectPlainMulticast(plan);
    return status.ok() ? status : Rejected(status.message(), NameOfInput(flags.plan_path));
  }
  return CheckOperation(plan.header(), flags.plan_path);
}

/// Loads only the node's own part of a folder, if that is all that is needed: a trace identifies
/// messages by both of their ends, and lowering for a NIC needs those, too.
Result<PlayedPlan> LoadFlat(const NodeFlags& flags) {
  const std::string& path = flags.plan_path;
  if (!IsPlanFolder(path) || flags.trace.is_wanted() || !flags.device.empty()) {
    Result<VerifiedPlan> plan = LoadAnyPlan(path);
    if (!plan.ok()) return plan.status();
    PREPOST_RETURN_IF_ERROR(CheckKind(flags, *plan));
    return PlayedPlan(std::move(*plan));
  }
  std::vector<std::string> warnings;
  Result<PlanOfNode> own = ReadPlanOfNode(path, NodeId(flags.node), &warnings);
  PrintWarnings(path, warnings);
  if (!own.ok()) return own.status();
  PREPOST_RETURN_IF_ERROR(CheckKind(flags, own->plan));
  return PlayedPlan(std::move(*own));
}

Result<PlayedPlan> GetPlan(const NodeFlags& flags, const std::optional<MappedInput>& input) {
  const Result<FileKind> kind = KindOf(flags.plan_path);
  if (!kind.ok()) return kind.status();
  if (*kind != FileKind::kRolledPlan) {
    if (!flags.message_bytes.empty()) {
      return Status(StatusCode::kUsage, "--message-bytes is for rolled plans");
    }
    return LoadFlat(flags);
  }
  const Result<uint64_t> bytes = MessageBytes(flags, input);
  if (!bytes.ok()) return bytes.status();
  Result<RolledPlan> rolled = ReadRolledPlanFile(flags.plan_path);
  if (!rolled.ok()) return rolled.status();
  PREPOST_RETURN_IF_ERROR(
      CheckSize(*rolled, *bytes,
                flags.message_bytes.empty() ? "input " + flags.input_path : "--message-bytes"));
  if (!flags.device.empty() || flags.trace.is_wanted()) {
    return PlayedPlan::Unrolled(*rolled, *bytes, flags.plan_path,
                                flags.device.empty() ? "a trace" : "a NIC's program");
  }
  return PlayedPlan::Rolled(std::move(*rolled), *bytes, flags.plan_path);
}

Status Run(NodeFlags& flags) {
  PREPOST_RETURN_IF_ERROR(flags.play.Check());
  PREPOST_RETURN_IF_ERROR(CheckExecutor(flags));
  std::optional<MappedInput> input;
  if (!flags.input_path.empty()) {
    Result<MappedInput> opened = MappedInput::Open(flags.input_path);
    if (!opened.ok()) return opened.status();
    input.emplace(std::move(*opened));
  }
  const Result<PlayedPlan> plan = GetPlan(flags, input);
  if (!plan.ok()) return plan.status();
  PREPOST_RETURN_IF_ERROR(CheckRole(flags, *plan));
  const bool is_multicast = plan->header().collective.kind == CollectiveKind::kMulticast;
  if (input) PREPOST_RETURN_IF_ERROR(CheckInputSize(plan->header(), *input, NodeId(flags.node)));
  Result<BootstrapOptions> bootstrap = BootstrapOf(flags, plan->header());
  if (!bootstrap.ok()) return bootstrap.status();
  const Result<std::optional<PortRange>> ports = PortsOf(flags);
  if (!ports.ok()) return ports.status();
  if (input && is_multicast) {
    NoteCrossings(bootstrap->peers, plan->flat());
    NoteForStreams(flags, bootstrap->peers, plan->header());
  }
  PREPOST_RETURN_IF_ERROR(
      flags.trace.Prepare(plan->flat(), {flags.input_path, flags.plan_path, flags.peers_path}));
  Result<NodeDevice> device = ChooseDevice(flags, plan->flat());
  if (!device.ok()) return device.status();
  Result<InterruptSignals> signals = InterruptSignals::Hold();
  if (!signals.ok()) return signals.status();
  std::optional<OutputSet> output;
  if (!flags.output_path.empty()) {
    Result<OutputSet> created = OutputSet::CreateOne(NodeId(flags.node), flags.output_path);
    if (!created.ok()) return created.status();
    output.emplace(std::move(*created));
  }
  const bool shows_progress = ShowsProgress();
  if (shows_progress) {
    bootstrap->waiting = [](const std::string& missing) {
      std::cerr << "\r\033[Kwaiting for " << missing << std::flush;
    };
  }
  NodeRunOptions options = {
      .bootstrap = std::move(*bootstrap),
      .bind = flags.bind,
      .ports = *ports,
      .interrupt_fd = signals->fd(),
      .wait = flags.play.wait.policy(),
      .trace = flags.trace.table(),
      .no_progress_max = flags.play.no_progress_max(),
      .failure_max = flags.play.failure_max(),
      .is_sealed = flags.is_sealed,
      .progress = DeliveryProgress(plan->header(), shows_progress && input.has_value()),
      .note = [shows_progress](const std::string& text) {
        ClearProgress(shows_progress);
        PrintNote(text);
      }};
  if (plan->flat() != nullptr) {
    device->ApplyTo(*plan->flat(), options.no_progress_max, &options);
  }
  const Result<LocalRun> run = RunNode(plan->playable(), input ? &*input : nullptr,
                                       output ? &*output : nullptr, std::move(options));
  ClearProgress(shows_progress);
  TraceInfo info = {.executor = device->executor(), .detail = device->name()};
  if (run.ok()) info.hosts = HostsOf(run->report);
  // The others have files of their own.
  std::erase_if(info.hosts, [&](const TraceHost& host) { return host.node.value != flags.node; });
  const Status written = flags.trace.Write(plan->flat(), info, run.status());
  if (!run.ok()) return run.status();
  signals->HoldToTheEnd();  // the copy has its name
  PrintRun(plan->header(), *run, OutputCheck::kOutputs, flags.play.json, std::cout);
  return written;
}

void AddExecutorFlags(CLI::App& command, NodeFlags& flags) {
  command
      .add_option("--executor", flags.executor,
                  "auto, cpu or offload: what plays this node's part; auto offloads where a "
                  "--device is named and the plan fits it [auto]")
      ->type_name("E");
  command
      .add_option("--device", flags.device,
                  "The NIC that everything goes over, such as mlx5_0; at all nodes or at none "
                  "[none: CPUs over TCP]")
      ->type_name("NAME")
      ->check(NameOf("a device"));
  flags.lowering.AddTo(command);
}

void AddConnectionFlags(CLI::App& command, NodeFlags& flags) {
  command
      .add_option("--bind", flags.bind,
                  "Address to listen at [that of the peers file; all, if that is a name]")
      ->type_name("ADDRESS");
  command
      .add_option("--port", flags.ports,
                  "Port to listen at, or a range whose first free one is taken [as in the peers "
                  "file]")
      ->type_name("P|P-Q");
  command
      .add_option("--secret-file", flags.secret_path,
                  fmt::format("The group's secret, {} bytes or more, random, readable by its owner "
                              "only [{} in the environment]",
                              kSecretBytesMin, kSecretVariable))
      ->type_name("FILE");
  command
      .add_option("--connect-timeout", flags.connect_timeout_s,
                  "Give up when not all nodes have come after this many seconds [30]")
      ->type_name("SECONDS")
      ->check(Seconds());
  command.add_flag("--seal", flags.is_sealed,
                   "Encrypt and authenticate all that nodes say to each other; at all nodes or at "
                   "none, not with --device");
  flags.paths.AddTo(command);
}

}  // namespace

void AddNode(CLI::App& app, Action* action) {
  auto flags = std::make_shared<NodeFlags>();
  CLI::App* command =
      app.add_subcommand("node", "Run one node of a plan, with the others on other machines");
  command->footer(fmt::format(
      "Every machine runs this with the same plan, the same secret and its own --node; the order "
      "does not\n"
      "matter. Of a plan in shards it reads the index and its own file. Nodes find each other by "
      "the peers file, which has a line per node:\n\n"
      "  NODE HOST[:PORT|:FIRST-LAST] [site=NAME]   # the default port is {}; IPv6 as in "
      "[::1]:7000\n\n"
      "Where nodes are at several sites and all lines name theirs, the root says how often a block "
      "crosses between them.\n"
      "They prove to each other that they have the secret and the same plan. The secret should be "
      "random, because\n"
      "whoever can connect can try to guess it at leisure. All nodes share it, so any member can "
      "pass for any node:\n\n"
      "  (umask 077; head -c 32 /dev/urandom | base64 > secret)\n\n"
      "That data is the root's is known at the end by sums (BLAKE2b-256) with a MAC of the secret, "
      "against all but members.\n"
      "It is not encrypted without --seal, which is for networks that you do not trust "
      "(docs/running.md).\n\n"
      "A rolled plan (prepost compile --message-bytes any) is played as it is, in memory that does "
      "not grow with the\n"
      "message; a file made with --node I is enough for node I, and --message-bytes says how long "
      "the message is.\n\n"
      "The root sends its --input; the others write --output, which has its name only when all "
      "copies are equal,\n"
      "or receive into memory and drop the copy. The root prints the report of all nodes, the "
      "others their own\n"
      "line; its columns are those of prepost run. If one node fails, all do, with its cause.\n\n"
      "Of a plan of another collective each node that contributes has its own --input, and each "
      "that wants something\n"
      "may write --output; the root, or node 0, leads. Nobody has all inputs: outputs that the "
      "plan "
      "makes equal, as in\n"
      "an allreduce or allgather, are compared by their sums before they get their names; of "
      "others "
      "the report says\n"
      "that they are complete and compared with nothing.\n\n"
      "With --device, everything but the bootstrap goes over that NIC, preposted or CPU-driven "
      "(--executor), at\n"
      "every node as it likes, and message and copies must fit into memory. A device that cannot "
      "be used is an\n"
      "error: no node goes over TCP instead. This has not been seen on hardware yet "
      "(docs/hardware.md).\n\n"
      "Examples:\n"
      "  prepost node plan.json --node 0 --peers peers.txt --secret-file secret --input image.raw\n"
      "  prepost node plan.json --node 3 --peers peers.txt --secret-file secret --output copy.raw\n"
      "  prepost node plan.json --node 3 --peers peers.txt --port 7000-7010 --connect-timeout 300 "
      "--json\n"
      "  prepost node plan.json --node 0 --peers peers.txt --input image.raw --trace root.json\n"
      "  prepost node plan.json --node 0 --peers sites.txt --input image.raw --pace 400Mbit/s\n"
      "  prepost node plan.json --node 0 --peers peers.txt --input image.raw --seal\n"
      "  prepost node shards/ --node 3 --peers peers.txt --secret-file secret --output copy.raw\n"
      "  prepost compile --collective allreduce --combine sum:float32 --nodes 4 --message-bytes "
      "3MB "
      "-o sums.json\n"
      "  prepost node sums.json --node 3 --peers peers.txt --secret-file secret --input image.raw "
      "--output sums.raw\n"
      "  prepost node plan.json --node 3 --peers peers.txt --output copy.raw --device mlx5_0\n"
      "  prepost node plan.json --node 3 --peers peers.txt --executor offload --device mlx5_0 "
      "--mode managed\n"
      "  prepost node rolled-3.json --node 3 --peers peers.txt --secret-file secret "
      "--message-bytes "
      "3000000 --output copy.raw",
      kDefaultPort));
  command
      ->add_option("PLAN", flags->plan_path,
                   "Plan file, - for stdin, folder of shards, or rolled plan")
      ->required();
  command->add_option("--node", flags->node, "Which node of the plan this machine is")
      ->type_name("I")
      ->check(NodeNumber())
      ->required();
  command
      ->add_option("--message-bytes", flags->message_bytes,
                   "For a rolled plan: the size of the root's input, the same at all nodes [at the "
                   "root: that of --input]")
      ->type_name("M");
  command->add_option("--peers", flags->peers_path, "Where all nodes listen")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("-i,--input", flags->input_path,
                   "The message, at the root; of other collectives what the node contributes")
      ->type_name("FILE")
      ->check(NameOf("a file"));
  command
      ->add_option("-o,--output", flags->output_path,
                   "The copy, elsewhere; of other collectives what the node wants [nowhere]")
      ->type_name("FILE")
      ->check(NameOf("a file"));
  AddConnectionFlags(*command, *flags);
  AddExecutorFlags(*command, *flags);
  flags->trace.AddTo(*command);
  flags->play.AddTo(*command);
  command->callback([flags, action] { *action = [flags] { return Run(*flags); }; });
}

}  // namespace prepost::tools
